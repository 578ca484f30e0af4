"""Migrations: each file once, in order, all of them in one transaction that nobody else can be in."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from ...errors import StoreRefusedError
from .connection import transaction
from .file import StoreFile
from .statements import migrations


def refuse_newer(file: StoreFile) -> None:
    """StoreRefusedError if the schema is newer than the program; the file is only read."""
    # Why a connection of its own: the store's own kind would turn the file to WAL.
    with closing(file.connect()) as connection:
        _check_version(_version(connection), migrations()[-1][0], file.path)


def migrate(connection: sqlite3.Connection, path: Path) -> list[str]:
    """Bring the schema up to date; the names of the steps that it took."""
    newest = migrations()[-1][0]
    _check_version(_version(connection), newest, path)
    if _version(connection) == newest:
        return []
    with transaction(connection) as cursor:
        # Why again: another may have migrated while this one waited for the lock.
        version = _version(connection)
        _check_version(version, newest, path)
        steps = [(number, name, file) for number, name, file in migrations() if number > version]
        for number, _, file in steps:
            for statement in _statements(file.read_text(encoding="utf-8")):
                cursor.execute(statement)
            cursor.execute(f"PRAGMA user_version = {number}")
        return [name for _, name, _ in steps]


def _version(connection: sqlite3.Connection) -> int:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return int(version)


def _check_version(version: int, newest: int, path: Path) -> None:
    if version > newest:
        raise StoreRefusedError(
            f"the store {path} has the schema {version}, this program knows {newest} at most: use a newer program"
        )


def _statements(script: str) -> Iterator[str]:
    """The statements of a script. Why not executescript: it commits before it begins."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
