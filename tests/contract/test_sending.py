"""Sending: deduplication as in client-go's work queue, capacity, delay, priority, cancel and the order of checks."""

from __future__ import annotations

import logging
import threading
from typing import Any

import pytest

from rate_envelope_queue import (
    BadFieldsError,
    CapacityExceededError,
    EnvelopeBlacklistedError,
    QueueNotRunningError,
    QueueState,
    QueueTerminatedError,
    StopEnvelope,
    StopType,
)

from ..support.gates import Gate
from ..support.waiting import LIMIT, eventually
from .conftest import Driver


def test_a_list_of_envelopes_gets_a_hint(driver: Driver) -> None:
    with pytest.raises(BadFieldsError, match=r"must be an Envelope, got \[\]; give them one by one"):
        driver.queue().send([])  # type: ignore[arg-type]


def test_sent_again_while_it_waits_runs_once(driver: Driver) -> None:
    queue = driver.queue(start=False)
    envelope = driver.envelope()
    for _ in range(5):
        queue.send(envelope, envelope)
    assert queue.occupied == 1
    queue.start()
    assert queue.join(LIMIT)
    assert (queue.stats().added, queue.stats().done) == (1, 1)


def test_sent_again_while_it_runs_runs_exactly_once_more(driver: Driver, gate: Gate) -> None:
    queue = driver.queue(workers=3)
    envelope = driver.envelope(gate.pass_through)
    queue.send(envelope)
    gate.wait_reached()
    for _ in range(5):
        queue.send(envelope)
    assert (queue.stats().running, queue.occupied) == (1, 1), "never twice at the same time"
    gate.open(2)
    assert queue.join(LIMIT)
    assert queue.stats().done == 2


def test_sent_again_while_it_runs_runs_again_even_after_stop_envelope(driver: Driver, gate: Gate) -> None:
    runs: list[int] = []

    def work(ctx: Any, envelope: Any) -> None:
        runs.append(ctx.attempt)
        gate.pass_through()
        raise StopEnvelope

    queue = driver.queue()
    envelope = driver.envelope(work)
    queue.send(envelope)
    gate.wait_reached()
    queue.send(envelope)
    gate.open(2)
    assert queue.join(LIMIT)
    assert runs == [1, 1]
    assert queue.occupied == 0


def test_a_drain_runs_what_was_sent_again_during_its_run(driver: Driver, gate: Gate) -> None:
    queue = driver.queue(waiting=False)
    envelope = driver.envelope(gate.pass_through)
    queue.send(envelope)
    gate.wait_reached()
    queue.send(envelope)
    queue.stop()
    gate.open(2)
    queue.join(LIMIT)
    assert queue.stats().done == 2


def test_the_earlier_of_two_delays_wins(driver: Driver) -> None:
    ran: list[float] = []
    queue = driver.queue()
    envelope = driver.envelope(lambda ctx, envelope: ran.append(driver.clock.now()))
    queue.send(envelope, delay=30)
    queue.send(envelope, delay=10)
    queue.send(envelope, delay=20)
    assert queue.occupied == 1
    driver.advance(60)
    assert ran == [10]


def test_delayed_and_sent_without_a_delay_runs_now_and_once(driver: Driver) -> None:
    queue = driver.queue()
    envelope = driver.envelope()
    queue.send(envelope, delay=30)
    queue.send(envelope)
    assert queue.join(LIMIT)
    assert (queue.stats().done, queue.occupied) == (1, 0)
    driver.advance(60)
    assert queue.stats().done == 1


def test_delayed_envelopes_come_due_in_time_order(driver: Driver) -> None:
    ran: list[object] = []
    queue = driver.queue()
    for delay in (30, 10, 20, 10.5):
        queue.send(driver.envelope(lambda ctx, envelope: ran.append(envelope.id), id=delay), delay=delay)
    driver.advance("1 min")
    assert ran == [10, 10.5, 20, 30]


def test_sent_again_during_its_run_with_a_delay_waits_that_long(driver: Driver, gate: Gate) -> None:
    queue = driver.queue()
    envelope = driver.envelope(gate.pass_through)
    queue.send(envelope)
    gate.wait_reached()
    queue.send(envelope, delay=10)
    gate.open()
    assert queue.join(LIMIT)
    assert (queue.stats().delayed, queue.stats().done) == (1, 1)
    gate.open()
    driver.advance(10)
    assert queue.stats().done == 2


def test_with_a_key_the_first_that_waits_stays(driver: Driver) -> None:
    ran: list[object] = []
    queue = driver.queue(start=False)
    for i in range(3):
        queue.send(driver.envelope(lambda ctx, envelope: ran.append(envelope.id), id=i, key="same"))
    assert queue.occupied == 1
    queue.start()
    assert queue.join(LIMIT)
    assert ran == [0]


def test_with_a_key_the_newest_sent_during_a_run_runs_next(driver: Driver, gate: Gate) -> None:
    ran: list[object] = []

    def work(ctx: Any, envelope: Any) -> None:
        ran.append(envelope.id)
        gate.pass_through()

    queue = driver.queue(workers=2)
    queue.send(driver.envelope(work, id="first", key="same"))
    gate.wait_reached()
    queue.send(driver.envelope(work, id="second", key="same"))
    queue.send(driver.envelope(work, id="third", key="same"))
    gate.open(2)
    assert queue.join(LIMIT)
    assert ran == ["first", "third"]


def test_a_one_off_sent_during_a_run_takes_the_place_of_a_periodic_one_with_its_key(
    driver: Driver, gate: Gate
) -> None:
    queue = driver.queue()
    queue.send(driver.envelope(gate.pass_through, key="k", interval=10))
    gate.wait_reached()
    queue.send(driver.envelope(key="k"))
    gate.open()
    assert queue.join(LIMIT)
    assert (queue.stats().done, queue.occupied) == (2, 0)


def test_higher_priority_first_and_equal_ones_in_order_of_arrival(driver: Driver) -> None:
    ran: list[object] = []
    queue = driver.queue(start=False)
    for id, priority in [("a", 0), ("b", 5), ("c", -1), ("d", 5), ("e", 0), ("f", 9)]:
        queue.send(driver.envelope(lambda ctx, envelope: ran.append(envelope.id), id=id, priority=priority))
    queue.start()
    assert queue.join(LIMIT)
    assert ran == ["f", "b", "d", "a", "e", "c"]


def test_capacity_refuses_all_of_a_send_that_does_not_fit(driver: Driver) -> None:
    queue = driver.queue(start=False, capacity=3)
    waiting = driver.envelope()
    queue.send(waiting, driver.envelope())
    with pytest.raises(CapacityExceededError) as caught:
        queue.send(driver.envelope(), driver.envelope(), waiting)
    assert (caught.value.capacity, caught.value.occupied, caught.value.needed) == (3, 2, 2)
    assert queue.occupied == 2
    queue.send(waiting, driver.envelope())
    assert queue.occupied == 3
    queue.send(waiting)  # it waits already: costs nothing, even in a full queue


def test_an_envelope_occupies_one_place_until_it_is_finished_for_good(driver: Driver, gate: Gate) -> None:
    from rate_envelope_queue import retry_after

    def fail(ctx: Any, envelope: Any) -> None:
        gate.pass_through()
        if ctx.attempt == 1:
            raise ValueError

    queue = driver.queue(capacity=1)
    envelope = driver.envelope(fail, failure_hook=lambda ctx, envelope, error: retry_after(10))
    queue.send(envelope)
    gate.wait_reached()
    queue.send(envelope)
    assert queue.occupied == 1
    gate.open()
    gate.wait_reached()
    assert queue.occupied == 1
    gate.open()
    assert queue.join(LIMIT)
    assert queue.occupied == 0
    queue.send(driver.envelope())


def test_a_reschedule_never_fails_for_capacity(driver: Driver) -> None:
    queue = driver.queue(capacity=1)
    queue.send(driver.envelope(interval=1))
    driver.advance(3)
    assert (queue.stats().done, queue.occupied) == (4, 1)


def test_a_blocking_send_waits_for_room(driver: Driver, gate: Gate) -> None:
    queue = driver.queue(capacity=1)
    queue.send(driver.envelope(gate.pass_through))
    gate.wait_reached()
    sent = threading.Thread(target=lambda: queue.send(driver.envelope(), block=True, timeout=LIMIT))
    sent.start()
    gate.open()
    sent.join(LIMIT)
    assert not sent.is_alive()
    assert queue.join(LIMIT)
    assert queue.stats().done == 2


def test_blocking_senders_get_in_one_after_the_other_and_never_exceed_the_capacity(driver: Driver) -> None:
    over: list[int] = []
    queue = driver.queue(capacity=2, workers=2)

    def work(ctx: Any, envelope: Any) -> None:
        if queue._core.backlog.occupied > 2:  # type: ignore[attr-defined]
            over.append(1)

    def produce() -> None:
        for _ in range(20):
            queue.send(driver.envelope(work), block=True, timeout=LIMIT)

    producers = [threading.Thread(target=produce) for _ in range(4)]
    for producer in producers:
        producer.start()
    for producer in producers:
        producer.join()
    assert queue.join(LIMIT)
    assert queue.stats().done == 80
    assert not over


def test_a_blocking_send_gives_up_when_its_time_is_over(driver: Driver) -> None:
    queue = driver.queue(capacity=1, start=False)
    queue.send(driver.envelope())
    with pytest.raises(CapacityExceededError):
        queue.send(driver.envelope(), block=True, timeout=0.01)
    assert queue.occupied == 1


def test_a_blocking_send_that_can_never_fit_fails_at_once(driver: Driver) -> None:
    queue = driver.queue(capacity=2, start=False)
    with pytest.raises(CapacityExceededError) as caught:
        queue.send(*[driver.envelope() for _ in range(3)], block=True)
    assert caught.value.needed == 3


@pytest.mark.parametrize(
    ("end", "error"), [("stop", QueueNotRunningError), ("terminate", QueueTerminatedError)]
)
def test_a_stop_ends_a_blocking_send(driver: Driver, gate: Gate, end: str, error: type[Exception]) -> None:
    queue = driver.queue(capacity=1, waiting=False)
    queue.send(driver.envelope(gate.pass_through))
    gate.wait_reached()
    caught: list[Exception] = []

    def send() -> None:
        try:
            queue.send(driver.envelope(), block=True)
        except Exception as raised:
            caught.append(raised)

    sender = threading.Thread(target=send)
    sender.start()
    while not queue._waiters.senders:  # type: ignore[attr-defined]
        threading.Event().wait(0.001)
    getattr(queue, end)()
    sender.join(LIMIT)
    assert isinstance(caught[0], error)
    gate.open()


def test_send_checks_fields_then_state_then_blacklist_then_capacity(driver: Driver) -> None:
    def stop_type(ctx: Any, envelope: Any) -> None:
        raise StopType

    queue = driver.queue(capacity=1)
    queue.send(driver.envelope(stop_type, type="bad"))
    assert queue.join(LIMIT)
    queue.pause()
    queue.send(driver.envelope())
    two = (driver.envelope(type="bad"), driver.envelope())
    with pytest.raises(EnvelopeBlacklistedError):
        queue.send(*two)
    queue.allow("bad")
    with pytest.raises(CapacityExceededError):
        queue.send(*two)
    queue.stop()
    with pytest.raises(QueueNotRunningError):
        queue.send(*two)
    with pytest.raises(BadFieldsError):
        queue.send(*two, delay=-1)
    assert queue.occupied == 1


def test_cancel_takes_a_waiting_envelope_out_for_good(driver: Driver) -> None:
    queue = driver.queue(start=False)
    ready, delayed, other = driver.envelope(), driver.envelope(), driver.envelope()
    queue.send(ready, other)
    queue.send(delayed, delay=5)
    assert queue.cancel(ready) is True
    assert queue.cancel(delayed) is True
    assert queue.cancel(ready) is False
    assert (queue.occupied, queue.stats().dropped) == (1, 2)
    queue.start()
    driver.advance(10)
    assert queue.stats().done == 1


def test_cancel_finds_an_envelope_by_its_key(driver: Driver) -> None:
    queue = driver.queue(start=False)
    queue.send(driver.envelope(key=7))
    assert queue.cancel(driver.envelope(key=7)) is True
    assert queue.occupied == 0


def test_cancel_of_a_running_envelope_cancels_its_context_and_finishes_it(
    driver: Driver, gate: Gate, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "rate_envelope_queue")
    seen: list[bool] = []

    def work(ctx: Any, envelope: Any) -> None:
        gate.pass_through()
        seen.append(ctx.done)

    queue = driver.queue()
    envelope = driver.envelope(work, interval=1)
    queue.send(envelope)
    gate.wait_reached()
    queue.send(envelope)  # given up, too
    assert queue.cancel(envelope) is True
    gate.open()
    assert queue.join(LIMIT)
    eventually(lambda: seen == [True])
    assert queue.occupied == 0
    driver.advance(10)
    stats = queue.stats()
    assert (stats.done, stats.failed, stats.dropped) == (0, 1, 1)
    (record,) = caplog.records
    assert record.levelname == "INFO", "it was wanted"
    assert "failed (attempt 1), it was cancelled: " in record.getMessage()


def test_what_is_sent_after_a_cancel_counts(driver: Driver, gate: Gate) -> None:
    queue = driver.queue()
    envelope = driver.envelope(gate.pass_through)
    queue.send(envelope)
    gate.wait_reached()
    queue.cancel(envelope)
    queue.send(envelope)
    gate.open(2)
    gate.wait_reached()
    assert queue.join(LIMIT)
    assert queue.stats().done == 1
    assert queue.occupied == 0


def test_cancelled_and_sent_again_goes_to_the_end_of_the_line(driver: Driver) -> None:
    ran: list[object] = []
    queue = driver.queue(start=False)
    first, second = (driver.envelope(lambda ctx, e: ran.append(e.id), id=i) for i in (1, 2))
    queue.send(first, second)
    queue.cancel(first)
    queue.send(first)
    queue.start()
    assert queue.join(LIMIT)
    assert ran == [2, 1]


def test_send_of_nothing_does_nothing(driver: Driver) -> None:
    queue = driver.queue()
    queue.send()
    assert (queue.state, queue.occupied) == (QueueState.RUNNING, 0)


@pytest.mark.parametrize("wrong", [None, "text", 5, [], lambda ctx, envelope: None])
def test_what_is_no_envelope_is_refused_and_nothing_changes(driver: Driver, wrong: Any) -> None:
    queue = driver.queue()
    with pytest.raises(BadFieldsError, match="Envelope"):
        queue.send(wrong)
    with pytest.raises(BadFieldsError, match="Envelope"):
        queue.send(driver.envelope(), wrong)
    with pytest.raises(BadFieldsError, match="Envelope"):
        queue.cancel(wrong)
    assert (queue.occupied, queue.stats().added) == (0, 0)


@pytest.mark.parametrize("delay", [-1, float("nan"), float("inf"), "5", None, True])
def test_a_bad_delay_is_refused_and_nothing_changes(driver: Driver, delay: Any) -> None:
    queue = driver.queue()
    with pytest.raises(BadFieldsError, match="delay"):
        queue.send(driver.envelope(), delay=delay)
    assert queue.occupied == 0


@pytest.mark.parametrize("timeout", [-1, float("nan"), "5", True])
def test_a_bad_timeout_is_refused_by_every_call_that_takes_one(driver: Driver, timeout: Any) -> None:
    queue = driver.queue()
    with pytest.raises(BadFieldsError, match="timeout"):
        queue.send(driver.envelope(), block=True, timeout=timeout)
    with pytest.raises(BadFieldsError, match="timeout"):
        queue.join(timeout)
    with pytest.raises(BadFieldsError, match="timeout"):
        queue.stop(timeout)
    assert queue.state is QueueState.RUNNING
