"""Stores of older programs are brought up to date with jobs in every status; and what such a program does that still runs."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import pytest

from jobpipe import JobStatus
from jobpipe.model.durable import SignalAnswer
from jobpipe.stores.base import Store
from jobpipe.stores.postgres import PostgresStore
from jobpipe.stores.postgres import statements as postgres_statements
from jobpipe.stores.redis import RedisStore
from jobpipe.stores.redis.records import Record
from jobpipe.stores.redis.store import STEPS
from jobpipe.stores.sqlite import SqliteStore
from jobpipe.stores.sqlite import statements as sqlite_statements
from jobpipe.testing import ManualTime
from jobpipe.testing.durable.tools import record, send, sleep, state, step_names, wait
from jobpipe.testing.reading import ids, look, page_ids, tally
from jobpipe.testing.tools import BOOM, bring_to, finish, new_job, put, take, take_one

from ...support.servers_redis import RedisServer, redis_server

ERROR = msgspec.json.encode(BOOM).decode()
OLD = {
    # attempts, run_at, started_at, finished_at, lease_until, error, result
    "scheduled": (0, 4e9, None, None, None, None, None),
    "running": (1, 1.0, 2.0, None, 3.0, None, None),
    "done": (1, 1.0, 2.0, 3.0, None, None, "42"),
    "failed": (4, 1.0, 2.0, 3.0, None, ERROR, None),
    "cancelled": (0, 1.0, None, 3.0, None, None, None),
    "queued": (0, 1.0, None, None, None, None, None),
}
"""The jobs of an older program: one in each status that there was."""
COLUMNS = (
    "seq, id, type, queue, status, attempts, runs, max_retries, priority, run_at, created_at, started_at, finished_at,"
    " worker, token, lease_until, fingerprint, error, payload, result"
)


def rows() -> Iterator[tuple[Any, ...]]:
    for seq, (status, told) in enumerate(OLD.items(), 1):
        attempts, run_at, started_at, finished_at, lease_until, error, result = told
        owner = ("w0", f"token-{status}") if attempts else (None, None)
        yield (
            *(seq, status, "work", "default", status, attempts, attempts, 3, 0, run_at, 1.0, started_at),
            *(finished_at, *owner, lease_until, new_job(status, delay=0).fingerprint, error, "null", result),
        )


def goes_on(store: Store) -> None:
    """All that was there is as it was, can be run, and records steps and signals."""
    assert tally(store) == {JobStatus(status): 1 for status in OLD}
    assert page_ids(store) == list(reversed(OLD))
    assert look(store, "done").result in (42, {"answer": 42})
    assert look(store, "failed").error == BOOM
    assert not put(store, new_job("done", delay=0))[0].is_new
    assert ids(store.rescue()) == ["running"]
    assert store.retry(["failed", "cancelled"]) == [JobStatus.FAILED, JobStatus.CANCELLED]
    claims = {claim.id: claim for claim in take(store, 9)}
    assert set(claims) == {"queued", "running", "failed", "cancelled"}
    assert record(store, claims["queued"], "s") == [True]
    assert finish(store, claims["queued"])
    assert wait(store, claims["running"])
    assert wait(store, claims["failed"])
    assert sleep(store, claims["cancelled"], seconds=0)
    assert send(store, "running") is SignalAnswer.ACCEPTED
    assert step_names(store, "queued") == ["s"]
    assert {claim.id for claim in take(store, 9)} == {"running", "cancelled"}
    assert ids(each.job for each in store.export(9)) == ["scheduled", "failed"]
    assert store.delete(["queued", "failed"]) == [JobStatus.DONE, JobStatus.WAITING]
    assert store.durable("queued") is None
    assert state(store, "failed").pending_wait() is not None
    assert store.discard(["failed", "scheduled"]) == 2
    assert store.get("failed") is None


FIRST_AND_LAST = pytest.mark.parametrize("known", [1, -1], ids=["first", "last"])


def older_sqlite(path: Path, known: int) -> list[str]:
    """A file of a program that knew so many migrations, with its jobs; the names of those since."""
    steps = sqlite_statements.migrations()
    with closing(sqlite3.connect(path)) as connection, connection:
        for _, _, file in steps[:known]:
            connection.executescript(file.read_text(encoding="utf-8"))
        marks = ", ".join("?" for _ in COLUMNS.split(","))
        connection.executemany(f"INSERT INTO jobs ({COLUMNS}) VALUES ({marks})", rows())
        connection.execute(f"PRAGMA user_version = {steps[:known][-1][0]}")
    return [name for _, name, _ in steps[known:]]


@FIRST_AND_LAST
def test_sqlite_file_is_brought_up_to_date(tmp_path: Path, known: int) -> None:
    missing = older_sqlite(tmp_path / "jobs.db", known)
    with closing(SqliteStore(tmp_path / "jobs.db")) as store:
        assert store.migrate() == missing
        goes_on(store)


@FIRST_AND_LAST
def test_postgres_schema_is_brought_up_to_date(
    postgres_url: str, postgres: str, monkeypatch: pytest.MonkeyPatch, known: int
) -> None:
    steps = postgres_statements.migrations()
    with monkeypatch.context() as older, closing(PostgresStore(postgres_url)) as store:
        older.setattr("jobpipe.stores.postgres.migrate.migrations", lambda: steps[:known])
        store.migrate()
    schema = postgres_url.rpartition("schema=")[2]
    with psycopg.connect(postgres) as connection, connection.cursor() as cursor:
        marks = ", ".join("%s" for _ in COLUMNS.split(","))
        cursor.executemany(f"INSERT INTO {schema}.jobs ({COLUMNS}) VALUES ({marks})", list(rows()))
        cursor.execute(f"SELECT setval('{schema}.jobs_seq', {len(OLD)})")
    with closing(PostgresStore(postgres_url)) as store:
        assert store.migrate() == [name for _, name, _ in steps[known:]]
        goes_on(store)


@FIRST_AND_LAST
def test_redis_store_is_brought_up_to_date(tmp_path: Path, known: int) -> None:
    """Records of the first end before what came with the second."""
    clock = ManualTime()
    with redis_server(tmp_path / "redis") as server, closing(RedisStore(server.url, clock=clock)) as store:
        store.migrate()
        for status in OLD:
            bring_to(store, status, JobStatus(status))
        _make_older(server, known)
        assert store.migrate() == list(STEPS[known:])
        clock.elapse(61)
        goes_on(store)


def _make_older(server: RedisServer, known: int) -> None:
    if known == 1:
        for seq, packed in server.ask("HGETALL", "{jobpipe}:jobs").items():
            kept = msgspec.msgpack.decode(packed)[: Record.__struct_fields__.index("is_ahead")]
            server.ask("HSET", "{jobpipe}:jobs", seq, msgspec.msgpack.encode(kept))
        server.ask("DEL", "{jobpipe}:queued", "{jobpipe}:names")
    server.ask("SET", "{jobpipe}:version", str(len(STEPS[:known])))


# An older program that still runs, on SQLite: its statements, as they were before steps.

OLDER = {
    "come due": "UPDATE jobs SET status = 'queued' WHERE status = 'scheduled' AND run_at <= 4e9",
    "expire": (
        "UPDATE jobs SET status = 'expired' WHERE expires_at <= 4e9 AND started_at IS NULL AND finished_at IS NULL"
        " AND runs = 0 AND lease_until IS NULL"
    ),
    "prune": "DELETE FROM jobs WHERE finished_at < 4e9",
    "discard": "DELETE FROM jobs WHERE id IN ('waiting') AND status IN ('scheduled', 'queued')",
}


@pytest.fixture
def waiting(tmp_path: Path) -> Iterator[tuple[SqliteStore, sqlite3.Connection]]:
    """A job that waits, and the connection of an older program."""
    older_sqlite(tmp_path / "jobs.db", -1)
    with (
        closing(SqliteStore(tmp_path / "jobs.db")) as store,
        closing(sqlite3.connect(tmp_path / "jobs.db")) as older,
    ):
        store.migrate()
        put(store, new_job("waiting", priority=9))
        assert wait(store, take_one(store))
        yield store, older


def test_older_program_leaves_a_job_that_waits_alone(
    waiting: tuple[SqliteStore, sqlite3.Connection],
) -> None:
    store, older = waiting
    with older:
        for statement in OLDER.values():
            older.execute(statement)
    assert look(store, "waiting").status is JobStatus.WAITING
    assert send(store, "waiting") is SignalAnswer.ACCEPTED
    assert take_one(store).id == "waiting"


def test_older_program_cannot_delete_a_job_that_waits(
    waiting: tuple[SqliteStore, sqlite3.Connection],
) -> None:
    """It would take it for one that has ended."""
    store, older = waiting
    with pytest.raises(sqlite3.IntegrityError, match="the job waits for a signal"):
        older.execute(
            "DELETE FROM jobs WHERE id = ? AND status NOT IN ('scheduled', 'queued', 'running')", ["waiting"]
        )
    older.rollback()
    assert look(store, "waiting").status is JobStatus.WAITING


def test_older_program_cannot_delete_a_job_that_waits_on_postgres(postgres_url: str, postgres: str) -> None:
    jobs = f"{postgres_url.rpartition('schema=')[2]}.jobs"
    with closing(PostgresStore(postgres_url)) as store, psycopg.connect(postgres) as older:
        store.migrate()
        put(store, new_job("waiting"))
        assert wait(store, take_one(store))
        with pytest.raises(psycopg.errors.RaiseException, match="the job waits for a signal"):
            older.execute(f"DELETE FROM {jobs} WHERE status NOT IN ('scheduled', 'queued', 'running')")
        older.rollback()
        assert look(store, "waiting").status is JobStatus.WAITING


def test_statements_of_an_older_program_are_as_fast_as_before(
    waiting: tuple[SqliteStore, sqlite3.Connection],
) -> None:
    _, older = waiting
    plan = older.execute(f"EXPLAIN QUERY PLAN {OLDER['come due']}").fetchall()
    assert "USING INDEX jobs_due" in plan[0][3]
