"""Watch: events, complete and in order, watches that wake up, and the workers that are listed."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from msgspec.structs import replace

from ..model.counts import ChildInfo, JobEvent, WorkerInfo
from ..model.gate import Limit
from ..model.job import JobStatus, Move
from ..model.lease import Claim
from ..stores.base import News, Store, Watch
from .durable.tools import record
from .harness import StoreHarness
from .reading import ids, look
from .tools import BOOM, finish, new_job, put, rescue_after, started, take, take_one

PATIENCE = 20.0
"""Seconds that a wake-up may take before the test gives up."""


ONE_AT_ONCE = Limit(type="work", concurrency=1)
ONE_OF_A_KEY = Limit(type="work", concurrency=1, is_keyed=True)


def story(events: list[JobEvent]) -> list[tuple[str, JobStatus, int]]:
    return [(event.id, event.status, event.attempts) for event in events]


def take_mail(store: Store) -> Claim:
    (claim,) = take(store, types=["mail"])
    return claim


def take_ahead(store: Store) -> Claim:
    (claim,) = take(store, begin=0)
    return claim


Change = Callable[["Store", Claim], object]
"""By another handle; the claim is that of the job `running`."""
WORK: dict[str, Change] = {
    "insert": lambda store, _: put(store, new_job("new")),
    "insert of a job for later": lambda store, _: put(store, new_job("new", delay=60)),
    "retry": lambda store, _: store.retry(["failed"]),
    "resume": lambda store, _: store.resume("other"),
    "release": lambda store, claim: store.release([claim.lease]),
    "release of what was claimed ahead": lambda store, _: store.release([take_ahead(store).lease]),
    "run that is to be repeated": lambda store, claim: finish(store, claim, Move.RETRY, error=BOOM, delay=1),
    "run that is put off": lambda store, claim: finish(store, claim, Move.SNOOZE, delay=1),
}
NO_WORK: dict[str, Change] = {
    "claim": lambda store, _: take_one(store),
    "cancel of a running job": lambda store, _: store.cancel(["running"]),
    "cancel of a waiting job": lambda store, _: store.cancel(["waiting"]),
    "run that succeeds": lambda store, claim: finish(store, claim),
    "pause": lambda store, _: store.pause("default"),
}
TOLD = {News.WORK: WORK, News.CHANGES: WORK | NO_WORK}


def with_every_status(store: Store) -> Claim:
    """Jobs that are failed, running and waiting, and a queue that is paused; the claim of the one that runs."""
    finish(store, started(store, "failed"), Move.FAIL, error=BOOM)
    claim = started(store, "running")
    put(store, new_job("waiting"))
    store.pause("other")
    return claim


def wakes_up(watch: Watch, change: Callable[[], object]) -> bool:
    """Is who waits woken by the change?"""
    while watch.wait(0.01):
        pass
    with ThreadPoolExecutor(1) as pool:
        waking = pool.submit(watch.wait, PATIENCE)
        change()
        return waking.result()


def worker(name: str, *, slots: int = 4) -> WorkerInfo:
    return WorkerInfo(
        name=name,
        types=("work", "mail"),
        slots=slots,
        running=("a", "b"),
        started_at=1.5,
        children={"b": ChildInfo(pid=17, memory=2**40, cpu=0.25)},
    )


class Watching:
    def test_every_change_of_a_life_is_an_event(self, store: Store, harness: StoreHarness) -> None:
        assert (store.last_event(), store.events(0, 10)) == (0, [])
        put(store, new_job("a", type="mail", queue="slow", delay=10))
        harness.elapse(11)
        finish(store, take_mail(store), Move.RETRY, error=BOOM, delay=10)
        harness.elapse(11)
        store.release([take_mail(store).lease])
        finish(store, take_mail(store), Move.SNOOZE, delay=10)
        harness.elapse(11)
        take_mail(store)
        rescue_after(store, harness)
        store.cancel(["a"])
        store.retry(["a"])
        finish(store, take_mail(store))
        events = store.events(0, 100)
        assert " ".join(f"{event.status}-{event.attempts}" for event in events) == (
            "scheduled-0 queued-0 running-1 scheduled-1 queued-1 running-2 queued-1 running-2 "
            "scheduled-1 queued-1 running-2 queued-2 cancelled-2 queued-0 running-1 done-1"
        )
        assert {event.id for event in events} == {"a"}
        assert {(event.type, event.queue) for event in events} == {("mail", "slow")}

    def test_events_go_on_after_a_number(self, store: Store) -> None:
        put(store, *(new_job(f"j{n}") for n in range(5)))
        events = store.events(0, 100)
        numbers = [event.number for event in events]
        assert numbers == sorted(set(numbers))
        assert numbers[0] > 0
        assert store.last_event() == numbers[-1]
        assert store.events(numbers[1], 2) == events[2:4]
        assert store.events(numbers[-1], 10) == []
        assert store.events(0, 3) == events[:3]
        put(store, new_job("next"))
        assert story(store.events(numbers[-1], 10)) == [("next", JobStatus.QUEUED, 0)]

    def test_batch_tells_of_its_jobs_in_order(self, store: Store) -> None:
        store.insert([[new_job("b"), new_job("a")], [new_job("d"), new_job("b", "other")], [new_job("c")]])
        assert ids(store.events(0, 10)) == ["b", "a", "c"]

    def test_what_changes_nothing_is_no_event(self, store: Store) -> None:
        claim = started(store, "a")
        last = store.last_event()
        put(store, new_job("a"))
        store.insert([[new_job("a", "other")]])
        store.extend([claim.lease], 60)
        store.cancel(["a"])
        store.retry(["a"])
        store.rescue()
        store.pause("default")
        store.resume("default")
        assert store.last_event() == last
        assert store.events(last, 10) == []

    def test_last_thousand_events_are_kept(self, store: Store) -> None:
        names = [f"j{n}" for n in range(1_500)]
        store.insert([[new_job(id) for id in names[:700]], [new_job(id) for id in names[700:]]])
        assert ids(store.events(0, 10_000))[-1_000:] == names[-1_000:]

    def test_another_handle_sees_the_events(self, store: Store, harness: StoreHarness) -> None:
        with closing(harness.open()) as other:
            put(other, new_job("a"))
            assert story(store.events(0, 10)) == [("a", JobStatus.QUEUED, 0)]
            assert store.last_event() == other.last_event()

    @pytest.mark.parametrize(
        ("news", "change"),
        [(news, change) for news, changes in TOLD.items() for change in changes.values()],
        ids=[f"{news}-{name}" for news, changes in TOLD.items() for name in changes],
    )
    def test_watch_wakes_up_for_the_news_that_another_makes(
        self, store: Store, harness: StoreHarness, news: News, change: Change
    ) -> None:
        claim = with_every_status(store)
        with closing(harness.open()) as other, closing(store.watch(news)) as watch:
            assert wakes_up(watch, lambda: change(other, claim))

    @pytest.mark.parametrize("limit", [ONE_AT_ONCE, ONE_OF_A_KEY], ids=["type", "key"])
    def test_watch_for_work_wakes_up_when_a_limit_lets_another_job_in(
        self, store: Store, harness: StoreHarness, limit: Limit
    ) -> None:
        put(store, new_job("a", key="k"), new_job("b", key="k"))
        (claim,) = store.claim("w1", ["work"], 2, 60, [limit]).claims
        with closing(harness.open()) as other, closing(store.watch(News.WORK)) as watch:
            assert wakes_up(watch, lambda: finish(other, claim))

    @pytest.mark.parametrize("change", NO_WORK.values(), ids=NO_WORK)
    def test_watch_for_work_sleeps_through_what_makes_none(
        self, store: Store, harness: StoreHarness, change: Change
    ) -> None:
        if not (store.capabilities.push and store.capabilities.shared):
            pytest.skip("it wakes up for whatever happens")
        claim = with_every_status(store)
        with closing(harness.open()) as other, closing(store.watch(News.WORK)) as watch:
            while watch.wait(0.01):
                pass
            change(other, claim)
            assert not watch.wait(0.05)

    def test_watch_for_work_sleeps_through_steps(self, store: Store, harness: StoreHarness) -> None:
        """A job that records many of them must not have every worker look for work each time."""
        claim = started(store, "running")
        with closing(harness.open()) as other, closing(store.watch(News.WORK)) as watch:
            while watch.wait(0.01):
                pass
            assert record(other, claim, "charge") == [True]
            assert not watch.wait(0.05)

    @pytest.mark.parametrize("news", News)
    def test_every_watch_remembers_what_changed_before_it_waits(
        self, store: Store, harness: StoreHarness, news: News
    ) -> None:
        with (
            closing(harness.open()) as other,
            closing(store.watch(news)) as one,
            closing(other.watch(news)) as two,
        ):
            with closing(harness.open()) as third:
                put(third, new_job("a"))
            assert one.wait(PATIENCE)
            assert two.wait(PATIENCE)

    def test_watch_does_not_cry_for_ever(self, store: Store) -> None:
        put(store, new_job("a"))
        with closing(store.watch(News.CHANGES)) as watch:
            assert not all(watch.wait(0.01) for _ in range(50))

    def test_closing_a_watch_wakes_who_waits_on_it(self, store: Store) -> None:
        watch = store.watch(News.CHANGES)
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(watch.wait, 600.0)
            watch.close()
            waiting.result(timeout=PATIENCE)

    # Workers

    def test_worker_is_known_for_so_long(self, store: Store, harness: StoreHarness) -> None:
        assert store.workers() == []
        store.beat(worker("w2"), 60)
        store.beat(worker("w1"), 300)
        assert [replace(known, seen_at=0.0) for known in store.workers()] == [worker("w1"), worker("w2")]
        harness.elapse(61)
        assert [known.name for known in store.workers()] == ["w1"]
        store.beat(worker("w2"), 60)
        assert [known.name for known in store.workers()] == ["w1", "w2"]

    def test_worker_that_beats_lives_on_until_it_leaves(self, store: Store, harness: StoreHarness) -> None:
        for slots in (1, 2, 3):
            store.beat(worker("w1", slots=slots), 60)
            harness.elapse(40)
        store.beat(worker("w2"), 60)
        assert [(known.name, known.slots) for known in store.workers()] == [("w1", 3), ("w2", 4)]
        for name in ("w1", "never-known"):
            store.beat(worker(name), 0)
        assert [known.name for known in store.workers()] == ["w2"]

    def test_worker_is_seen_by_the_clock_of_the_store(self, store: Store) -> None:
        put(store, new_job("a"))
        store.beat(worker("w1"), 60)
        (known,) = store.workers()
        assert known.seen_at == pytest.approx(look(store, "a").created_at.timestamp(), abs=30)
        assert known.started_at == 1.5

    def test_hostile_worker_comes_back_equal(self, store: Store) -> None:
        text = "'; DROP TABLE workers; -- \" \\ %s $1 \U0001f680"
        info = WorkerInfo(name=text, types=(text, "b"), slots=1, running=(), started_at=0.1)
        store.beat(info, 60)
        assert [replace(known, seen_at=0.0) for known in store.workers()] == [info]
