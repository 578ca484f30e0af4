"""Scheduling: schedules are kept, and a tick puts its job in once, whole or not at all."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest
from msgspec.structs import replace

from ..errors import JobConflictError, QueueFullError
from ..model.job import JobStatus
from ..model.newjob import NewJob, Receipt, Refusal
from ..model.schedule import Missed, ScheduleEntry
from ..stores.base import News, Store
from .harness import StoreHarness, from_all_sides
from .reading import look, tally, totals
from .tools import new_job, put, take_one

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


CRON: dict[str, Any] = {"every": None, "cron": "* * * * *", "tz": "UTC"}


def fire(
    store: Store, number: int, job: NewJob | None, name: str = "s", **options: int
) -> Receipt | Refusal | None:
    """The tick of that number, counted from 1: each minute has one."""
    at = START + 60 * number
    return store.fire_tick(name, at, at + 60, job, **options)


def the_one(store: Store) -> ScheduleEntry:
    (entry,) = store.schedules().entries
    return entry


class Scheduling:
    def test_new_schedule_is_kept_as_it_is(self, store: Store, harness: StoreHarness) -> None:
        entries = [
            replace(ENTRY, name="a"),
            replace(ENTRY, name="b", every=None, cron="0 3 * * *", tz="Europe/Berlin", missed=Missed.NONE),
            replace(ENTRY, name="c", payload='"ü\\u0000"'.encode(), every=0.1),
            replace(ENTRY, name="d", anchor_at=0.1, next_at=0.30000000000000004),
            replace(ENTRY, name="e", last_at=START, last_job="s@before"),
            replace(ENTRY, name="f", is_paused=True),
        ]
        assert [store.put_schedule(entry) for entry in entries] == entries
        with closing(harness.open()) as other:
            assert other.schedules().entries == store.schedules().entries == entries

    def test_schedules_are_listed_by_name_with_the_time(self, store: Store, harness: StoreHarness) -> None:
        assert store.schedules().entries == []
        for name in ("b", "a", "C"):
            store.put_schedule(replace(ENTRY, name=name))
        before = store.schedules()
        assert [entry.name for entry in before.entries] == ["C", "a", "b"]
        harness.elapse(100)
        assert store.schedules().now - before.now == pytest.approx(100, abs=5)

    def test_schedule_with_the_same_timing_keeps_its_ticks(self, store: Store) -> None:
        store.put_schedule(ENTRY)
        fire(store, 1, new_job("t1"))
        changed = replace(ENTRY, type="other", queue="q", payload=b"null", missed=Missed.NONE)
        answer = store.put_schedule(
            replace(changed, anchor_at=START + 7, next_at=START + 67, last_at=1.0, last_job="x")
        )
        assert answer == the_one(store)
        assert answer == replace(changed, next_at=START + 120, last_at=START + 60, last_job="t1")

    def test_schedule_with_another_timing_begins_anew_and_remembers_its_last_job(self, store: Store) -> None:
        for n, (before, after) in enumerate(
            [
                ({"every": 60.0}, {"every": 61.0}),
                ({"every": 60.0}, CRON),
                (CRON, {"every": 60.0}),
                (CRON, CRON | {"cron": "0 * * * *"}),
                (CRON, CRON | {"tz": "Asia/Tokyo"}),
            ]
        ):
            entry = replace(ENTRY, name=f"s{n}")
            store.put_schedule(replace(entry, **before))
            fire(store, 1, new_job(f"t{n}"), entry.name)
            wanted = replace(entry, **after, anchor_at=START + 7, next_at=START + 68)
            assert store.put_schedule(wanted) == replace(wanted, last_at=START + 60, last_job=f"t{n}")
            assert fire(store, 2, new_job("late"), entry.name) is None
            assert tally(store) == {JobStatus.QUEUED: n + 1}

    def test_dropped_schedule_is_gone_and_its_jobs_stay(self, store: Store) -> None:
        store.put_schedule(ENTRY)
        store.put_schedule(replace(ENTRY, name="other"))
        fire(store, 1, new_job("t1"))
        assert store.drop_schedule("s")
        assert not store.drop_schedule("s")
        assert [entry.name for entry in store.schedules().entries] == ["other"]
        assert fire(store, 2, new_job("t2")) is None
        assert tally(store) == {JobStatus.QUEUED: 1}

    def test_schedule_that_comes_back_after_a_drop_is_a_new_one(self, store: Store) -> None:
        store.put_schedule(ENTRY)
        fire(store, 1, new_job("t1"))
        store.pause_schedule("s")
        assert store.drop_schedule("s")
        again = replace(ENTRY, anchor_at=START + 70, next_at=START + 130)
        assert store.put_schedule(again) == again

    def test_tick_puts_its_job_in_and_goes_on(self, store: Store) -> None:
        store.put_schedule(ENTRY)
        assert fire(store, 1, new_job("t1", {"x": 1})) == Receipt("t1", JobStatus.QUEUED, True)
        assert the_one(store) == replace(ENTRY, next_at=START + 120, last_at=START + 60, last_job="t1")
        assert look(store, "t1").payload == {"x": 1}
        assert [event.id for event in store.events(0, 10)] == ["t1"]
        assert take_one(store).id == "t1"

    def test_tick_wakes_those_who_wait(self, store: Store, harness: StoreHarness) -> None:
        store.put_schedule(ENTRY)
        with closing(harness.open()) as other, closing(other.watch(News.WORK)) as watch:
            watch.wait(0)
            fire(store, 1, new_job("t1"))
            assert watch.wait(20)

    def test_tick_that_is_not_the_next_does_nothing(self, store: Store) -> None:
        store.put_schedule(ENTRY)
        for seconds in (0, 59.5, 60.5, 120):
            assert store.fire_tick("s", START + seconds, START + 180, new_job("t1")) is None, seconds
        assert store.fire_tick("unknown", START + 60, START + 180, new_job("t1")) is None
        assert the_one(store) == ENTRY
        assert store.get("t1") is None

    def test_tick_fires_once(self, store: Store) -> None:
        store.put_schedule(ENTRY)
        assert fire(store, 1, new_job("t1")) is not None
        for job in (new_job("t1"), new_job("t2"), None):
            assert store.fire_tick("s", START + 60, START + 300, job) is None
        assert the_one(store).next_at == START + 120
        assert totals(store) == {JobStatus.QUEUED: 1}

    def test_tick_without_a_job_goes_on_and_remembers_the_last_job(self, store: Store) -> None:
        store.put_schedule(ENTRY)
        put(store, new_job("a"))
        assert fire(store, 1, None, capacity=1) is None, "it needs no room"
        assert the_one(store) == replace(ENTRY, next_at=START + 120)
        fire(store, 2, new_job("t2"))
        fire(store, 3, None)
        assert the_one(store) == replace(ENTRY, next_at=START + 240, last_at=START + 120, last_job="t2")
        assert totals(store) == {JobStatus.QUEUED: 2}

    def test_tick_of_a_full_queue_stays_due_with_nothing_half_done(self, store: Store) -> None:
        store.put_schedule(ENTRY)
        put(store, new_job("a"), new_job("b"), new_job("elsewhere", queue="q"))
        last_event = store.last_event()
        answer = fire(store, 1, new_job("t1"), capacity=2)
        assert isinstance(answer, QueueFullError)
        assert (answer.queue, answer.waiting, answer.needed, answer.capacity) == ("default", 2, 1, 2)
        assert the_one(store) == ENTRY
        assert store.get("t1") is None
        assert store.last_event() == last_event
        take_one(store)
        assert fire(store, 1, new_job("t1"), capacity=2) == Receipt("t1", JobStatus.QUEUED, True)
        assert the_one(store).next_at == START + 120

    def test_tick_whose_id_is_taken_by_other_content_stays_due(self, store: Store) -> None:
        store.put_schedule(ENTRY)
        put(store, new_job("t1", "other"))
        answer = fire(store, 1, new_job("t1"))
        assert isinstance(answer, JobConflictError)
        assert answer.id == "t1"
        assert the_one(store) == ENTRY
        assert look(store, "t1").payload == "other"

    def test_tick_whose_job_is_there_already_goes_on(self, store: Store) -> None:
        """Also if it was stored under a former default."""
        store.put_schedule(ENTRY)
        put(store, new_job("t1"), new_job("t2", max_retries=3))
        for number, job in ((1, new_job("t1")), (2, new_job("t2", max_retries=10, former_retries=(3,)))):
            assert fire(store, number, job, capacity=1) == Receipt(job.id, JobStatus.QUEUED, False)
            at = START + 60 * number
            assert the_one(store) == replace(ENTRY, next_at=at + 60, last_at=at, last_job=job.id)
        assert totals(store) == {JobStatus.QUEUED: 2}

    def test_job_of_a_tick_may_be_scheduled(self, store: Store, harness: StoreHarness) -> None:
        store.put_schedule(ENTRY)
        receipt = fire(store, 1, new_job("t1", delay=10))
        assert receipt == Receipt("t1", JobStatus.SCHEDULED, True)
        harness.elapse(11)
        assert take_one(store).id == "t1"

    def test_tick_from_all_sides_is_one_job(self, store: Store, harness: StoreHarness) -> None:
        """Each with a job of its own, so that a second one would be seen."""
        store.put_schedule(ENTRY)
        ticks = [START + 60 * k for k in range(1, 7)]

        def fire_all(handle: Store, number: int) -> list[str | None]:
            answers = [handle.fire_tick("s", at, at + 60, new_job(f"j{number}-{at}")) for at in ticks]
            return [answer.id if isinstance(answer, Receipt) else None for answer in answers]

        found = from_all_sides(harness, fire_all)
        fired = [[id for id in answers if id is not None] for answers in zip(*found, strict=True)]
        assert [len(ids) for ids in fired] == [1] * len(ticks)
        last = ticks[-1]
        assert the_one(store) == replace(ENTRY, next_at=last + 60, last_at=last, last_job=fired[-1][0])
        assert totals(store) == {JobStatus.QUEUED: len(ticks)}

    def test_tick_racing_with_a_change_of_timing_is_before_or_after_it(
        self, store: Store, harness: StoreHarness
    ) -> None:
        """The change always stands in the end, and at most one job was put in."""
        store.put_schedule(ENTRY)
        changed = replace(ENTRY, every=61.0, anchor_at=START + 7, next_at=START + 68)

        def fire_or_change(handle: Store, number: int) -> object:
            return fire(handle, 1, new_job(f"j{number}")) if number < 8 else handle.put_schedule(changed)

        answers = [each for each in from_all_sides(harness, fire_or_change, 9)[:-1] if each is not None]
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
                assert fire(other, 1, job) is None
            paused = replace(ENTRY, is_paused=True)
            assert other.schedules().entries == [replace(ENTRY, name="other"), paused]
            assert totals(other) == {}
            assert fire(other, 1, new_job("t2"), "other") is not None

    def test_resumed_schedule_goes_on_with_the_tick_told(self, store: Store, harness: StoreHarness) -> None:
        store.put_schedule(ENTRY)
        fire(store, 1, new_job("t1"))
        store.pause_schedule("s")
        with closing(harness.open()) as other:
            assert other.resume_schedule("s", START + 120, START + 600)
        assert the_one(store) == replace(ENTRY, next_at=START + 600, last_at=START + 60, last_job="t1")
        assert fire(store, 2, new_job("t2")) is None
        assert fire(store, 10, new_job("t3")) is not None

    def test_only_what_is_paused_at_that_tick_is_resumed(self, store: Store) -> None:
        assert not store.pause_schedule("unknown")
        assert not store.resume_schedule("unknown", START + 60, START + 120)
        assert store.schedules().entries == []
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
        assert fire(store, 1, new_job("t1")) is None

    def test_ticks_racing_with_a_pause_come_before_it(self, store: Store, harness: StoreHarness) -> None:
        """Where the schedule stands tells how many ticks there were, and there is one job for each."""
        store.put_schedule(ENTRY)
        paused_at: list[float] = []

        def fire_or_pause(handle: Store, number: int) -> int:
            if number < 8:
                answers = [fire(handle, tick, new_job(f"j{number}-{tick}")) for tick in range(1, 7)]
                return sum(answer is not None for answer in answers)
            assert handle.pause_schedule("s")
            paused_at.append(the_one(handle).next_at)
            return 0

        fired = sum(from_all_sides(harness, fire_or_pause, 9))
        entry = the_one(store)
        assert (entry.is_paused, [entry.next_at]) == (True, paused_at)
        assert entry.next_at == START + 60 * (fired + 1)
        assert totals(store) == ({JobStatus.QUEUED: fired} if fired else {})
