"""Jobs in the caller's own transaction on PostgreSQL, however the caller came by his connection."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import psycopg
import pytest
import sqlalchemy
from psycopg.conninfo import make_conninfo
from psycopg.rows import dict_row
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.orm import Session

from jobpipe import (
    BadInputError,
    JobConflictError,
    Jobpipe,
    JobRequest,
    JobStatus,
    QueueFullError,
    StoreError,
)
from jobpipe.model.job import Progress
from jobpipe.model.lease import LeaseState
from jobpipe.stores.base import LogChunk, News
from jobpipe.stores.postgres import PostgresStore
from jobpipe.testing import ManualTime, new_job
from jobpipe.testing.durable.tools import step, step_names
from jobpipe.testing.tools import finish, put, take

from ...support.servers_postgres import postgres_schema
from ...support.waiting import LIMIT, eventually, run, until


@pytest.fixture
def pipe(postgres_url: str) -> Iterator[Jobpipe]:
    pipe = Jobpipe(postgres_url, queue_size=0)
    yield pipe
    pipe.close()


def ids(pipe: Jobpipe) -> list[str]:
    return [job.job.id for job in pipe.store.export(100)]


def test_job_is_there_if_and_only_if_the_transaction_commits(pipe: Jobpipe, postgres: str) -> None:
    with psycopg.connect(postgres) as connection:
        receipt = pipe.enqueue_sync("echo", 1, id="a", connection=connection)
        assert (receipt.status, receipt.is_new) == (JobStatus.QUEUED, True)
        assert ids(pipe) == []
        connection.commit()
        assert ids(pipe) == ["a"]
        pipe.enqueue_sync("echo", 2, id="b", connection=connection)
        connection.rollback()
        assert ids(pipe) == ["a"]
        with connection.transaction():
            pipe.enqueue_sync("echo", 3, id="c", connection=connection)
            with connection.transaction(force_rollback=True):
                pipe.enqueue_sync("echo", 4, id="d", connection=connection)
        assert ids(pipe) == ["a", "c"]


def test_connection_that_is_awaited_is_awaited(pipe: Jobpipe, postgres: str) -> None:
    async def scenario() -> None:
        async with await psycopg.AsyncConnection.connect(postgres) as connection:
            first = await pipe.enqueue("echo", 1, id="a", connection=connection)
            again = await pipe.enqueue("echo", 1, id="a", connection=connection)
            assert (first.is_new, again.is_new) == (True, False)
            assert ids(pipe) == []
            await connection.commit()
            await pipe.enqueue("echo", 2, id="b", connection=connection)
            await connection.rollback()
            with pytest.raises(JobConflictError):
                await pipe.enqueue("echo", "other", id="a", connection=connection)
            with pytest.raises(BadInputError, match="await"):
                pipe.enqueue_sync("echo", 3, connection=connection)

    asyncio.run(scenario())
    assert ids(pipe) == ["a"]


def test_refused_job_leaves_the_transaction_whole(pipe: Jobpipe, postgres: str) -> None:
    pipe.enqueue_sync("echo", 1, id="a")
    with psycopg.connect(postgres) as connection:
        with pytest.raises(JobConflictError):
            pipe.enqueue_sync("echo", "other", id="a", connection=connection)
        assert isinstance(pipe.store.insert_in(connection, [new_job("b")], capacity=1), QueueFullError)
        assert pipe.store.insert_in(connection, [], capacity=1) == []
        pipe.enqueue_sync("echo", 1, id="c", connection=connection)
    assert ids(pipe) == ["a", "c"]


def test_connection_that_commits_by_itself_has_a_transaction_for_the_job(
    pipe: Jobpipe, postgres: str
) -> None:
    with psycopg.connect(postgres, autocommit=True) as connection:
        pipe.enqueue_sync("echo", 1, id="a", connection=connection)
        assert ids(pipe) == ["a"]
        with connection.transaction(force_rollback=True):
            pipe.enqueue_sync("echo", 1, id="b", connection=connection)
        assert ids(pipe) == ["a"]


def test_refused_job_ends_a_transaction_that_was_only_its_own(pipe: Jobpipe, postgres: str) -> None:
    pipe.enqueue_sync("echo", 1, id="a")
    with psycopg.connect(postgres, autocommit=True) as connection:
        with pytest.raises(JobConflictError):
            pipe.enqueue_sync("echo", 2, id="a", connection=connection)
        assert connection.info.transaction_status is psycopg.pq.TransactionStatus.IDLE


def test_error_ends_a_transaction_that_was_only_its_own(pipe: Jobpipe, postgres: str) -> None:
    """The connection commits by itself again, and what is done next is not lost."""
    with psycopg.connect(postgres, autocommit=True) as connection:
        pipe.enqueue_sync("echo", 1, id="a", connection=connection)
        connection.execute("SET default_transaction_read_only = on")
        with pytest.raises(StoreError, match="read-only"):
            pipe.enqueue_sync("echo", 2, id="b", connection=connection)
        assert connection.info.transaction_status is psycopg.pq.TransactionStatus.IDLE

    async def scenario() -> None:
        async with await psycopg.AsyncConnection.connect(postgres, autocommit=True) as awaited:
            await awaited.execute("SET default_transaction_read_only = on")
            with pytest.raises(StoreError, match="read-only"):
                await pipe.enqueue("echo", 2, id="b", connection=awaited)
            assert awaited.info.transaction_status is psycopg.pq.TransactionStatus.IDLE

    asyncio.run(scenario())


def test_preferences_of_the_connection_do_not_matter(pipe: Jobpipe, postgres: str) -> None:
    with psycopg.connect(postgres, row_factory=dict_row) as connection:
        connection.cursor_factory = psycopg.ClientCursor
        pipe.enqueue_sync("echo", {"x": [1]}, id="a", connection=connection, deadline=2.5)
        pipe.enqueue_sync("echo", {"x": [1]}, id="a", connection=connection, deadline=2.5)
    job = pipe.store.get("a")
    assert job is not None
    assert (job.payload, job.deadline) == ({"x": [1]}, 2.5)


def test_connection_of_sqlalchemy_will_do(pipe: Jobpipe, postgres: str) -> None:
    engine = sqlalchemy.create_engine(postgres.replace("postgresql://", "postgresql+psycopg://"))
    with engine.begin() as connection:
        pipe.enqueue_sync("echo", 1, id="a", connection=connection)
        pipe.enqueue_sync("echo", 1, id="b", connection=connection.connection)
    with engine.connect() as connection:
        pipe.enqueue_sync("echo", 1, id="c", connection=connection)
        connection.rollback()
    with Session(engine) as session:
        pipe.enqueue_sync("echo", 1, id="d", connection=session.connection())
        session.commit()
    engine.dispose()
    assert ids(pipe) == ["a", "b", "d"]


def test_connection_of_asynchronous_sqlalchemy_will_do(pipe: Jobpipe, postgres: str) -> None:
    async def scenario() -> None:
        engine = create_async_engine(postgres.replace("postgresql://", "postgresql+psycopg://"))
        async with engine.begin() as connection:
            raw = await connection.get_raw_connection()
            await pipe.enqueue("echo", 1, id="a", connection=raw.driver_connection)
        async with engine.connect() as connection:
            raw = await connection.get_raw_connection()
            await pipe.enqueue("echo", 1, id="b", connection=raw.driver_connection)
        await engine.dispose()

    asyncio.run(scenario())
    assert ids(pipe) == ["a"]


@pytest.mark.parametrize("foreign", [object(), "postgresql://", 7, sqlite3])
def test_what_is_no_connection_of_psycopg_is_refused(pipe: Jobpipe, foreign: object) -> None:
    with pytest.raises(BadInputError) as caught:
        pipe.store.insert_in(foreign, [new_job("x")])
    assert caught.value.field == "connection"
    assert ids(pipe) == []


def test_connection_to_another_store_is_refused_and_stays_usable(pipe: Jobpipe, postgres: str) -> None:
    pipe.enqueue_sync("echo", 1, id="a")
    with postgres_schema(postgres) as other_url, psycopg.connect(postgres) as connection:
        other = PostgresStore(other_url)
        other.migrate()
        connection.execute("CREATE TEMPORARY TABLE orders (id integer)")
        # The same server and the same name of the schema, but in a database of its own.
        with psycopg.connect(postgres, autocommit=True) as admin:
            admin.execute("DROP DATABASE IF EXISTS elsewhere")
            admin.execute("CREATE DATABASE elsewhere")
        with psycopg.connect(make_conninfo(postgres, dbname="elsewhere")) as elsewhere:
            for _ in range(2):
                with pytest.raises(BadInputError, match="own database"):
                    pipe.enqueue_sync("echo", 2, connection=elsewhere)
            elsewhere.execute("SELECT 1")
        pipe.enqueue_sync("echo", 3, id="b", connection=connection)
        other.close()
    assert ids(pipe) == ["a", "b"]


def test_many_jobs_in_one_transaction(pipe: Jobpipe, postgres: str) -> None:
    requests = [JobRequest(type="echo", payload=n, id=f"j{n}") for n in range(3)]
    with psycopg.connect(postgres) as connection:
        assert [each.id for each in pipe.enqueue_many_sync(requests, connection=connection)] == [
            "j0",
            "j1",
            "j2",
        ]
        assert pipe.enqueue_many_sync([], connection=connection) == []
        connection.rollback()
        assert ids(pipe) == []
        pipe.enqueue_many_sync(requests, connection=connection)
    assert sorted(ids(pipe)) == ["j0", "j1", "j2"]


def test_workers_hear_of_the_job_when_it_is_committed(pipe: Jobpipe, postgres: str) -> None:
    watch = pipe.store.watch(News.WORK)
    with psycopg.connect(postgres) as connection:
        pipe.enqueue_sync("echo", 1, connection=connection)
        assert not watch.wait(0.05)
        connection.commit()
        assert watch.wait(20)
    watch.close()


def test_unique_name_that_is_not_committed_yet_is_waited_for(pipe: Jobpipe, postgres: str) -> None:
    """Of two transactions with the same name the second goes by what has become of the first."""
    for is_committed in (True, False):
        name = f"name-{is_committed}"
        with psycopg.connect(postgres) as first, ThreadPoolExecutor(1) as threads:
            pipe.enqueue_sync("echo", 1, id=f"a-{name}", unique=name, connection=first)
            second = threads.submit(
                pipe.enqueue_sync, "echo", 2, id=f"b-{name}", unique=name, on_duplicate="replace"
            )
            eventually(lambda: _is_waited_for(postgres))
            assert not second.done()
            first.commit() if is_committed else first.rollback()
            receipt = second.result(LIMIT)
        assert (receipt.id, receipt.is_new) == (f"{'a' if is_committed else 'b'}-{name}", not is_committed)
        job = pipe.store.get(receipt.id)
        assert job is not None
        assert job.payload == 2


def test_other_jobs_do_not_wait_for_a_unique_name_that_is_not_committed_yet(
    pipe: Jobpipe, postgres: str
) -> None:
    async def scenario() -> None:
        with psycopg.connect(postgres) as first:
            pipe.enqueue_sync("echo", 1, unique="name", connection=first)
            same = asyncio.create_task(pipe.enqueue("echo", 2, unique="name"))
            await until(lambda: _is_waited_for(postgres))
            assert (await pipe.enqueue("echo", 3)).is_new
            assert not same.done()
            first.commit()
            assert not (await same).is_new

    run(scenario())


def _is_waited_for(postgres: str) -> bool:
    with psycopg.connect(postgres, autocommit=True) as connection:
        found = connection.execute("SELECT 1 FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'")
        return found.fetchone() is not None


def test_outcome_does_not_wait_for_a_transaction_that_replaces_the_next_job(
    pipe: Jobpipe, postgres: str
) -> None:
    """What is replaced is ready again when that commits, though it was put behind the job that has ended meanwhile."""
    options: dict[str, Any] = {"unique": "name", "on_duplicate": "replace"}
    pipe.enqueue_sync("echo", 1, id="a", **options)
    (claim,) = take(pipe.store, types=["echo"])
    pipe.enqueue_sync("echo", 2, id="b", **options)
    assert take(pipe.store, types=["echo"]) == []
    with psycopg.connect(postgres) as connection:
        assert pipe.enqueue_sync("echo", 3, connection=connection, **options).id == "b"
        assert finish(pipe.store, claim)
        connection.rollback()
    assert pipe.store.rescue() == []
    (claim,) = take(pipe.store, types=["echo"])
    assert (claim.id, claim.payload) == ("b", b"2")


def test_step_in_an_open_transaction_holds_up_no_heartbeat(postgres_url: str, postgres: str) -> None:
    """Its worker keeps leases, notes progress and stores logs; and the job is not rescued before the transaction ends."""
    clock = ManualTime()
    with (
        closing(PostgresStore(postgres_url, clock=clock)) as store,
        psycopg.connect(postgres) as own,
        ThreadPoolExecutor(1) as pool,
    ):
        store.migrate()
        put(store, new_job("a"), new_job("b"))
        leases = [claim.lease for claim in take(store, 2)]
        store.write_step_in(own, leases[0], step("s"))
        chunk = LogChunk(start=0, cut=0, count=1, size=2, lines='[[1, "INFO", "l", "m"]]')
        for do in (
            lambda: store.extend(leases, 60),
            lambda: store.progress([(lease, Progress(value=0.5)) for lease in leases]),
            lambda: store.write_logs([(lease, chunk) for lease in leases]),
        ):
            pool.submit(do).result(LIMIT)
        assert [len(logs.lines) for id in "ab" if (logs := store.logs(id))] == [1, 1]
        assert [job.progress is not None for id in "ab" if (job := store.get(id))] == [False, True]
        clock.elapse(61)
        assert [each.id for each in store.rescue()] == ["b"]
        own.commit()
        assert [each.id for each in store.rescue()] == ["a"]
        assert step_names(store, "a") == ["s"]


def test_begin_passes_over_a_job_that_its_handler_has_locked(postgres_url: str, postgres: str) -> None:
    """It was claimed ahead, and has recorded a step before the store was told that it runs."""
    with (
        closing(PostgresStore(postgres_url)) as store,
        ThreadPoolExecutor(1) as pool,
        psycopg.connect(postgres) as own,
    ):
        store.migrate()
        put(store, new_job("a"), new_job("b"))
        leases = [claim.lease for claim in store.claim("w", ["work"], 2, 60, begin=0).claims]
        store.write_step_in(own, leases[0], step("s"))
        states = pool.submit(store.begin, leases, [0.0, 0.0]).result(LIMIT)
        assert states == [LeaseState.BUSY, LeaseState.HELD]
        own.commit()
        assert store.begin(leases, [0.0, 0.0]) == [LeaseState.HELD, LeaseState.HELD]
        assert [(job.status, job.attempts) for id in "ab" if (job := store.get(id))] == [
            (JobStatus.RUNNING, 1),
            (JobStatus.RUNNING, 1),
        ]
