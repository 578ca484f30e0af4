"""The Exporter: which queues a registry shows, and that a scrape from any thread is safe and never spoilt by one queue."""

from __future__ import annotations

import asyncio
import importlib
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import REGISTRY, CollectorRegistry, Counter, generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families

from rate_envelope_queue import AsyncRateEnvelopeQueue, BadFieldsError, Context, Envelope, RateEnvelopeQueue
from rate_envelope_queue.integrations import prometheus
from rate_envelope_queue.integrations.prometheus import Exporter
from rate_envelope_queue.testing import ManualClock

from .support.waiting import LIMIT

ADDS = "workqueue_adds_total"
EXAMPLE = Path(__file__).parent.parent / "examples" / "11_metrics.py"

FAMILIES = {
    "workqueue_adds": "counter",
    "workqueue_depth": "gauge",
    "workqueue_queue_duration_seconds": "histogram",
    "workqueue_work_duration_seconds": "histogram",
    "workqueue_unfinished_work_seconds": "gauge",
    "workqueue_longest_running_processor_seconds": "gauge",
    "workqueue_retries": "counter",
    "rate_envelope_queue_capacity": "gauge",
    "rate_envelope_queue_occupied": "gauge",
    "rate_envelope_queue_dropped": "counter",
    "rate_envelope_queue_stuck": "gauge",
    "rate_envelope_queue_panics": "counter",
    "rate_envelope_queue_throttled": "counter",
}


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry(auto_describe=True)


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    """An event loop that runs in another thread than the test."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield loop
    loop.call_soon_threadsafe(loop.stop)
    thread.join(LIMIT)
    loop.close()


def families(registry: CollectorRegistry) -> list[Any]:
    return list(text_string_to_metric_families(generate_latest(registry).decode()))


def values(registry: CollectorRegistry, sample: str) -> dict[str, float]:
    """What a scrape shows, by the name of the queue."""
    found = [each for family in families(registry) for each in family.samples if each.name == sample]
    by_name = {each.labels["name"]: each.value for each in found}
    assert len(by_name) == len(found), "a series is there twice"
    return by_name


def idle(name: str, sends: int = 0, **options: Any) -> RateEnvelopeQueue:
    """A queue that was not started, with some envelopes."""
    queue = RateEnvelopeQueue(name, workers=1, **options)
    for _ in range(sends):
        queue.send(Envelope(lambda ctx, envelope: None))
    return queue


# What a registry shows


def test_every_family_is_there_once_with_a_help_text(registry: CollectorRegistry) -> None:
    Exporter(idle("a"), idle("b"), registry=registry)
    Exporter(idle("c"), registry=registry)
    text = generate_latest(registry).decode()
    assert [(family.name, family.type) for family in families(registry)] == list(FAMILIES.items())
    assert text.count("# HELP") == text.count("# TYPE") == len(FAMILIES)
    assert all(family.documentation for family in families(registry))


def test_the_openmetrics_format_is_valid_too(registry: CollectorRegistry) -> None:
    Exporter(idle("a", sends=2), registry=registry)
    parsed = {family.name for family in parse_openmetrics(generate_openmetrics(registry).decode())}
    assert parsed == FAMILIES.keys()


def test_several_queues_are_told_apart_by_name(registry: CollectorRegistry) -> None:
    Exporter(idle("a", sends=1), idle("b", sends=2), registry=registry)
    assert values(registry, ADDS) == {"a": 1, "b": 2}


def test_a_queue_can_be_added_later_with_what_it_has_counted(registry: CollectorRegistry) -> None:
    exporter = Exporter(registry=registry)
    assert families(registry) == []
    exporter.add(idle("a", sends=1))
    exporter.add(idle("b", sends=2))
    assert values(registry, ADDS) == {"a": 1, "b": 2}


def test_several_exporters_share_a_registry(registry: CollectorRegistry) -> None:
    first = Exporter(idle("a", sends=1), registry=registry)
    second = Exporter(idle("b", sends=2), registry=registry)
    assert values(registry, ADDS) == {"a": 1, "b": 2}
    first.close()
    assert values(registry, ADDS) == {"b": 2}
    second.close()
    assert families(registry) == []


def test_registries_know_nothing_of_each_other(registry: CollectorRegistry) -> None:
    other = CollectorRegistry()
    queue = idle("a", sends=1)
    Exporter(queue, registry=registry)
    Exporter(queue, registry=other).close()
    assert values(registry, ADDS) == {"a": 1}


def test_without_a_registry_it_is_the_global_one() -> None:
    exporter = Exporter(idle("of the global registry", sends=1))
    try:
        assert REGISTRY.get_sample_value(ADDS, {"name": "of the global registry"}) == 1
    finally:
        exporter.close()
    assert REGISTRY.get_sample_value(ADDS, {"name": "of the global registry"}) is None


def test_a_closed_exporter_can_be_closed_again_and_used_again(registry: CollectorRegistry) -> None:
    exporter = Exporter(idle("a"), registry=registry)
    exporter.close()
    exporter.close()
    exporter.add(idle("a", sends=3))
    assert values(registry, ADDS) == {"a": 3}


def test_what_is_closed_is_not_kept_alive(collect: Callable[[], None], registry: CollectorRegistry) -> None:
    queue = idle("a")
    alive = weakref.ref(queue)
    exporter = Exporter(queue, registry=registry)
    del queue
    collect()
    assert alive() is not None
    exporter.close()
    collect()
    assert alive() is None


def test_a_registry_is_not_kept_alive(collect: Callable[[], None]) -> None:
    registry = CollectorRegistry()
    alive = weakref.ref(registry)
    Exporter(idle("a"), registry=registry)
    del registry
    collect()
    assert alive() is None


def test_a_single_metric_can_be_asked_for(registry: CollectorRegistry) -> None:
    Exporter(idle("a", sends=1), registry=registry)
    text = generate_latest(registry.restricted_registry([ADDS])).decode()
    assert [line for line in text.splitlines() if line[0] != "#"] == ['workqueue_adds_total{name="a"} 1.0']


def test_a_worker_that_is_stuck_is_shown_while_it_is(registry: CollectorRegistry) -> None:
    clock, at_work, go_on = ManualClock(), threading.Event(), threading.Event()

    def overrun(ctx: Context, envelope: Envelope[Any]) -> None:
        at_work.set()
        assert go_on.wait(LIMIT)

    with idle("a", clock=clock, replace_stuck=True) as queue:
        Exporter(queue, registry=registry)
        queue.send(Envelope(overrun, deadline=5))
        assert at_work.wait(LIMIT)
        clock.advance(6)
        assert values(registry, "rate_envelope_queue_stuck") == {"a": 1}
        go_on.set()
    assert values(registry, "rate_envelope_queue_stuck") == {"a": 0}


# What is refused


def test_two_queues_with_one_name_are_refused_by_name(registry: CollectorRegistry) -> None:
    with pytest.raises(BadFieldsError, match="'twin'"):
        Exporter(idle("other"), idle("twin"), idle("twin"), registry=registry)
    assert families(registry) == []  # all or nothing
    exporter = Exporter(idle("twin", sends=1), registry=registry)
    with pytest.raises(BadFieldsError, match="'twin'"):
        exporter.add(idle("other"), idle("twin"))
    with pytest.raises(BadFieldsError, match="'twin'"):
        Exporter(idle("twin"), registry=registry)
    assert values(registry, ADDS) == {"twin": 1}


@pytest.mark.parametrize("kind", [RateEnvelopeQueue, AsyncRateEnvelopeQueue])
def test_a_queue_that_measures_nothing_is_refused(
    registry: CollectorRegistry, kind: Callable[..., Any]
) -> None:
    with pytest.raises(BadFieldsError, match=r"'blind'.*metrics=False"):
        Exporter(idle("a"), kind("blind", workers=1, metrics=False), registry=registry)
    assert families(registry) == []


def test_what_is_no_queue_is_refused(registry: CollectorRegistry) -> None:
    with pytest.raises(BadFieldsError, match="got 'emails'"):
        Exporter("emails", registry=registry)  # type: ignore[arg-type]


def test_names_that_somebody_else_has_registered_are_refused(registry: CollectorRegistry) -> None:
    Counter("workqueue_adds", "mine", registry=registry)
    with pytest.raises(ValueError, match="workqueue_adds"):
        Exporter(idle("a"), registry=registry)
    assert "workqueue_depth" not in [family.name for family in families(registry)]


def test_without_prometheus_client_the_import_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    monkeypatch.delitem(sys.modules, prometheus.__name__)
    with pytest.raises(ImportError, match=r"pip install 'rate-envelope-queue\[prometheus\]'"):
        importlib.import_module(prometheus.__name__)


# The asyncio queue, which may be read on its loop only


async def noop(ctx: Context, envelope: Envelope[Any]) -> None: ...


def test_a_scrape_from_another_thread_loses_no_count(registry: CollectorRegistry) -> None:
    """Read directly while the loop works, the histograms lose counts and the places change under the reader."""
    envelopes = 20_000
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)

    async def main() -> None:
        async with AsyncRateEnvelopeQueue("a", workers=8) as queue:
            Exporter(queue, registry=registry)
            over = threading.Event()
            scraping = asyncio.create_task(asyncio.to_thread(scrape_until, over))
            for _ in range(envelopes // 500):
                await queue.send(*(Envelope(noop) for _ in range(250)))
                await queue.send(*(Envelope(noop) for _ in range(250)), delay=1e-4)
                await queue.join()
            await queue.stop()
            over.set()
            assert await scraping > 0

    def scrape_until(over: threading.Event) -> int:
        scrapes = 0
        while not over.is_set():
            assert values(registry, ADDS).keys() == {"a"}
            scrapes += 1
        return scrapes

    try:
        asyncio.run(main())
    finally:
        sys.setswitchinterval(interval)
    left = values(registry, "rate_envelope_queue_occupied")["a"]  # delayed, and kept for another start
    assert values(registry, "workqueue_queue_duration_seconds_count") == {"a": envelopes - left}
    assert values(registry, "workqueue_work_duration_seconds_count") == {"a": envelopes - left}


def test_a_scrape_on_the_loop_itself_does_not_wait_for_it(registry: CollectorRegistry) -> None:
    async def main() -> None:
        async with AsyncRateEnvelopeQueue("a", workers=1) as queue:
            Exporter(queue, registry=registry)
            await queue.send(Envelope(noop))
            assert values(registry, ADDS) == {"a": 1}

    asyncio.run(main())


def test_before_the_start_and_after_the_end_of_its_loop_a_queue_is_shown(registry: CollectorRegistry) -> None:
    async def main() -> None:
        async with queue:
            await queue.send(Envelope(noop))

    queue = AsyncRateEnvelopeQueue("a", workers=1)
    Exporter(queue, registry=registry)
    assert values(registry, ADDS) == {"a": 0}
    asyncio.run(main())
    assert values(registry, ADDS) == {"a": 1}
    asyncio.run(main())  # on another loop
    assert values(registry, ADDS) == {"a": 2}


def test_queues_whose_loop_is_blocked_are_left_out_and_waited_for_only_once(
    registry: CollectorRegistry,
    loop: asyncio.AbstractEventLoop,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    blocked, go_on = threading.Event(), threading.Event()
    waits: list[float] = []

    class Noting(Future[Any]):
        def result(self, timeout: float | None = None) -> Any:
            waits.append(timeout or 0)
            return super().result(timeout)

    def block() -> None:
        blocked.set()
        assert go_on.wait(LIMIT)

    asleep = [AsyncRateEnvelopeQueue(name, workers=1) for name in ("asleep", "asleep, too")]
    for queue in asleep:
        asyncio.run_coroutine_threadsafe(queue.start(), loop).result(LIMIT)
    Exporter(asleep[0], idle("awake"), asleep[1], registry=registry)
    monkeypatch.setattr(prometheus, "PATIENCE", 0.01)
    monkeypatch.setattr(prometheus, "Future", Noting)
    loop.call_soon_threadsafe(block)
    assert blocked.wait(LIMIT)
    try:
        assert values(registry, ADDS) == {"awake": 0}
        assert len(waits) == 3
        assert sum(waits) < 0.015
        assert [record.levelname for record in caplog.records] == ["WARNING"] * 2
        assert "queue 'asleep': left out of a scrape: no answer from its loop within 0.01 s" in caplog.text
    finally:
        go_on.set()
    monkeypatch.setattr(prometheus, "PATIENCE", LIMIT)
    assert values(registry, ADDS) == {"asleep": 0, "awake": 0, "asleep, too": 0}
    for queue in asleep:
        asyncio.run_coroutine_threadsafe(queue.stop(), loop).result(LIMIT)


def test_a_queue_that_cannot_be_read_does_not_spoil_the_scrape(
    registry: CollectorRegistry, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise RuntimeError("dictionary changed size during iteration")

    broken = idle("broken")
    monkeypatch.setattr(broken, "metrics", fail)
    Exporter(broken, idle("fine"), registry=registry)
    assert values(registry, ADDS) == {"fine": 0}
    assert "queue 'broken': left out of a scrape: RuntimeError: dictionary changed size" in caplog.text


# The example


def test_the_example_serves_a_page_that_parses() -> None:
    command = [sys.executable, "-X", "dev", "-W", "error", str(EXAMPLE)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    parsed = text_string_to_metric_families(ended.stdout)
    shown = {(sample.name, sample.labels["name"]): sample.value for each in parsed for sample in each.samples}
    assert shown == {
        ("workqueue_adds_total", "mails"): 4,
        ("workqueue_adds_total", "reports"): 0,
        ("workqueue_work_duration_seconds_count", "mails"): 4,
        ("workqueue_work_duration_seconds_count", "reports"): 0,
        ("workqueue_retries_total", "mails"): 1,
        ("workqueue_retries_total", "reports"): 0,
        ("rate_envelope_queue_occupied", "mails"): 0,
        ("rate_envelope_queue_occupied", "reports"): 1,
    }
