"""SQLite stores that are migrated and empty: to migrate one takes half the time of a short test."""

from __future__ import annotations

import tempfile
from contextlib import closing
from functools import cache
from pathlib import Path

from jobpipe.stores.sqlite import SqliteStore


def migrated_file(path: Path) -> Path:
    """The path, where there is such a store now."""
    path.write_bytes(_empty())
    return path


@cache
def _empty() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "jobs.db"
        with closing(SqliteStore(path)) as store:
            store.migrate()
        return path.read_bytes()
