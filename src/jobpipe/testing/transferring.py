"""Moving jobs to another store: what waits is exported, adopted as it was, and discarded; again, if need be."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from ..errors import JobConflictError
from ..model.job import PENDING, JobStatus, Move, OnDuplicate
from ..stores.base import Store
from .harness import StoreHarness
from .reading import ids, look, tally
from .tools import BOOM, bring_one_to_each, finish, move_away_and_back, new_job, put, started, take, take_one


class Transferring:
    def test_export_gives_what_waits_in_the_order_of_insertion(self, store: Store) -> None:
        bring_one_to_each(store)
        put(store, new_job("later", delay=60), new_job("last", priority=9))
        exported = store.export(100)
        assert {job.job.id for job in exported} == {"queued", "scheduled", "waiting", "later", "last"}
        assert [job.job.id for job in exported][-2:] == ["later", "last"]
        numbers = [job.number for job in exported]
        assert numbers == sorted(numbers)
        assert [job.job.id for job in store.export(1, numbers[2])] == ["later"]
        assert store.export(100, numbers[-1]) == []

    def test_adopted_jobs_are_as_they_were(self, store: Store, harness: StoreHarness) -> None:
        more: dict[str, Any] = {"on_duplicate": OnDuplicate.RESTART, "max_wait": 9.5, "tags": ("t", "u")}
        options: dict[str, Any] = {"queue": "q", "max_retries": 7, "priority": 5, "deadline": 2.5, "key": "k"}
        claim = started(store, "a", {"x": [1]}, expires_in=50.0, unique="name", **more, **options)
        finish(store, claim, Move.RETRY, error=BOOM, delay=500)
        before = look(store, "a")
        (job,) = store.export(10)
        assert store.discard(["a"]) == 1
        assert store.get("a") is None
        store.adopt([job])
        assert look(store, "a") == before
        assert store.key_of("a") == "k"
        harness.elapse(600)
        claim = take_one(store)
        assert (claim.attempts, claim.payload) == (2, b'{"x":[1]}')
        finish(store, claim)
        assert [attempt.number for attempt in look(store, "a").history] == [1, 2]

    def test_jobs_go_through_the_memory_store_and_back(self, store: Store) -> None:
        put(store, *(new_job(f"j{n}", {"n": n}, priority=n % 2) for n in range(5)))
        put(store, new_job("later", delay=500))
        before = {id: look(store, id) for id in ("j0", "j1", "later")}
        move_away_and_back(store, *(f"j{n}" for n in range(5)), "later")
        assert {id: look(store, id) for id in before} == before
        assert ids(take(store, 10)) == ["j1", "j3", "j0", "j2", "j4"]

    def test_adopting_again_changes_nothing(self, store: Store) -> None:
        put(store, new_job("a"), new_job("b"))
        exported = store.export(10)
        assert store.adopt(exported) == 0
        assert tally(store) == {JobStatus.QUEUED: 2}
        finish(store, take_one(store))
        assert store.adopt(exported) == 0
        assert tally(store) == {JobStatus.QUEUED: 1, JobStatus.DONE: 1}
        store.discard(["b"])
        assert store.adopt(exported) == 1

    def test_adopting_knows_a_job_that_was_stored_under_a_former_default(self, store: Store) -> None:
        put(store, new_job("a", max_retries=3))
        (exported,) = store.export(10)
        job = new_job("a", max_retries=10, former_retries=(3,))
        assert store.adopt([replace(exported, job=replace(job, run_at=exported.job.run_at))]) == 0
        assert look(store, "a").max_retries == 3

    def test_conflict_adopts_nothing(self, store: Store) -> None:
        put(store, new_job("a"), new_job("b"))
        first, second = store.export(10)
        store.discard(["a", "b"])
        put(store, new_job("b", "other content"))
        with pytest.raises(JobConflictError, match="b"):
            store.adopt([first, second])
        assert store.get("a") is None
        assert look(store, "b").payload == "other content"

    def test_only_what_waits_is_discarded(self, store: Store) -> None:
        ids = bring_one_to_each(store)
        assert store.discard([*ids, "unknown", ids[0]]) == 3
        assert tally(store) == {status: 1 for status in JobStatus if status not in PENDING}

    def test_adopted_job_whose_time_has_come_is_queued(self, store: Store) -> None:
        put(store, new_job("a", delay=500))
        (job,) = store.export(10)
        store.discard(["a"])
        store.adopt([replace(job, job=replace(job.job, run_at=1.0))])
        assert look(store, "a").status is JobStatus.QUEUED
        assert take_one(store).id == "a"
