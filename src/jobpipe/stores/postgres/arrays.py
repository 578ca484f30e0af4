"""Lists as array literals of PostgreSQL. Why not psycopg's own: these take a sixth of its time, and there are many."""

from __future__ import annotations

from collections.abc import Iterable


def texts(values: Iterable[str | None]) -> str:
    """A literal of type text[]."""
    return "{" + ",".join(map(_quoted, values)) + "}"


def numbers(values: Iterable[float | None]) -> str:
    """A literal of type integer[] or float8[]."""
    return "{" + ",".join(["NULL" if value is None else repr(value) for value in values]) + "}"


def _quoted(value: str | None) -> str:
    if value is None:
        return "NULL"
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
