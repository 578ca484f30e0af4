"""A bench with schedules on each store."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from jobpipe.stores.base import Store
from jobpipe.stores.memory import MemoryStore
from jobpipe.stores.sqlite import SqliteStore
from jobpipe.testing import ManualTime

from ...support.sqlite_files import migrated_file
from .schedule_bench import Bench


@pytest.fixture(params=["memory", "sqlite"])
def bench(request: pytest.FixtureRequest, away_from_home: Path) -> Any:
    path = migrated_file(away_from_home / "jobs.db")

    def sqlite(time: ManualTime) -> Store:
        return SqliteStore(path, clock=time)

    made = Bench(sqlite if request.param == "sqlite" else lambda time: MemoryStore(clock=time))
    with closing(made):
        yield made
