"""The PostgreSQL store among others who take their time: nobody waits for them, or not for long."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import psycopg
import pytest

from jobpipe import JobStatus, Progress, QueueFullError, StoreAwayError
from jobpipe.model.gate import Limit
from jobpipe.model.job import Move
from jobpipe.model.lease import Outcome, Settlement
from jobpipe.stores.base import LeaseState
from jobpipe.stores.postgres import PostgresStore
from jobpipe.stores.postgres.statements import Statements
from jobpipe.testing import new_job
from jobpipe.testing.durable.tools import signal_of, step
from jobpipe.testing.scheduling import ENTRY
from jobpipe.testing.tools import finish, put, take

from ...support.waiting import LIMIT

FEW = Limit(type="work", concurrency=1, is_keyed=True)


@pytest.fixture
def store(postgres_url: str) -> Iterator[PostgresStore]:
    with closing(PostgresStore(postgres_url)) as store:
        store.migrate()
        yield store


@pytest.fixture
def sql(postgres_url: str) -> Statements:
    return Statements(postgres_url.rpartition("schema=")[2])


@pytest.fixture
def other(postgres: str) -> Iterator[psycopg.Connection[Any]]:
    """A transaction that somebody else has open."""
    with psycopg.connect(postgres) as connection:
        yield connection
        connection.rollback()


# Queues with a capacity


def test_nobody_waits_for_a_guest_to_commit(store: PostgresStore, other: psycopg.Connection[Any]) -> None:
    tick_at = store.put_schedule(ENTRY).next_at
    assert isinstance(store.insert_in(other, [new_job("a")], capacity=5), list)
    with psycopg.connect(other.info.dsn) as second:
        assert isinstance(store.insert_in(second, [new_job("b")], capacity=5), list)
        (receipts,) = store.insert([[new_job("c")]], capacity=5)
        assert isinstance(receipts, list)
        assert store.fire_tick(ENTRY.name, tick_at, tick_at + 60, new_job("d"), capacity=5)
    other.commit()
    assert isinstance(store.insert([[new_job("e"), new_job("f")]], capacity=5)[0], QueueFullError)


def test_queue_that_another_has_for_himself_is_waited_for_some_seconds_at_the_most(
    store: PostgresStore, sql: Statements, other: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobpipe.stores.postgres.verbs.inserting._PATIENCE", 100)
    tick_at = store.put_schedule(ENTRY).next_at
    other.execute(sql("lock_queues"), {"queues": ["default"]})
    with ThreadPoolExecutor(2) as pool:
        inserting = pool.submit(store.insert, [[new_job("a")]], capacity=5)
        ticking = pool.submit(store.fire_tick, ENTRY.name, tick_at, tick_at + 60, new_job("b"), capacity=5)
        for waiting in (inserting, ticking):
            with pytest.raises(StoreAwayError, match="others held up a statement"):
                waiting.result(LIMIT)
    other.rollback()
    put(store, new_job("a"))
    assert store.fire_tick(ENTRY.name, tick_at, tick_at + 60, new_job("b"), capacity=5)


# Transactions of handlers


def test_job_that_a_handler_has_locked_is_waited_for_some_seconds_at_the_most(
    store: PostgresStore, other: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobpipe.stores.postgres.session._PATIENCE", 50)
    put(store, new_job("a"))
    (claim,) = take(store)
    with ThreadPoolExecutor(1) as pool, psycopg.connect(other.info.dsn) as handler:
        store.write_step_in(handler, claim.lease, step("s"))
        for call in (
            lambda: store.signal("a", signal_of()),
            lambda: store.cancel(["a"]),
            lambda: store.retry(["a"]),
            lambda: store.delete(["a"]),
            lambda: store.release([claim.lease]),
        ):
            with pytest.raises(StoreAwayError, match="others held up a statement"):
                pool.submit(call).result(LIMIT)
    assert store.cancel(["a"]) == [JobStatus.RUNNING]


# Limits


def test_leases_are_extended_while_another_has_the_gates_for_himself(
    store: PostgresStore, sql: Statements, other: psycopg.Connection[Any]
) -> None:
    put(store, new_job("a", key="k"))
    (claim,) = take(store, limits=[FEW])
    leases = [claim.lease]
    with ThreadPoolExecutor(1) as pool, psycopg.connect(other.info.dsn) as claimer:
        claimer.execute(sql("lock_types"), {"types": ["work"], "limited": ["work"], "now": None})
        assert pool.submit(store.extend, leases, 60).result(LIMIT) == [LeaseState.HELD]
        pool.submit(store.progress, [(claim.lease, Progress(value=0.5))]).result(LIMIT)
        assert pool.submit(store.cancel, ["a"]).result(LIMIT) == [JobStatus.RUNNING]
        settling = pool.submit(finish, store, claim)
        with pytest.raises(TimeoutError):
            settling.result(0.2)  # Why: it leaves its place, which the claimer must not miss
        claimer.rollback()
        assert settling.result(LIMIT)


def test_plan_of_letting_out_made_for_an_empty_table_goes_by_the_jobs_that_are_let_out(
    store: PostgresStore, sql: Statements, other: psycopg.Connection[Any]
) -> None:
    """Else each of them would cost a look at all that are queued."""
    store.counts()
    other.execute(
        "SET enable_seqscan = off; SET enable_bitmapscan = off; SET plan_cache_mode = force_generic_plan"
    )
    values = {"types": ["work"], "keys": ["k"], "rooms": [1]}
    plan = [row for (row,) in other.execute(b"EXPLAIN " + sql("let_out"), values)]
    assert sum("Index Cond: (seq = ANY" in row for row in plan) == 2, "\n".join(plan)


def test_parked_job_has_its_turn_in_a_lane_that_never_runs_empty(store: PostgresStore) -> None:
    """Its limit was lifted, and there are always others."""
    put(store, new_job("a", key="k"), new_job("parked", key="k"))
    (claim,) = take(store, 5, limits=[FEW])
    assert finish(store, claim)
    for number in range(10):
        put(store, new_job(f"more-{number}"), new_job(f"still-more-{number}"))
        if "parked" in [claim.id for claim in take(store)]:
            return
    pytest.fail("it is parked still")


def test_claims_wait_for_those_only_who_look_at_the_same_gates(
    store: PostgresStore, sql: Statements, other: psycopg.Connection[Any]
) -> None:
    put(store, new_job("a", key="k"), new_job("b", type="free"), new_job("c", type="free"))
    with ThreadPoolExecutor(1) as pool, psycopg.connect(other.info.dsn) as claimer:
        claimer.execute(sql("lock_types"), {"types": [], "limited": ["free"], "now": None})
        claims = pool.submit(store.claim, "w", ["free", "work"], 5, 60, [FEW]).result(LIMIT).claims
        assert [claim.id for claim in claims] == ["a", "b", "c"]


def test_claim_leaves_out_types_of_which_a_handler_ends_a_job_in_its_own_transaction(
    store: PostgresStore, other: psycopg.Connection[Any]
) -> None:
    put(store, new_job("a", key="k"), new_job("b", key="k"), new_job("c", key="other"))
    (claim,) = take(store, limits=[FEW])
    put(store, new_job("free", type="free"))
    types = ["free", "work"]
    with ThreadPoolExecutor(1) as pool, psycopg.connect(other.info.dsn) as handler:
        store.settle_in(handler, Settlement(claim.lease, Outcome(move=Move.SUCCEED, result=b"1")))
        result = pool.submit(store.claim, "w", types, 5, 60, [FEW]).result(LIMIT)
        assert [each.id for each in result.claims] == ["free"]
        assert result.due_in is not None
        assert result.due_in <= 1.0
    assert [each.id for each in store.claim("w", types, 5, 60, [FEW]).claims] == ["b", "c"]


def test_next_in_line_does_not_wait_for_one_that_was_cancelled_at_the_gate(store: PostgresStore) -> None:
    put(store, *(new_job(id, key="k") for id in ("first", "second", "third")))
    (first,) = take(store, 5, limits=[FEW])
    assert finish(store, first)
    put(store, new_job("urgent", priority=9))
    assert [claim.id for claim in take(store, limits=[FEW])] == ["urgent"]
    store.cancel(["second"])
    assert [claim.id for claim in take(store, limits=[FEW])] == ["third"]


def test_claim_waits_for_nobody_who_has_a_job_that_it_would_park(
    store: PostgresStore, sql: Statements, other: psycopg.Connection[Any]
) -> None:
    """Who has it may be about to wait for the claim."""
    put(store, *(new_job(id, key="k") for id in ("a", "b", "c")), new_job("d"))
    with ThreadPoolExecutor(1) as pool, psycopg.connect(other.info.dsn) as holder:
        holder.execute(f'SELECT 1 FROM "{sql.schema}".jobs WHERE id = %s FOR UPDATE', ["b"])
        claims = pool.submit(store.claim, "w", ["work"], 2, 60, [FEW]).result(LIMIT).claims
        assert [claim.id for claim in claims] == ["a", "d"]


def test_queue_is_resumed_when_a_claim_is_through_with_its_gates(
    store: PostgresStore, sql: Statements, other: psycopg.Connection[Any]
) -> None:
    """They never wait for each other in a circle."""
    put(store, *(new_job(f"{key}{number}", key=key) for key in "ab" for number in range(2)))
    assert len(take(store, 5, limits=[FEW])) == 2
    touch = f'UPDATE "{sql.schema}".gates SET opens_at = opens_at WHERE key = %s'
    waiting = "SELECT 1 FROM pg_locks WHERE NOT granted AND pid <> ALL(%s)"
    with ThreadPoolExecutor(1) as pool, psycopg.connect(other.info.dsn) as claimer:
        others = [pid for (pid,) in other.execute("SELECT pid FROM pg_locks WHERE NOT granted")]
        other.rollback()
        claimer.execute(sql("lock_types"), {"types": [], "limited": ["work"], "now": None})
        claimer.execute(touch, ["b"])
        resuming = pool.submit(store.resume, "default")
        while not other.execute(waiting, [others]).fetchall():
            other.rollback()
        claimer.execute(touch, ["a"])
        claimer.commit()
        resuming.result(LIMIT)


def test_claim_comes_again_for_parked_jobs_when_their_type_has_cooled_down(store: PostgresStore) -> None:
    put(store, new_job("a", key="k"), new_job("b", key="k"))
    (claim,) = take(store, 5, limits=[FEW])
    assert finish(store, claim, cools=1000.0)
    for limits in ([FEW], []):
        result = store.claim("w", ["work"], 5, 60, limits)
        assert not result.claims
        assert result.due_in is not None
        assert 900 < result.due_in <= 1000


def test_pace_of_a_gate_is_that_of_those_who_entered(store: PostgresStore, sql: Statements) -> None:
    """Also when a claim looked at it and let nobody in."""
    paced = Limit(type="paced", interval=50.0, is_keyed=True)
    put(store, new_job("a", type="paced", key="k"), new_job("b", type="paced", key="k"))
    assert [claim.id for claim in take(store, 5, types=["paced"], limits=[paced])] == ["a"]
    (before,) = store.limits("paced", "k").gates
    put(store, new_job("c", type="paced", key="k"), new_job("d", type="paced", key="other"))
    assert [claim.id for claim in take(store, 5, types=["paced"], limits=[paced])] == ["d"]
    assert store.limits("paced", "k").gates == [before]


# The journal


def test_who_counts_folds_what_guests_leave_behind(
    store: PostgresStore, sql: Statements, other: psycopg.Connection[Any]
) -> None:
    for number in range(500):
        store.insert_in(other, [new_job(f"{number}")])
    other.commit()
    journal = f'SELECT count(*) FROM "{sql.schema}".journal'
    assert other.execute(journal).fetchall() == [(500,)]
    (tally,) = store.counts().tallies
    assert tally.count == 500
    assert other.execute(journal).fetchall() == [(0,)]
    assert store.counts().tallies == [tally]
