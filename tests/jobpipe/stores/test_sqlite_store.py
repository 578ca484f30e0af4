"""The SQLite store keeps the contract, and does what the memory store does."""

from __future__ import annotations

import sqlite3
import tempfile
from contextlib import closing
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

from jobpipe.stores.base import Filter, JobStatus, Store
from jobpipe.stores.sqlite import SqliteStore
from jobpipe.stores.sqlite.connection import Connections
from jobpipe.stores.sqlite.inspecting import statement_of
from jobpipe.stores.sqlite.statements import migrations, sql
from jobpipe.testing import ManualTime, StoreContract, StoreHarness, new_job
from jobpipe.testing.model import StoreMachine
from jobpipe.testing.tools import put, take


class SqliteHarness(StoreHarness):
    def __init__(self, path: Path) -> None:
        self._path = path
        self._time = ManualTime()

    def open(self) -> Store:
        return SqliteStore(self._path, clock=self._time)

    def elapse(self, seconds: float) -> None:
        self._time.elapse(seconds)


@cache
def migrated() -> bytes:
    """A file without jobs. Why kept: to migrate takes half the time of a test."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "jobs.db"
        with closing(SqliteStore(path)) as store:
            store.migrate()
        return path.read_bytes()


class TestSqliteStore(StoreContract):
    @pytest.fixture
    def harness(self, tmp_path: Path) -> StoreHarness:
        path = tmp_path / "jobs.db"
        path.write_bytes(migrated())
        return SqliteHarness(path)


class SqliteMachine(StoreMachine):
    def make_store(self, time: ManualTime) -> Store:
        self._folder = tempfile.TemporaryDirectory()
        path = Path(self._folder.name) / "jobs.db"
        path.write_bytes(migrated())
        return SqliteStore(path, clock=time)

    def teardown(self) -> None:
        super().teardown()
        self._folder.cleanup()


TestSqliteMachine = SqliteMachine.TestCase
# Why no shrinking: every step is a commit on disk, and shrinking takes minutes; turn it on to study a failure.
TestSqliteMachine.settings = settings(
    max_examples=40,
    stateful_step_count=40,
    deadline=None,
    phases=[Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)


def test_a_file_of_an_older_program_is_brought_up_to_date(tmp_path: Path) -> None:
    """One that knew no paused schedules."""
    path = tmp_path / "jobs.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        for number, _, file in migrations():
            if number <= 3:
                connection.executescript(file.read_text(encoding="utf-8"))
        connection.execute(
            "INSERT INTO schedules (name, type, queue, payload, every, missed, anchor_at, next_at)"
            " VALUES ('s', 'work', 'q', 'null', 60.0, 'one', 5.0, 65.0)"
        )
        connection.execute("PRAGMA user_version = 3")
    with closing(SqliteStore(path)) as store:
        assert store.migrate()[0] == "0004_paused_schedules"
        (entry,) = store.schedules().entries
        assert (entry.name, entry.next_at, entry.is_paused) == ("s", 65.0, False)
        assert store.pause_schedule("s")
        assert store.fire_tick("s", 65.0, 125.0, new_job("a")) is None


def test_jobs_of_an_older_program_are_claimed_and_rescued(tmp_path: Path) -> None:
    """One that claimed nothing ahead: what it ran and what it left queued are found by the new indexes."""
    path = tmp_path / "jobs.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        for number, _, file in migrations():
            if number <= 4:
                connection.executescript(file.read_text(encoding="utf-8"))
        connection.executemany(
            "INSERT INTO jobs (id, type, queue, status, attempts, runs, max_retries, priority, run_at, created_at,"
            " started_at, worker, token, lease_until, fingerprint, payload)"
            " VALUES (?, 'work', 'default', ?, ?, ?, 3, 0, 1.0, 1.0, ?, ?, ?, ?, '', 'null')",
            [
                ("ran", "running", 1, 1, 2.0, "w0", "t0", 5.0),
                ("waits", "queued", 0, 0, None, None, None, None),
            ],
        )
        connection.execute("PRAGMA user_version = 4")
    with closing(SqliteStore(path)) as store:
        assert "0005_claimed_ahead" in store.migrate()
        assert [rescued.id for rescued in store.rescue()] == ["ran"]
        claims = store.claim("w1", ["work"], 5, 60, (), 1).claims
        assert [(claim.id, claim.attempts, claim.has_begun) for claim in claims] == [
            ("ran", 2, True),
            ("waits", 1, False),
        ]


def test_jobs_of_a_program_without_tags_are_the_same_jobs(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        for number, _, file in migrations():
            if number <= 11:
                connection.executescript(file.read_text(encoding="utf-8"))
        connection.execute(
            "INSERT INTO jobs (id, type, queue, status, max_retries, priority, run_at, created_at, fingerprint, payload)"
            " VALUES ('old', 'work', 'default', 'queued', 3, 0, 1.0, 1.0, ?, 'null')",
            (new_job("old").fingerprint,),
        )
        connection.execute("PRAGMA user_version = 11")
    with closing(SqliteStore(path)) as store:
        assert store.migrate()[0] == "0012_unique_expiry_tags"
        assert [receipt.is_new for receipt in put(store, new_job("old"), new_job("new", tags=("a",)))] == [
            False,
            True,
        ]
        assert [job.tags for job in store.page(Filter(), 10).jobs] == [("a",), ()]
        assert [claim.id for claim in take(store, 10)] == ["old", "new"]


def test_jobs_of_a_tag_are_found_by_its_index(tmp_path: Path) -> None:
    """A million others are not looked at, whatever else is asked for."""
    with (
        closing(SqliteStore(tmp_path / "jobs.db")) as store,
        closing(sqlite3.connect(store.path)) as connection,
    ):
        store.migrate()
        for filter in (Filter(tag="a"), Filter(tag="a", status=JobStatus.FAILED, type="t", queue="q")):
            statement, values = statement_of(filter)
            plan = connection.execute(f"EXPLAIN QUERY PLAN {statement}", {**values, "before": 9, "limit": 9})
            steps = [row[3] for row in plan]
            assert [step.partition(" (")[0] for step in steps] == [
                "SEARCH tagged USING PRIMARY KEY",
                "SEARCH jobs USING INTEGER PRIMARY KEY",
            ], steps


def test_the_last_failures_are_found_by_the_index_on_when_they_failed(tmp_path: Path) -> None:
    """A million others are not sorted."""
    with (
        closing(SqliteStore(tmp_path / "jobs.db")) as store,
        closing(sqlite3.connect(store.path)) as connection,
    ):
        store.migrate()
        plan = connection.execute(f"EXPLAIN QUERY PLAN {sql('failures')}", {"head": 300, "limit": 9})
        assert [row[3] for row in plan] == ["SEARCH jobs USING INDEX jobs_failed_at (finished_at>?)"]


def test_a_read_that_ends_during_a_close_leaves_no_connection_open(tmp_path: Path) -> None:
    class ClosedMeanwhile(list[sqlite3.Connection]):
        def append(self, connection: sqlite3.Connection) -> None:
            connections.close()
            super().append(connection)

    with closing(SqliteStore(tmp_path / "jobs.db")) as store:
        store.migrate()
    connections = Connections(tmp_path / "jobs.db")
    connections._idle = ClosedMeanwhile()
    with connections.reading() as cursor:
        pass
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        cursor.connection.execute("SELECT 1")
