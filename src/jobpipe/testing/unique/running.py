"""While one of a unique name runs, also between its runs: the next one waits for its end."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ...errors import JobConflictError
from ...model.gate import Limit
from ...model.job import JobStatus, Move
from ...model.lease import LeaseState
from ...model.newjob import Receipt
from ...stores.base import Store
from ..harness import StoreHarness
from ..reading import ids, look
from ..tools import BOOM, finish, new_job, put, rescue_after, take, take_one
from .jobs import KEEP, NAME, REPLACE, RESTART, begin_another, is_claimed, refused, started_unique, unique_job


class WhileOneRuns:
    @pytest.mark.parametrize("limits", [(), (Limit(type="work", concurrency=5),)], ids=["free", "limited"])
    def test_next_one_begins_when_the_one_that_runs_has_ended(
        self, store: Store, limits: tuple[Limit, ...]
    ) -> None:
        put(store, unique_job("a"))
        (claim,) = take(store, limits=limits)
        assert store.running_of(NAME) == "a"
        assert put(store, unique_job("b", 1)) == [Receipt("b", JobStatus.QUEUED, True)]
        put(store, new_job("c"))
        assert put(store, unique_job("d", 2)) == [Receipt("b", JobStatus.QUEUED, False)]
        assert ids(take(store, 9, limits=limits)) == ["c"]
        assert take(store, 9, limits=limits) == []
        assert put(store, unique_job("e", 3, REPLACE)) == [Receipt("b", JobStatus.QUEUED, False)]
        assert take(store, 9, limits=limits) == []
        finish(store, claim)
        (claim,) = take(store, 9, limits=limits)
        assert (claim.id, claim.payload) == ("b", b"3")
        assert store.running_of(NAME) == "b"
        finish(store, claim)
        assert store.running_of(NAME) is None

    def test_many_that_wait_behind_others_are_in_nobodys_way(self, store: Store) -> None:
        names = [f"n{n}" for n in range(30)]
        put(store, *(unique_job(f"{name}-1", name=name) for name in names))
        claims = take(store, 100)
        put(store, *(unique_job(f"{name}-2", name=name, priority=9) for name in names), new_job("plain"))
        assert is_claimed(store, "plain")
        for claim in claims:
            finish(store, claim)
        assert len(take(store, 100)) == 30

    def test_delayed_one_waits_for_the_one_that_runs_too(self, store: Store, harness: StoreHarness) -> None:
        put(store, unique_job("a"))
        claim = take_one(store, lease=1_000)
        put(store, unique_job("b", delay=60))
        harness.elapse(61)
        assert look(store, "b").status is JobStatus.QUEUED
        assert take(store, 9) == []
        finish(store, claim)
        assert is_claimed(store, "b")

    def test_one_that_has_begun_runs_also_between_its_runs(self, store: Store, harness: StoreHarness) -> None:
        for how in ("retry", "snooze", "release", "rescue"):
            first, second = f"{how}-1", f"{how}-2"
            begin_another(store, started_unique(store, first), harness, how)
            assert store.running_of(NAME) == first
            assert put(store, unique_job(second, priority=9)) == [Receipt(second, JobStatus.QUEUED, True)]
            harness.elapse(11)
            (claim,) = take(store, 9)
            assert claim.id == first
            assert put(store, unique_job("x")) == [Receipt(second, JobStatus.QUEUED, False)]
            finish(store, claim)
            (claim,) = take(store, 9)
            assert claim.id == second
            finish(store, claim)

    def test_every_end_lets_the_next_one_begin(self, store: Store, harness: StoreHarness) -> None:
        for how in ("succeed", "fail", "cancel", "lost", "cancelled", "discarded"):
            claim = started_unique(store, how, max_retries=0)
            put(store, unique_job("next"))
            assert take(store, 9) == [], how
            match how:
                case "lost":
                    rescue_after(store, harness, 100)
                case "cancelled":
                    store.release([claim.lease])
                    store.cancel([how])
                case "discarded":
                    store.release([claim.lease])
                    assert store.discard([how]) == 1
                case _:
                    finish(store, claim, Move(how), error=BOOM if how == "fail" else None)
            (claim,) = take(store, 9)
            assert claim.id == "next", how
            finish(store, claim)
            store.delete(["next"])

    def test_both_are_cancelled_in_one_call(self, store: Store) -> None:
        store.release([started_unique(store, "a").lease])
        put(store, unique_job("b"))
        assert store.cancel(["a", "b"]) == [JobStatus.QUEUED, JobStatus.QUEUED]
        put(store, new_job("c"), new_job("d"))
        assert store.ahead("d") == 1
        assert store.ahead("c") == 0
        assert len(take(store, 9)) == 2

    def test_old_ones_that_are_deleted_change_nothing(self, store: Store, harness: StoreHarness) -> None:
        finish(store, started_unique(store, "old"))
        harness.elapse(100)
        claim = started_unique(store, "a")
        put(store, unique_job("b"))
        assert take(store, 9) == []
        assert store.prune(50) == 1
        assert take(store, 9) == []
        finish(store, claim)
        assert is_claimed(store, "b")

    def test_same_id_and_content_come_first(self, store: Store) -> None:
        again = unique_job("a", 1, RESTART)
        put(store, again)
        claim = take_one(store)
        assert put(store, again) == [Receipt("a", JobStatus.RUNNING, False)]
        assert store.extend([claim.lease], 60) == [LeaseState.HELD]
        finish(store, claim)
        assert put(store, again) == [Receipt("a", JobStatus.DONE, False)]
        assert type(refused(store, replace(again, fingerprint="other"))) is JobConflictError

    def test_none_is_claimed_ahead(self, store: Store) -> None:
        put(store, unique_job("a"), new_job("b"), unique_job("c", name="c"), new_job("d"))
        found = store.claim("w", ["work"], 9, 60, (), 0)
        assert (found.claims, found.has_more) == ([], True)
        found = store.claim("w", ["work"], 9, 60, (), 1)
        assert [(claim.id, claim.has_begun) for claim in found.claims] == [("a", True), ("b", False)]
        assert found.has_more
        limits = (Limit(type="work", concurrency=9),)
        found = store.claim("w", ["work"], 9, 60, limits, 1)
        assert [(claim.id, claim.has_begun) for claim in found.claims] == [("c", True), ("d", False)]

    def test_keyed_limit_and_unique_name_hold_together(self, store: Store) -> None:
        limits = (Limit(type="work", concurrency=1, is_keyed=True),)
        put(store, unique_job("a", key="k"))
        (claim,) = take(store, limits=limits)
        put(store, unique_job("b", key="k"), new_job("c", key="k"))
        assert take(store, 9, limits=limits) == []
        finish(store, claim)
        (first,) = take(store, 9, limits=limits)
        assert first.id == "b"
        put(store, unique_job("d", key="k"))
        assert take(store, 9, limits=limits) == []
        finish(store, first)
        (second,) = take(store, 9, limits=limits)
        assert second.id == "c"
        finish(store, second)
        assert ids(take(store, 9, limits=limits)) == ["d"]

    def test_replaced_job_is_not_held_up_by_the_key_it_had(self, store: Store) -> None:
        limits = (Limit(type="work", concurrency=1, is_keyed=True),)
        put(store, new_job("holder", key="k"), unique_job("a", 1, REPLACE, key="k"))
        assert len(take(store, 9, limits=limits)) == 1
        put(store, unique_job("b", 2, REPLACE, key="other"))
        (claim,) = take(store, 9, limits=limits)
        assert (claim.id, claim.key, claim.payload) == ("a", "other", b"2")

    def test_restart_cancels_the_one_that_runs(self, store: Store) -> None:
        claim = started_unique(store, "a")
        assert put(store, unique_job("b", 1, RESTART)) == [Receipt("b", JobStatus.QUEUED, True)]
        assert store.extend([claim.lease], 60) == [LeaseState.CANCELLING]
        assert put(store, unique_job("c", 2, RESTART)) == [Receipt("b", JobStatus.QUEUED, False)]
        assert take(store, 9) == []
        finish(store, claim)
        assert look(store, "a").status is JobStatus.CANCELLED
        assert take_one(store).payload == b"2"

    def test_restart_ends_one_between_its_runs_at_once(self, store: Store) -> None:
        finish(store, started_unique(store, "a"), Move.RETRY, error=BOOM, delay=60)
        put(store, unique_job("b", 1, RESTART))
        assert look(store, "a").status is JobStatus.CANCELLED
        assert is_claimed(store, "b")

    def test_others_leave_the_one_that_runs_alone(self, store: Store) -> None:
        claim = started_unique(store, "a")
        for on_duplicate in (KEEP, REPLACE):
            put(store, unique_job("b", 1, on_duplicate), unique_job("c", 2, on_duplicate))
            assert store.extend([claim.lease], 60) == [LeaseState.HELD], on_duplicate
            store.cancel(["b"])
            store.delete(["b"])
