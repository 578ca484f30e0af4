"""Guests: inserts, steps and outcomes in the caller's own transaction, through a connection that may be one that is awaited.

What SQLAlchemy and Django wrap around a connection of psycopg is taken off.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Generic, TypeAlias, TypeVar
from weakref import WeakSet

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow, tuple_row

from ...errors import BadInputError, LeaseLostError
from ...model.admission import Bounds
from ...model.durable import Step as JobStep
from ...model.durable import name_is_used
from ...model.lease import Lease, Settlement
from ...model.newjob import Answer, NewJob
from ..driving import drive, drive_awaited
from ..guests import no_transaction
from .connection import Connection, Connections
from .lent import bare_of
from .migrate import HAS_TABLE
from .session import Session
from .verb import BEGIN, COMMIT, Conversation, Result, Step, run
from .verbs.durable import leased, step_of
from .verbs.inserting import guest_steps
from .verbs.running import settle_guest

T = TypeVar("T")
AsyncConnection: TypeAlias = psycopg.AsyncConnection[TupleRow]


class Guests:
    """The connections of others that were seen, and what is written through them."""

    def __init__(self, session: Session, connections: Connections) -> None:
        self._session = session
        self._connections = connections
        self._identity: str | None = None
        self._known: WeakSet[Any] = WeakSet()
        """Connections that lead to this very store."""

    def insert(self, connection: Any, batch: Sequence[NewJob], capacity: int) -> Answer | Awaitable[Answer]:
        """Insert a batch; an awaitable of the answer for a connection that is awaited.

        The capacity is heeded as far as can be seen at this moment: what others insert in transactions that are
        not committed yet is not counted. Why: to have the queue for itself, a guest would hold up everybody else
        until its owner commits, who may take his time.
        """

        def talk() -> Conversation[Answer]:
            (answer,) = yield from guest_steps(self._session, [batch], Bounds(capacity))
            yield self._session.step("tell_work")
            return answer

        return self._hold(connection, talk)

    def write_step(self, connection: Any, lease: Lease, step: JobStep) -> Awaitable[None] | None:
        """Record a step; LeaseLostError, or BadInputError for a name that is recorded."""

        def talk() -> Conversation[None]:
            if (yield step_of(self._session, lease, step)).touched:
                return
            held = (yield leased(self._session, lease)).rows
            raise name_is_used(step.name) if held else LeaseLostError(lease.id)

        return self._hold(connection, talk, needs_transaction=True)

    def settle(self, connection: Any, settlement: Settlement) -> Awaitable[None] | None:
        """Settle a run; LeaseLostError."""

        def talk() -> Conversation[None]:
            if not (yield from settle_guest(self._session, settlement)):
                raise LeaseLostError(settlement.lease.id)
            self._session.lent.settled(connection)
            yield self._session.step("tell_work")

        return self._hold(connection, talk, needs_transaction=True)

    def _hold(
        self, connection: Any, talk: Callable[[], Conversation[T]], *, needs_transaction: bool = False
    ) -> T | Awaitable[T]:
        """Hold a conversation in the caller's transaction, or in one of its own if it does not need that."""
        bare = bare_of(connection)
        if bare is None:
            raise BadInputError(
                "connection",
                f"must be a psycopg.Connection or psycopg.AsyncConnection for this store, got {connection!r}",
            )
        if needs_transaction and _is_alone(bare):
            raise no_transaction()
        self._session.lent.begin(bare)
        conversation = self._conversation(bare, talk)
        if isinstance(bare, psycopg.AsyncConnection):
            return _Awaited(partial(self._lead_awaited, bare, conversation))
        is_alone = _is_alone(bare)
        with self._connections.mapped_errors():
            self._own_identity()
            try:
                return lead(bare, conversation)
            except BaseException:
                if is_alone:
                    with suppress(psycopg.Error):
                        bare.rollback()
                raise

    async def _lead_awaited(self, connection: AsyncConnection, conversation: Conversation[T]) -> T:
        with self._connections.mapped_errors():
            await asyncio.to_thread(self._own_identity)
            is_alone = _is_alone(connection)
            try:
                return await lead_awaited(connection, conversation)
            except BaseException:
                if is_alone:
                    with suppress(psycopg.Error):
                        await connection.rollback()
                raise

    def _own_identity(self) -> str:
        if self._identity is None:
            (found,) = self._connections.drive(run(self._session.step("identity")))
            self._identity = str(found.rows[0][0])
        return self._identity

    def _conversation(
        self, connection: Connection | AsyncConnection, talk: Callable[[], Conversation[T]]
    ) -> Conversation[T]:
        """Within a transaction, that of the caller if there is, or will be, one."""
        is_alone = _is_alone(connection)
        if connection not in self._known:
            # Why first whether it is there: an error would spoil the caller's transaction.
            table = {"schema": self._session.statements.schema, "name": "identity"}
            is_there = (yield Step(HAS_TABLE, table)).rows
            if not is_there or (yield self._session.step("identity")).rows[0][0] != self._own_identity():
                raise BadInputError(
                    "connection", "must be one to the store's own database, got one to another"
                )
            self._known.add(connection)
        if is_alone:
            yield BEGIN
        answer = yield from talk()
        if is_alone:
            yield COMMIT
        return answer


def _is_alone(connection: Connection | AsyncConnection) -> bool:
    """Does what is written need a transaction of its own, which it has to end, too?"""
    return connection.autocommit and connection.info.transaction_status is TransactionStatus.IDLE


class _Awaited(Generic[T]):
    """An answer that is to be awaited. Why not a coroutine: who finds that he cannot await it may drop it."""

    def __init__(self, begin: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self._begin = begin

    def __await__(self) -> Generator[Any, Any, T]:
        return self._begin().__await__()


def lead(connection: Connection, conversation: Conversation[T]) -> T:
    """Hold the conversation through a connection that blocks."""

    def ask(step: Step) -> Result:
        cursor.execute(step.query, step.values)
        return Result(cursor.fetchall() if cursor.description else [], cursor.rowcount)

    # Why not connection.execute: rows come as tuples here, whatever the owner prefers.
    with psycopg.Cursor(connection, row_factory=tuple_row) as cursor:
        return drive(conversation, ask)


async def lead_awaited(connection: AsyncConnection, conversation: Conversation[T]) -> T:
    """The same through one that is awaited."""

    async def ask(step: Step) -> Result:
        await cursor.execute(step.query, step.values)
        return Result(await cursor.fetchall() if cursor.description else [], cursor.rowcount)

    async with psycopg.AsyncCursor(connection, row_factory=tuple_row) as cursor:
        return await drive_awaited(conversation, ask)
