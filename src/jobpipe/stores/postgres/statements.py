"""The statements, one file each, read once. In the files the schema is called `jobpipe`, whatever its name is."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from ...model.job import TRANSITIONS
from ..base import News

HERE = Path(__file__).parent
LEGAL_MOVES = sorted({(old.value, new.value) for old, moves in TRANSITIONS.items() for new in moves.values()})


class Statements:
    """The statements for one schema."""

    def __init__(self, schema: str) -> None:
        self.schema = schema

    def __call__(self, name: str, **parts: str) -> bytes:
        """The statement in `sql/{name}.sql`, with some words in it replaced; never by anything from outside."""
        return _read(self.schema, name, tuple(parts.items()))

    def channel(self, news: News) -> str:
        """Where news are told, named as the files say it."""
        return _adapted(f"jobpipe.{news}", self.schema)

    def migration(self, path: Path) -> bytes:
        """A migration, with the transition table filled in."""
        legal = ", ".join(f"('{old}', '{new}')" for old, new in LEGAL_MOVES)
        return (
            _adapted(path.read_text(encoding="utf-8"), self.schema)
            .replace("legal_moves)", f"{legal})")
            .encode()
        )


@cache
def _read(schema: str, name: str, parts: tuple[tuple[str, str], ...]) -> bytes:
    text = _adapted((HERE / "sql" / f"{name}.sql").read_text(encoding="utf-8"), schema)
    for word, part in parts:
        text = text.replace(word, part)
    return text.encode()


def _adapted(text: str, schema: str) -> str:
    return text.replace("jobpipe.", f'"{schema}".')


def migrations() -> list[tuple[int, str, Path]]:
    """Number, name and file of each migration, in order."""
    found = sorted((HERE / "migrations").glob("*.sql"))
    return [(int(path.stem.split("_")[0]), path.stem, path) for path in found]
