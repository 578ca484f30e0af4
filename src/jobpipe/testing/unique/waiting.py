"""While one of a unique name waits: what another does by its `on_duplicate`, and one that waits again."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from msgspec.structs import replace

from ...errors import DuplicateError, JobConflictError, QueueFullError
from ...model.counts import Filter
from ...model.job import JobStatus, Move, OnDuplicate
from ...model.lease import LeaseState
from ...model.newjob import Receipt
from ...stores.base import Store
from ..harness import StoreHarness
from ..reading import ids, look, page_ids, seconds_between, tally, totals
from ..tools import BOOM, finish, new_job, put, take, take_one
from .jobs import NAME, REPLACE, RESTART, is_claimed, refused, started_unique, unique_job


class WhileOneWaits:
    def test_keep_answers_the_one_that_waits(self, store: Store) -> None:
        assert put(store, unique_job("a", 1)) == [Receipt("a", JobStatus.QUEUED, True)]
        before = look(store, "a")
        assert put(store, unique_job("b", 2)) == [Receipt("a", JobStatus.QUEUED, False)]
        assert store.get("b") is None
        assert look(store, "a") == before
        other = unique_job("b", type="other", queue="other")
        assert put(store, other) == [Receipt("a", JobStatus.QUEUED, False)], "whatever its type and queue"
        assert put(store, new_job("b", 2)) == [Receipt("b", JobStatus.QUEUED, True)]
        put(store, unique_job("c", name="report:18"))
        assert len(take(store, 9)) == 3, "other names are other work"

    def test_replace_takes_new_content_and_keeps_the_id(self, store: Store, harness: StoreHarness) -> None:
        first = unique_job("a", 1, REPLACE, delay=60)
        put(store, first)
        created_at = look(store, "a").created_at
        harness.elapse(10)
        new = unique_job("b", 2, REPLACE, delay=60, priority=5, max_retries=1, deadline=2.5)
        assert put(store, new) == [Receipt("a", JobStatus.SCHEDULED, False)]
        job = look(store, "a")
        assert (job.payload, job.priority, job.max_retries, job.deadline) == (2, 5, 1, 2.5)
        assert job.created_at == created_at
        assert seconds_between(created_at, job.run_at) == pytest.approx(70, abs=0.5)
        assert page_ids(store) == ["a"]
        assert put(store, first) == [Receipt("a", JobStatus.SCHEDULED, False)], (
            "the id stands for what it was"
        )
        assert look(store, "a").payload == 2
        assert type(refused(store, replace(first, fingerprint="other"))) is JobConflictError
        harness.elapse(61)
        claim = take_one(store)
        assert (claim.id, claim.payload, claim.max_retries) == ("a", b"2", 1)

    def test_replace_puts_off_and_brings_forward(self, store: Store) -> None:
        put(store, unique_job("a", 1, REPLACE))
        assert put(store, unique_job("b", 2, REPLACE, delay=60)) == [Receipt("a", JobStatus.SCHEDULED, False)]
        assert take(store) == []
        assert put(store, unique_job("c", 3, REPLACE)) == [Receipt("a", JobStatus.QUEUED, False)]
        assert put(store, unique_job("d", 4, REPLACE)) == [Receipt("a", JobStatus.QUEUED, False)]
        assert totals(store) == {JobStatus.QUEUED: 2, JobStatus.SCHEDULED: 1}
        assert [event.status for event in store.events(0, 10)] == ["queued", "scheduled", "queued"]
        assert take_one(store).payload == b"4"

    def test_replaced_job_has_the_place_of_its_new_priority(self, store: Store) -> None:
        put(store, unique_job("a", 1, REPLACE), new_job("b"))
        put(store, unique_job("c", 2, REPLACE, priority=-1))
        assert ids(take(store, 2)) == ["b", "a"]

    @pytest.mark.parametrize("delay", [0.0, 60.0], ids=["queued", "scheduled"])
    def test_replaced_job_has_the_new_expiry_and_tags(
        self, store: Store, harness: StoreHarness, delay: float
    ) -> None:
        put(store, unique_job("a", 1, REPLACE, delay=delay, expires_in=10.0, tags=("old", "both")))
        put(store, new_job("z", tags=("new",)))
        put(store, unique_job("b", 2, REPLACE, delay=delay, expires_in=100.0, tags=("both", "new")))
        assert look(store, "a").tags == ("both", "new")
        found = {tag: page_ids(store, Filter(tag=tag)) for tag in ("old", "both", "new")}
        assert found == {"old": [], "both": ["a"], "new": ["z", "a"]}
        harness.elapse(50)
        assert look(store, "a").status is not JobStatus.EXPIRED
        put(store, unique_job("c", 3, REPLACE, delay=delay, expires_in=10.0))
        assert look(store, "a").tags == ()
        harness.elapse(11)
        assert look(store, "a").status is JobStatus.EXPIRED
        assert put(store, unique_job("d")) == [Receipt("d", JobStatus.QUEUED, True)]

    def test_max_wait_bounds_how_long_it_is_put_off(self, store: Store, harness: StoreHarness) -> None:
        for n in range(4):
            put(store, unique_job(f"j{n}", n, REPLACE, delay=60, max_wait=100))
            harness.elapse(30)
        job = look(store, "j0")
        assert seconds_between(job.created_at, job.run_at) == pytest.approx(100, abs=0.5)
        assert job.status is JobStatus.QUEUED
        put(store, unique_job("late", "late", REPLACE, delay=60, max_wait=100))
        assert take_one(store).payload == b'"late"'

    def test_max_wait_holds_from_the_first_on(self, store: Store) -> None:
        put(store, unique_job("a", delay=60, max_wait=20))
        put(store, unique_job("b", name="b", run_at=4e9, max_wait=20))
        for job in (look(store, "a"), look(store, "b")):
            assert seconds_between(job.created_at, job.run_at) == pytest.approx(20, abs=0.01)

    def test_job_of_another_kind_replaces_nothing(self, store: Store) -> None:
        running = started_unique(store, "r")
        put(store, unique_job("a", 1))
        others: list[dict[str, Any]] = [{"type": "other"}, {"queue": "other"}]
        for on_duplicate, other in product((REPLACE, RESTART), others):
            error = refused(store, new_job("x"), unique_job("b", 2, on_duplicate, **other))
            assert isinstance(error, DuplicateError)
            assert (error.id, error.unique) == ("a", NAME)
            assert sorted(page_ids(store)) == ["a", "r"]
            assert look(store, "a").payload == 1
            assert store.extend([running.lease], 60) == [LeaseState.HELD]

    def test_cancelled_one_waits_no_more(self, store: Store) -> None:
        put(store, unique_job("a"))
        store.cancel(["a"])
        assert put(store, unique_job("b")) == [Receipt("b", JobStatus.QUEUED, True)]
        assert is_claimed(store, "b")

    def test_batch_is_taken_in_order(self, store: Store) -> None:
        receipts = put(
            store,
            unique_job("a", 1),
            unique_job("b", 2),
            new_job("c"),
            unique_job("d", 4, REPLACE, delay=60, tags=("new",)),
            unique_job("e", 5),
        )
        assert ids(receipts) == ["a", "a", "c", "a", "a"]
        assert [receipt.is_new for receipt in receipts] == [True, False, True, False, False]
        job = look(store, "a")
        assert (job.payload, job.status, job.tags) == (4, JobStatus.SCHEDULED, ("new",))
        assert sorted(page_ids(store)) == ["a", "c"]

    def test_batches_of_one_call_see_those_before_them(self, store: Store) -> None:
        answers = store.insert(
            [[unique_job("a", 1)], [unique_job("b", 2, REPLACE, delay=60)], [unique_job("c", type="t")]]
        )
        assert answers == [
            [Receipt("a", JobStatus.QUEUED, True)],
            [Receipt("a", JobStatus.SCHEDULED, False)],
            [Receipt("a", JobStatus.SCHEDULED, False)],
        ]

    def test_keep_and_replace_need_no_room(self, store: Store) -> None:
        bounds = {"capacity": 1, "scheduled": 1, "names": 1}
        put(store, unique_job("a"))
        for on_duplicate in OnDuplicate:
            (answer,) = store.insert([[unique_job("b", 2, on_duplicate)]], **bounds)
            assert answer == [Receipt("a", JobStatus.QUEUED, False)]
        (answer,) = store.insert([[unique_job("c", name="another")]], **bounds)
        assert isinstance(answer, QueueFullError)


class WaitingAgain:
    """Retried by hand, or moved from another store."""

    def test_retry_by_hand_is_refused_while_another_waits(self, store: Store) -> None:
        put(store, unique_job("a"), new_job("plain"))
        for claim in take(store, 2):
            finish(store, claim, Move.FAIL, error=BOOM)
        put(store, unique_job("b"))
        before, last = look(store, "a"), store.last_event()
        (found,) = store.retry(["a"])
        assert isinstance(found, DuplicateError)
        assert (found.id, found.unique) == ("b", NAME)
        assert (look(store, "a"), store.last_event()) == (before, last)
        refusal, plain = store.retry(["a", "plain"])
        assert isinstance(refusal, DuplicateError)
        assert plain is JobStatus.FAILED
        assert tally(store) == {JobStatus.FAILED: 1, JobStatus.QUEUED: 2}

    def test_retried_job_waits_behind_the_one_that_runs(self, store: Store) -> None:
        finish(store, started_unique(store, "a"), Move.FAIL, error=BOOM)
        running = started_unique(store, "b")
        assert store.retry(["a"]) == [JobStatus.FAILED]
        assert put(store, unique_job("c")) == [Receipt("a", JobStatus.QUEUED, False)]
        assert take(store, 9) == []
        finish(store, running)
        assert is_claimed(store, "a")

    def test_of_several_that_are_retried_together_the_first_waits(self, store: Store) -> None:
        for id in ("a", "b", "c"):
            put(store, unique_job(id))
            finish(store, take_one(store), Move.FAIL, error=BOOM)
        found = store.retry(["b", "a", "b", "c"])
        told = [each.id if isinstance(each, DuplicateError) else each for each in found]
        assert told == [JobStatus.FAILED, "b", JobStatus.QUEUED, "b"]
        assert is_claimed(store, "b")

    @pytest.mark.parametrize("is_reversed", [False, True])
    def test_names_move_to_another_store(self, store: Store, is_reversed: bool) -> None:
        claim = started_unique(store, "a")
        put(store, unique_job("b", 1))
        store.release([claim.lease])
        exported = store.export(9)
        assert [each.job.unique for each in exported] == [NAME, NAME]
        assert store.discard(["a", "b"]) == 2
        assert store.running_of(NAME) is None
        for each in exported[::-1] if is_reversed else exported:
            assert store.adopt([each]) == 1
        assert store.running_of(NAME) == "a"
        assert put(store, unique_job("c")) == [Receipt("b", JobStatus.QUEUED, False)]
        (claim,) = take(store, 9)
        assert claim.id == "a"
        finish(store, claim)
        assert is_claimed(store, "b")

    def test_second_one_of_a_name_cannot_move_in(self, store: Store) -> None:
        put(store, new_job("x"), unique_job("a"))
        exported = store.export(9)
        store.discard(["x", "a"])
        put(store, unique_job("b"))
        with pytest.raises(JobConflictError, match="a"):
            store.adopt(exported)
        assert page_ids(store) == ["b"]
        assert store.adopt(exported[:1]) == 1
