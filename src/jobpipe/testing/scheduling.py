"""Scheduling: schedules are kept, and a tick puts its job in once, whole or not at all."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from ..errors import JobConflictError, QueueFullError
from ..model.job import JobStatus
from ..model.newjob import NewJob, Receipt
from ..model.schedule import Missed, ScheduleEntry
from ..stores.base import News, Store
from .harness import StoreHarness
from .tools import handles, look, new_job, put, take_one, tally, together, totals

THREADS = 16
START = 1_800_000_000.25
"""An instant with a fraction, as most have."""
ENTRY = ScheduleEntry(
    name="s",
    type="work",
    queue="default",
    payload=b'{"x":[1]}',
    every=60.0,
    anchor_at=START,
    next_at=START + 60,
)


def the_one(store: Store) -> ScheduleEntry:
    (entry,) = store.schedules().entries
    return entry


class Scheduling:
    @pytest.mark.parametrize(
        "entry",
        [
            ENTRY,
            replace(ENTRY, every=None, cron="0 3 * * *", tz="Europe/Berlin", missed=Missed.NONE),
            replace(
                ENTRY, payload='"ü\\u0000"'.encode(), every=0.1, anchor_at=0.1, next_at=0.30000000000000004
            ),
            replace(ENTRY, last_at=START, last_job="s@before"),
            replace(ENTRY, is_paused=True),
        ],
    )
    def test_new_schedule_is_kept_as_it_is(
        self, store: Store, harness: StoreHarness, entry: ScheduleEntry
    ) -> None:
        assert store.put_schedule(entry) == entry
        assert the_one(store) == entry
        with closing(harness.open()) as other:
            assert the_one(other) == entry

    def test_schedules_are_listed_by_name_with_the_time_of_the_store(
        self, store: Store, harness: StoreHarness
    ) -> None:
        assert store.schedules().entries == []
        for name in ("b", "a", "C"):
            store.put_schedule(replace(ENTRY, name=name))
        before = store.schedules()
        assert [entry.name for entry in before.entries] == ["C", "a", "b"]
        harness.elapse(100)
        assert store.schedules().now - before.now == pytest.approx(100, abs=5)

    def test_schedule_with_the_same_timing_keeps_its_ticks(self, store: Store) -> None:
        store.put_schedule(ENTRY)
        store.fire_tick("s", START + 60, START + 120, new_job("t1"))
        changed: dict[str, Any] = {
            "type": "other",
            "queue": "q",
            "payload": b"null",
            "missed": Missed.NONE,
        }
        answer = store.put_schedule(
            replace(ENTRY, **changed, anchor_at=START + 7, next_at=START + 67, last_at=1.0, last_job="x")
        )
        assert answer == the_one(store)
        assert answer == replace(
            ENTRY, **changed, anchor_at=START, next_at=START + 120, last_at=START + 60, last_job="t1"
        )

    @pytest.mark.parametrize(
        ("before", "after"),
        [
            ({"every": 60.0}, {"every": 61.0}),
            ({"every": 60.0}, {"every": None, "cron": "* * * * *", "tz": "UTC"}),
            ({"every": None, "cron": "* * * * *", "tz": "UTC"}, {"every": 60.0}),
            (
                {"every": None, "cron": "* * * * *", "tz": "UTC"},
                {"every": None, "cron": "0 * * * *", "tz": "UTC"},
            ),
            (
                {"every": None, "cron": "* * * * *", "tz": "UTC"},
                {"every": None, "cron": "* * * * *", "tz": "Asia/Tokyo"},
            ),
        ],
    )
    def test_schedule_with_another_timing_begins_anew_and_remembers_its_last_job(
        self, store: Store, before: dict[str, Any], after: dict[str, Any]
    ) -> None:
        store.put_schedule(replace(ENTRY, **before))
        store.fire_tick("s", START + 60, START + 120, new_job("t1"))
        wanted = replace(ENTRY, **after, anchor_at=START + 7, next_at=START + 68)
        assert store.put_schedule(wanted) == replace(wanted, last_at=START + 60, last_job="t1")
        assert store.fire_tick("s", START + 120, START + 180, new_job("t2")) is None
        assert tally(store) == {JobStatus.QUEUED: 1}

    def test_dropped_schedule_is_gone_and_its_jobs_stay(self, store: Store) -> None:
        store.put_schedule(ENTRY)
        store.put_schedule(replace(ENTRY, name="other"))
        store.fire_tick("s", START + 60, START + 120, new_job("t1"))
        assert store.drop_schedule("s")
        assert not store.drop_schedule("s")
        assert [entry.name for entry in store.schedules().entries] == ["other"]
        assert store.fire_tick("s", START + 120, START + 180, new_job("t2")) is None
        assert tally(store) == {JobStatus.QUEUED: 1}

    def test_schedule_that_comes_back_after_a_drop_is_a_new_one(self, store: Store) -> None:
        store.put_schedule(ENTRY)
        store.fire_tick("s", START + 60, START + 120, new_job("t1"))
        store.drop_schedule("s")
        again = replace(ENTRY, anchor_at=START + 70, next_at=START + 130)
        assert store.put_schedule(again) == again

    def test_tick_puts_its_job_in_and_goes_on(self, store: Store) -> None:
        store.put_schedule(ENTRY)
        assert store.fire_tick("s", START + 60, START + 120, new_job("t1", {"x": 1})) == Receipt(
            "t1", JobStatus.QUEUED, True
        )
        assert the_one(store) == replace(ENTRY, next_at=START + 120, last_at=START + 60, last_job="t1")
        assert look(store, "t1").payload == {"x": 1}
        assert [event.id for event in store.events(0, 10)] == ["t1"]
        assert take_one(store).id == "t1"

    def test_tick_wakes_those_who_wait(self, store: Store, harness: StoreHarness) -> None:
        store.put_schedule(ENTRY)
        with closing(harness.open()) as other, closing(other.watch(News.WORK)) as watch:
            watch.wait(0)
            store.fire_tick("s", START + 60, START + 120, new_job("t1"))
            assert watch.wait(20)

    @pytest.mark.parametrize("tick_at", [START, START + 59.5, START + 60.5, START + 120])
    def test_tick_that_is_not_the_next_does_nothing(self, store: Store, tick_at: float) -> None:
        store.put_schedule(ENTRY)
        assert store.fire_tick("s", tick_at, START + 180, new_job("t1")) is None
        assert store.fire_tick("unknown", START + 60, START + 180, new_job("t1")) is None
        assert the_one(store) == ENTRY
        assert store.get("t1") is None

    def test_tick_fires_once(self, store: Store) -> None:
        store.put_schedule(ENTRY)
        assert store.fire_tick("s", START + 60, START + 120, new_job("t1")) is not None
        for job in (new_job("t1"), new_job("t2"), None):
            assert store.fire_tick("s", START + 60, START + 300, job) is None
        assert the_one(store).next_at == START + 120
        assert totals(store) == {JobStatus.QUEUED: 1}

    def test_tick_without_a_job_goes_on_and_remembers_the_last_job(self, store: Store) -> None:
        store.put_schedule(ENTRY)
        assert store.fire_tick("s", START + 60, START + 120, None) is None
        assert the_one(store) == replace(ENTRY, next_at=START + 120)
        store.fire_tick("s", START + 120, START + 180, new_job("t2"))
        store.fire_tick("s", START + 180, START + 240, None)
        assert the_one(store) == replace(ENTRY, next_at=START + 240, last_at=START + 120, last_job="t2")
        assert totals(store) == {JobStatus.QUEUED: 1}

    def test_tick_of_a_full_queue_stays_due_with_nothing_half_done(self, store: Store) -> None:
        store.put_schedule(ENTRY)
        put(store, new_job("a"), new_job("b"), new_job("elsewhere", queue="q"))
        last_event = store.last_event()
        answer = store.fire_tick("s", START + 60, START + 120, new_job("t1"), capacity=2)
        assert isinstance(answer, QueueFullError)
        assert (answer.queue, answer.waiting, answer.needed, answer.capacity) == ("default", 2, 1, 2)
        assert the_one(store) == ENTRY
        assert store.get("t1") is None
        assert store.last_event() == last_event
        take_one(store)
        assert store.fire_tick("s", START + 60, START + 120, new_job("t1"), capacity=2) == Receipt(
            "t1", JobStatus.QUEUED, True
        )
        assert the_one(store).next_at == START + 120

    def test_tick_without_a_job_needs_no_room(self, store: Store) -> None:
        store.put_schedule(ENTRY)
        put(store, new_job("a"))
        assert store.fire_tick("s", START + 60, START + 120, None, capacity=1) is None
        assert the_one(store).next_at == START + 120

    def test_tick_whose_id_is_taken_by_other_content_stays_due(self, store: Store) -> None:
        store.put_schedule(ENTRY)
        put(store, new_job("t1", "other"))
        answer = store.fire_tick("s", START + 60, START + 120, new_job("t1"))
        assert isinstance(answer, JobConflictError)
        assert answer.id == "t1"
        assert the_one(store) == ENTRY
        assert look(store, "t1").payload == "other"

    def test_tick_whose_job_is_there_already_goes_on(self, store: Store) -> None:
        store.put_schedule(ENTRY)
        put(store, new_job("t1"))
        answer = store.fire_tick("s", START + 60, START + 120, new_job("t1"), capacity=1)
        assert answer == Receipt("t1", JobStatus.QUEUED, False)
        assert the_one(store) == replace(ENTRY, next_at=START + 120, last_at=START + 60, last_job="t1")
        assert totals(store) == {JobStatus.QUEUED: 1}

    def test_tick_whose_job_was_stored_under_a_former_default_goes_on(self, store: Store) -> None:
        store.put_schedule(ENTRY)
        put(store, new_job("t1", max_retries=3))
        job = new_job("t1", max_retries=10, former_retries=(3,))
        answer = store.fire_tick("s", START + 60, START + 120, job)
        assert answer == Receipt("t1", JobStatus.QUEUED, False)
        assert the_one(store).last_job == "t1"

    def test_job_of_a_tick_may_be_scheduled(self, store: Store, harness: StoreHarness) -> None:
        store.put_schedule(ENTRY)
        receipt = store.fire_tick("s", START + 60, START + 120, new_job("t1", delay=10))
        assert receipt == Receipt("t1", JobStatus.SCHEDULED, True)
        harness.elapse(11)
        assert take_one(store).id == "t1"

    def test_tick_from_all_sides_is_one_job(self, store: Store, harness: StoreHarness) -> None:
        """Each with a job of its own, so that a second one would be seen."""
        store.put_schedule(ENTRY)
        ticks = [START + 60 * k for k in range(1, 7)]

        def fire(handle: Store, number: int) -> list[str | None]:
            answers = [handle.fire_tick("s", at, at + 60, new_job(f"j{number}-{at}")) for at in ticks]
            return [answer.id if isinstance(answer, Receipt) else None for answer in answers]

        with handles(harness) as several:
            found = together([partial(fire, several[n % len(several)], n) for n in range(THREADS)])
        fired = [[id for id in answers if id is not None] for answers in zip(*found, strict=True)]
        assert [len(ids) for ids in fired] == [1] * len(ticks)
        assert the_one(store) == replace(
            ENTRY, next_at=ticks[-1] + 60, last_at=ticks[-1], last_job=fired[-1][0]
        )
        assert totals(store) == {JobStatus.QUEUED: len(ticks)}

    def test_tick_racing_with_a_change_of_timing_is_before_or_after_it(
        self, store: Store, harness: StoreHarness
    ) -> None:
        """The change always stands in the end, and at most one job was put in."""
        store.put_schedule(ENTRY)
        changed = replace(ENTRY, every=61.0, anchor_at=START + 7, next_at=START + 68)

        def fire(handle: Store, job: NewJob) -> object:
            return handle.fire_tick("s", START + 60, START + 120, job)

        with handles(harness) as several:
            calls: list[Callable[[], object]] = [
                partial(fire, several[n % len(several)], new_job(f"j{n}")) for n in range(8)
            ]
            calls.append(partial(several[0].put_schedule, changed))
            answers = [each for each in together(calls)[:-1] if each is not None]
        entry = the_one(store)
        assert (entry.timing, entry.anchor_at, entry.next_at) == (changed.timing, START + 7, START + 68)
        assert len(answers) <= 1
        assert tally(store) == ({JobStatus.QUEUED: 1} if answers else {})
        assert (entry.last_job is not None) == bool(answers)

    # Pauses

    def test_paused_schedule_fires_no_tick(self, store: Store, harness: StoreHarness) -> None:
        """Whoever asks, also one who has read the entry before."""
        store.put_schedule(ENTRY)
        store.put_schedule(replace(ENTRY, name="other"))
        assert store.pause_schedule("s")
        assert store.pause_schedule("s"), "it is there still"
        with closing(harness.open()) as other:
            for job in (new_job("t1"), None):
                assert other.fire_tick("s", START + 60, START + 120, job) is None
            paused = replace(ENTRY, is_paused=True)
            assert other.schedules().entries == [replace(ENTRY, name="other"), paused]
            assert totals(other) == {}
            assert other.fire_tick("other", START + 60, START + 120, new_job("t2")) is not None

    def test_unknown_schedule_is_neither_paused_nor_resumed(self, store: Store) -> None:
        assert not store.pause_schedule("unknown")
        assert not store.resume_schedule("unknown", START + 60, START + 120)
        assert store.schedules().entries == []

    def test_resumed_schedule_goes_on_with_the_tick_that_is_told(
        self, store: Store, harness: StoreHarness
    ) -> None:
        store.put_schedule(ENTRY)
        store.fire_tick("s", START + 60, START + 120, new_job("t1"))
        store.pause_schedule("s")
        with closing(harness.open()) as other:
            assert other.resume_schedule("s", START + 120, START + 600)
        assert the_one(store) == replace(ENTRY, next_at=START + 600, last_at=START + 60, last_job="t1")
        assert store.fire_tick("s", START + 120, START + 180, new_job("t2")) is None
        assert store.fire_tick("s", START + 600, START + 660, new_job("t3")) is not None

    def test_only_what_is_paused_at_that_tick_is_resumed(self, store: Store) -> None:
        store.put_schedule(ENTRY)
        assert not store.resume_schedule("s", START + 60, START + 600)
        assert the_one(store) == ENTRY
        store.pause_schedule("s")
        assert not store.resume_schedule("s", START + 120, START + 600)
        assert the_one(store) == replace(ENTRY, is_paused=True)
        assert store.resume_schedule("s", START + 60, START + 60)
        assert the_one(store) == ENTRY

    def test_put_undoes_no_pause(self, store: Store) -> None:
        """As a program does that declares it and starts again, also one that declares another timing."""
        store.put_schedule(ENTRY)
        store.pause_schedule("s")
        again = replace(ENTRY, queue="q", anchor_at=START + 7, next_at=START + 67)
        assert store.put_schedule(again) == replace(ENTRY, queue="q", is_paused=True)
        other = replace(ENTRY, every=61.0, anchor_at=START + 7, next_at=START + 68)
        assert store.put_schedule(other) == the_one(store) == replace(other, is_paused=True)
        assert store.fire_tick("s", START + 68, START + 129, new_job("t1")) is None

    def test_put_of_a_paused_entry_pauses(self, store: Store) -> None:
        """As one that comes from another store is."""
        store.put_schedule(ENTRY)
        assert store.put_schedule(replace(ENTRY, is_paused=True)) == replace(ENTRY, is_paused=True)
        assert store.fire_tick("s", START + 60, START + 120, new_job("t1")) is None

    def test_schedule_that_comes_back_after_a_drop_is_not_paused(self, store: Store) -> None:
        store.put_schedule(ENTRY)
        store.pause_schedule("s")
        assert store.drop_schedule("s")
        assert store.put_schedule(ENTRY) == ENTRY

    def test_ticks_racing_with_a_pause_are_before_it_or_never(
        self, store: Store, harness: StoreHarness
    ) -> None:
        """Where the schedule stands tells how many ticks there were, and there is one job for each."""
        store.put_schedule(ENTRY)
        ticks = [START + 60 * k for k in range(1, 7)]

        def fire(handle: Store, number: int) -> int:
            jobs = [new_job(f"j{number}-{at}") for at in ticks]
            answers = [handle.fire_tick("s", at, at + 60, job) for at, job in zip(ticks, jobs, strict=True)]
            return sum(answer is not None for answer in answers)

        def pause(handle: Store) -> int:
            assert handle.pause_schedule("s")
            paused_at.append(the_one(handle).next_at)
            return 0

        paused_at: list[float] = []
        with handles(harness) as several:
            calls = [partial(fire, several[n % len(several)], n) for n in range(8)]
            fired = sum(together([*calls, partial(pause, several[-1])]))
        entry = the_one(store)
        assert (entry.is_paused, [entry.next_at]) == (True, paused_at)
        assert entry.next_at == START + 60 * (fired + 1)
        assert totals(store) == ({JobStatus.QUEUED: fired} if fired else {})
