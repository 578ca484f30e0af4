"""The statements, one file each, read once."""

from __future__ import annotations

from functools import cache
from pathlib import Path

HERE = Path(__file__).parent


@cache
def sql(name: str) -> str:
    """The statement in `sql/{name}.sql`."""
    return (HERE / "sql" / f"{name}.sql").read_text(encoding="utf-8")


def migrations() -> list[tuple[int, str, Path]]:
    """Number, name and file of each migration, in order."""
    found = sorted((HERE / "migrations").glob("*.sql"))
    return [(int(path.stem.split("_")[0]), path.stem, path) for path in found]
