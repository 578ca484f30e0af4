"""Connections to one database: a few, opened when needed and kept, through which verbs are driven.

A connection that failed is closed, and so is one on which the server has said good-bye meanwhile. Errors are
mapped once, here. Deadlocks and failed serializations are undone by the server, and tried again.
"""

from __future__ import annotations

import random
import select
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias, TypeVar

import psycopg
from psycopg import errors as pg
from psycopg.pq import PipelineStatus, TransactionStatus
from psycopg.rows import TupleRow

from ...errors import StoreAwayError, StoreBusyError, StoreError, StoreRefusedError
from ...failpoints import reach
from ..driving import drive
from .address import Address
from .verb import Result, Step, Unit, Verb

T = TypeVar("T")
Connection: TypeAlias = psycopg.Connection[TupleRow]

MOST = 5
"""Connections that one handle has at the most; a verb that finds none free waits for one."""
_TRIES = 30
_AWAY = ("08", "53", "57P", "58")
"""Classes of SQLSTATE that time may mend: connection, resources (a full disk too), shutdown, system."""
_HOPELESS = (
    "authentication failed",
    "does not exist",
    "no pg_hba.conf entry",
    "permission denied for database",
)
"""What the server says, before there is a session, to one who will never be let in."""
_SETTINGS = b"""
SELECT set_config(name, value, false) FROM (VALUES
    -- Why: plans are made once, when the tables may still be empty, and must fit a million rows.
    ('plan_cache_mode', 'force_generic_plan'), ('enable_seqscan', 'off'), ('enable_bitmapscan', 'off'),
    ('enable_hashjoin', 'off'), ('enable_mergejoin', 'off'), ('jit', 'off'), ('default_transaction_isolation', 'read committed'), ('statement_timeout', '0'),
    -- Why so short: a process that is stopped in the middle of a claim must not hold up those of others.
    ('idle_in_transaction_session_timeout', '5000')
) AS wanted (name, value)
"""


class Connections:
    """The connections of one handle on the store."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._room = threading.BoundedSemaphore(MOST)
        self._idle: list[Connection] = []
        self._is_closed = False

    def open(self) -> Connection:
        """A new connection that commits by itself; who opens it closes it."""
        if self._is_closed:
            raise StoreError(f"the store {self.address.url} was closed")
        with self.mapped_errors():
            connection = psycopg.connect(**self.address.parameters, autocommit=True, prepare_threshold=0)
            try:
                connection.execute(_SETTINGS, prepare=False)
            except BaseException:
                connection.close()
                raise
            return connection

    def drive(self, verb: Verb[T]) -> T:
        """Do what a verb asks for."""
        return drive(verb, lambda unit: self.attempt(lambda connection: _do(connection, unit)))

    def attempt(self, work: Callable[[Connection], T]) -> T:
        """Work with a connection that nobody else uses meanwhile.

        Again, if it met others in a circle and the server undid it; or if the connection was kept from before and
        its session has ended since. All verbs may be called again.
        """
        for tries in range(_TRIES):
            with self._room:
                kept = self._next_idle()
                connection = kept or self.open()
                try:
                    with self.mapped_errors():
                        return work(connection)
                except StoreError as error:
                    if kept is not None and connection.closed:
                        self._close_idle()  # Why all: what ended one session has most likely ended them all
                    elif not isinstance(error.__cause__, pg.DeadlockDetected | pg.SerializationFailure):
                        raise
                except BaseException as error:
                    if not isinstance(error, Exception):
                        connection.close()  # Why: nobody knows what it was in the middle of
                    raise
                finally:
                    self._keep(connection)
            time.sleep(random.uniform(0, 0.005 * tries))  # noqa: S311
        raise StoreAwayError(
            f"the store {self.address.url} is too busy: a statement met others {_TRIES} times"
        )

    def _next_idle(self) -> Connection | None:
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                return None
            if not connection.closed and not _is_readable(connection):
                return connection
            connection.close()  # Why: what comes unasked is the end of the session

    def _keep(self, connection: Connection) -> None:
        if self._is_closed or not _is_fit(connection):
            connection.close()
        else:
            self._idle.append(connection)

    def _close_idle(self) -> None:
        while self._idle:
            self._idle.pop().close()

    @contextmanager
    def mapped_errors(self) -> Iterator[None]:
        """PostgreSQL's errors as ours."""
        where = self.address.url
        try:
            yield
        except psycopg.Error as error:
            mask = self.address.mask
            mask.scrub(error, psycopg.Error)
            state, words = error.sqlstate or "", mask(_one_line(error))
            if isinstance(error, psycopg.OperationalError) and not state:
                if any(each in words for each in _HOPELESS):
                    raise StoreRefusedError(f"the store {where} lets nobody in: {words}") from error
                raise StoreAwayError(f"the store {where} cannot be reached: {words}") from error
            if isinstance(error, psycopg.InterfaceError) or state.startswith(_AWAY):
                raise StoreAwayError(f"the store {where} cannot be used for now: {words}") from error
            if isinstance(error, pg.LockNotAvailable):
                raise StoreBusyError(
                    f"the store {where} is busy, others held up a statement: {words}"
                ) from error
            if isinstance(error, pg.UndefinedTable | pg.UndefinedFunction | pg.InvalidSchemaName):
                raise StoreError(
                    f"the store {where} has no tables of jobpipe: run `jobpipe migrate`"
                ) from error
            raise StoreError(f"the store {where} refused a statement: {words}") from error

    def close(self) -> None:
        """Close all that are idle; those in use are closed when they come back."""
        self._is_closed = True
        self._close_idle()


def _do(connection: Connection, unit: Unit) -> Any:
    if callable(unit):
        with connection.transaction():
            return drive(unit(), lambda step: _result(_execute(connection, step)))
    if len(unit) == 1:
        return [_result(_execute(connection, unit[0]))]
    cursors: list[psycopg.Cursor[TupleRow]] = []
    problem: psycopg.Error | None = None
    try:
        with connection.pipeline():
            try:
                for step in unit:
                    cursors.append(_execute(connection, step))
                    if step.mark is not None:
                        # Why the answer: the server has then done all that was asked before.
                        reach(step.mark, lambda: connection.execute("SELECT 1").fetchone())
            except psycopg.Error as error:
                # Why not raised here: psycopg would log that the rest of the steps failed too.
                problem = error
    except psycopg.Error as error:
        problem = problem or error
    if problem is not None:
        raise problem
    return list(map(_result, cursors))


def _is_fit(connection: Connection) -> bool:
    """Can it be used again? What a failure left open is undone."""
    try:
        # Why: psycopg may leave replies behind when a step fails, and would wait for ever for the next one.
        if connection.pgconn.pipeline_status != PipelineStatus.OFF:
            return False
        if connection.info.transaction_status is not TransactionStatus.IDLE:
            connection.rollback()
        return connection.info.transaction_status is TransactionStatus.IDLE
    except psycopg.Error:
        return False


def _execute(connection: Connection, step: Step) -> psycopg.Cursor[TupleRow]:
    return connection.execute(step.query, step.values, binary=True)


def _result(cursor: psycopg.Cursor[TupleRow]) -> Result:
    # Why not its description: that makes a value for each column, which takes longer than all else here.
    has_rows = cursor.pgresult is not None and cursor.pgresult.nfields > 0
    return Result(cursor.fetchall() if has_rows else [], cursor.rowcount)


def _is_readable(connection: Connection) -> bool:
    """Has the server sent something that nobody asked for?"""
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(0))


def _one_line(error: psycopg.Error) -> str:
    text = error.diag.message_primary or str(error) or type(error).__name__
    return " ".join(text.split())
