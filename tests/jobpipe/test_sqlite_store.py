"""The SQLite store keeps the contract, and does what the memory store does."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

from jobpipe.stores.base import Store
from jobpipe.stores.sqlite import SqliteStore
from jobpipe.testing import ManualTime, StoreContract, StoreHarness
from jobpipe.testing.model import StoreMachine


class SqliteHarness(StoreHarness):
    def __init__(self, path: Path) -> None:
        self._path = path
        self._time = ManualTime()

    def open(self) -> Store:
        return SqliteStore(self._path, clock=self._time)

    def elapse(self, seconds: float) -> None:
        self._time.elapse(seconds)


class TestSqliteStore(StoreContract):
    @pytest.fixture
    def harness(self, tmp_path: Path) -> StoreHarness:
        return SqliteHarness(tmp_path / "jobs.db")


class SqliteMachine(StoreMachine):
    def make_store(self, time: ManualTime) -> Store:
        self._folder = tempfile.TemporaryDirectory()
        store = SqliteStore(Path(self._folder.name) / "jobs.db", clock=time)
        store.migrate()
        return store

    def teardown(self) -> None:
        super().teardown()
        self._folder.cleanup()


TestSqliteMachine = SqliteMachine.TestCase
# Why no shrinking: every step is a commit on disk, and shrinking takes minutes; turn it on to study a failure.
TestSqliteMachine.settings = settings(
    max_examples=50,
    stateful_step_count=40,
    deadline=None,
    phases=[Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)
