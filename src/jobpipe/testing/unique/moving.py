"""A job of a unique name waits again: retried by hand, or moved from another store."""

from __future__ import annotations

import pytest

from ...errors import DuplicateError, JobConflictError
from ...model.job import JobStatus, Move
from ...model.newjob import Receipt
from ...stores.base import Store
from ..tools import BOOM, finish, look, new_job, page_ids, put, take, take_one, tally
from .jobs import NAME, is_claimed, started_unique, unique_job


class WaitingAgain:
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
