"""Transactions of the program's own, in the database of its store, however it came by its connection."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import (
    AbstractContextManager,
    asynccontextmanager,
    closing,
    contextmanager,
)
from dataclasses import dataclass
from typing import Any, NamedTuple

import psycopg
import sqlalchemy
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from .waiting import LIMIT


class Transaction(NamedTuple):
    """One that is committed at the end of its block, and rolled back if that raises."""

    connection: Any
    """What the program gives to `step` and `finish`."""
    execute: Callable[[str], Any]
    """An awaitable, where the connection is one that is awaited."""

    def write(self, effect: str) -> Any:
        """Something of the program's own."""
        return self.execute(f"INSERT INTO effects VALUES ('{effect}')")


@contextmanager
def _committed(path: str) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path, timeout=LIMIT)) as connection, connection:
        yield connection


@contextmanager
def _sqlite3(address: str) -> Iterator[Transaction]:
    with _committed(address) as connection:
        yield Transaction(connection, connection.execute)


@contextmanager
def _psycopg(address: str) -> Iterator[Transaction]:
    with psycopg.connect(address) as connection:
        yield Transaction(connection, connection.execute)


@asynccontextmanager
async def _psycopg_async(address: str) -> AsyncIterator[Transaction]:
    async with await psycopg.AsyncConnection.connect(address) as connection:
        yield Transaction(connection, connection.execute)


def _url(address: str) -> str:
    if address.startswith("postgresql:"):
        return address.replace("postgresql:", "postgresql+psycopg:")
    return f"sqlite:///{address}"


@contextmanager
def _sqlalchemy(address: str) -> Iterator[Transaction]:
    engine = sqlalchemy.create_engine(_url(address))
    with closing(_Disposed(engine)), engine.begin() as connection:
        yield Transaction(connection, lambda statement: connection.execute(sqlalchemy.text(statement)))


@contextmanager
def _sqlalchemy_session(address: str) -> Iterator[Transaction]:
    engine = sqlalchemy.create_engine(_url(address))
    with closing(_Disposed(engine)), Session(engine) as session, session.begin():
        yield Transaction(session.connection(), lambda statement: session.execute(sqlalchemy.text(statement)))


@asynccontextmanager
async def _sqlalchemy_async(address: str) -> AsyncIterator[Transaction]:
    engine = create_async_engine(_url(address))
    try:
        async with AsyncSession(engine) as session, session.begin():
            yield Transaction(
                await session.connection(), lambda statement: session.execute(sqlalchemy.text(statement))
            )
    finally:
        await engine.dispose()


class _Disposed:
    def __init__(self, engine: sqlalchemy.Engine) -> None:
        self.close = engine.dispose


SYNC = {"sqlite3": _sqlite3, "psycopg": _psycopg, "sqlalchemy": _sqlalchemy, "session": _sqlalchemy_session}
ASYNC = {"psycopg-async": _psycopg_async, "sqlalchemy-async": _sqlalchemy_async}

WAYS = {
    "sqlite": ("sqlite3", "sqlalchemy", "session"),
    "postgres": ("psycopg", "sqlalchemy", "session", "psycopg-async", "sqlalchemy-async"),
}
"""By store."""


@dataclass(frozen=True)
class Database:
    """The database of a store, with a table of the program's own."""

    address: str
    """What `sqlite3.connect` or `psycopg.connect` takes."""
    way: str

    @property
    def is_async(self) -> bool:
        return self.way in ASYNC

    def make_table(self) -> None:
        """An empty one."""
        with self._plain() as connection:
            connection.execute("CREATE TABLE IF NOT EXISTS effects (name TEXT)")
            connection.execute("DELETE FROM effects")

    def effects(self) -> list[str]:
        """Those that are committed."""
        with self._plain() as connection:
            return sorted(name for (name,) in connection.execute("SELECT name FROM effects"))

    def _plain(self) -> AbstractContextManager[Any]:
        is_postgres = self.address.startswith("postgresql:")
        return psycopg.connect(self.address) if is_postgres else _committed(self.address)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        """For a coroutine."""
        if self.is_async:
            async with ASYNC[self.way](self.address) as transaction:
                yield transaction
        else:
            with SYNC[self.way](self.address) as transaction:
                yield transaction

    def transaction_sync(self) -> AbstractContextManager[Transaction]:
        """For a plain function."""
        return SYNC[self.way](self.address)
