"""The trace of a job: kept as it was given, and told by each claim with whether the job ran before."""

from __future__ import annotations

from msgspec.structs import replace

from ..model.job import Move, OnDuplicate
from ..model.newjob import NewJob
from ..stores.base import Store
from .harness import StoreHarness
from .tools import BOOM, finish, move_away_and_back, new_job, put, rescue_after, take, take_one

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 vendor=a=b,other= ä"
OTHER = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"


def traced(id: str, trace: str = TRACE, **options: object) -> NewJob:
    return replace(new_job(id, **options), trace=trace)  # type: ignore[arg-type]


class Traces:
    def test_trace_is_told_by_the_claim(self, store: Store) -> None:
        put(
            store,
            new_job("plain"),
            traced("a"),
            traced("b", OTHER, tags=("t",)),
            new_job("tagged", tags=("t",)),
        )
        claims = take(store, 9)
        assert [(claim.id, claim.trace, claim.has_run) for claim in claims] == [
            ("plain", None, False),
            ("a", TRACE, False),
            ("b", OTHER, False),
            ("tagged", None, False),
        ]
        assert all(claim.problem is None for claim in claims)

    def test_trace_of_what_is_claimed_ahead_is_told(self, store: Store) -> None:
        put(store, traced("a", expires_in=50.0))
        (claim,) = take(store, begin=0)
        assert (claim.trace, claim.has_run, claim.expires_at is not None) == (TRACE, False, True)
        store.release([claim.lease])
        assert take_one(store).has_run is False  # it never began

    def test_claim_knows_that_the_job_ran_before(self, store: Store, harness: StoreHarness) -> None:
        for move in (Move.RETRY, Move.SNOOZE, Move.RELEASE, Move.RESCUE, Move.REVIVE):
            put(store, traced(move.value))
            claim = take_one(store)
            if move is Move.RELEASE:
                store.release([claim.lease])
            elif move is Move.RESCUE:
                assert rescue_after(store, harness, 100)
            elif move is Move.REVIVE:
                finish(store, claim, Move.FAIL, error=BOOM)
                store.retry([claim.id])
            else:
                finish(store, claim, move, error=BOOM if move is Move.RETRY else None)
            again = take_one(store)
            assert (again.trace, again.has_run, again.problem) == (TRACE, True, None), move
            finish(store, again)

    def test_trace_is_no_part_of_the_content(self, store: Store) -> None:
        put(store, traced("a"))
        (receipt,) = put(store, traced("a", OTHER))
        assert not receipt.is_new
        assert take_one(store).trace == TRACE

    def test_who_replaces_a_job_gives_it_another_trace(self, store: Store) -> None:
        options = {"unique": "name", "on_duplicate": OnDuplicate.REPLACE}
        put(store, traced("a", **options))
        put(store, traced("b", OTHER, **options))
        assert (claim := take_one(store)).trace == OTHER
        assert claim.id == "a"

    def test_trace_moves_with_its_job(self, store: Store) -> None:
        put(store, traced("a"), new_job("plain"), traced("b", OTHER))
        finish(store, take_one(store), Move.SNOOZE)
        move_away_and_back(store, "a", "plain", "b")
        assert {claim.id: (claim.trace, claim.has_run) for claim in take(store, 9)} == {
            "a": (TRACE, True),
            "plain": (None, False),
            "b": (OTHER, False),
        }
