"""Connections to one SQLite file: how they are opened, borrowed and written through; errors mapped once.

There is one connection to write with, behind a lock, and a few to read with. Every write is one
BEGIN IMMEDIATE transaction, so a lock that another process has is waited for, never met half-way.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ...errors import BadInputError, StoreAwayError, StoreBusyError, StoreError, StoreRefusedError
from ...model.job import TRANSITIONS, JobStatus
from ..forks import invalidate_after_fork, refuse_inherited
from ..guests import lent_connections, no_transaction, unwrapped
from .file import StoreFile

_OLDEST = (3, 38, 0)
"""The first with RETURNING and JSON built in."""

_BROKEN = ("not a database", "malformed", "unsupported file format")


def _is_one_of(statuses: Iterable[str]) -> str:
    # Why not IN: SQLite would make a table of the values for every row.
    return " OR ".join(f"NEW.status = '{status}'" for status in sorted(set(statuses)))


_LEGAL = " ".join(
    f"WHEN '{old}' THEN {_is_one_of(moves.values())}" for old, moves in TRANSITIONS.items() if moves
)
_GUARD = f"""
CREATE TEMP TRIGGER IF NOT EXISTS only_legal_moves BEFORE UPDATE OF status ON main.jobs
WHEN NOT (
    OLD.status = NEW.status
    -- One that was claimed ahead begins and ends in one step.
    OR (OLD.status = 'queued' AND OLD.lease_until IS NOT NULL AND ({_is_one_of(TRANSITIONS[JobStatus.RUNNING].values())}))
    OR CASE OLD.status {_LEGAL} ELSE 0 END
)
BEGIN SELECT RAISE(ABORT, 'the transition table knows no such move'); END
"""
"""The transition table, as a guard of the connection that writes."""


class Connections:
    """The connections of one handle on the file."""

    def __init__(self, path: Path) -> None:
        if sqlite3.sqlite_version_info < _OLDEST:
            raise StoreRefusedError(
                f"SQLite {sqlite3.sqlite_version} is too old: at least {'.'.join(map(str, _OLDEST))} is needed"
            )
        self.path = path
        self.file = StoreFile(path)
        self._writing = threading.Lock()
        self._writer: sqlite3.Connection | None = None
        self._idle: list[sqlite3.Connection] = []
        self._is_closed = False
        self._has_opened = False
        self._is_inherited = False
        invalidate_after_fork(self)
        self._is_synced = True  # does the writer wait for the disk?

    def open(self) -> sqlite3.Connection:
        """A new connection; who opens it closes it."""
        if self._is_closed:
            raise StoreError(f"the store {self.path} was closed")
        if self._is_inherited:
            refuse_inherited(f"the store {self.path}")
        self._has_opened = True
        self.file.look()
        with MappedErrors(self.path):
            connection = self.file.connect()
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute("PRAGMA journal_size_limit = 67108864")
                connection.execute("PRAGMA wal_autocheckpoint = 4000")
                connection.execute("PRAGMA cache_size = -16384")
                self.file.look()
            except BaseException:
                connection.close()
                raise
            return connection

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Cursor]:
        """A cursor to read with; it sees what is committed."""
        self.file.look()
        try:
            connection = self.open() if self._is_inherited else self._idle.pop()
        except IndexError:
            connection = self.open()
        try:
            with MappedErrors(self.path):
                yield connection.cursor()
        except BaseException:
            connection.close()
            raise
        self._idle.append(connection)
        if self._is_closed:  # Why asked afterwards: a close meanwhile may have missed it
            self._close_idle()

    @contextmanager
    def writing(self, *, synced: bool = True) -> Iterator[sqlite3.Cursor]:
        """A cursor within a transaction, which is on disk when the block has ended; undone if it raises.

        What is not synced survives the death of the process, but not a power cut.
        """
        if self._is_inherited:
            refuse_inherited(f"the store {self.path}")
        self.refuse_held_up()
        with self._writing:
            if self._writer is None:
                self._writer = self._open_writer()
                self._is_synced = True
            with MappedErrors(self.path):
                if synced is not self._is_synced:
                    self._writer.execute(f"PRAGMA synchronous = {'FULL' if synced else 'NORMAL'}")
                    self._is_synced = synced
                try:
                    with transaction(self._writer) as cursor:
                        yield cursor
                        self.file.look()  # Why before the commit: nothing goes to a file that is gone
                except sqlite3.DatabaseError:
                    self.file.look()  # it may tell more than SQLite does
                    raise
            self.file.look()  # Why again: what was committed to a file that is gone must not be acknowledged

    @property
    def is_held_up(self) -> bool:
        """Would a write wait for a transaction that the calling handler has open itself?"""
        return any(map(_holds_lock, lent_connections()))

    def refuse_held_up(self) -> None:
        """StoreError if it would."""
        if self.is_held_up:
            raise StoreError(
                f"the store {self.path} cannot be written to while the handler has its own transaction open there: "
                "pass the `connection` to this call, too, or commit first"
            )

    def _open_writer(self) -> sqlite3.Connection:
        connection = self.open()
        try:
            with MappedErrors(self.path):
                connection.execute(_GUARD)
            self.file.keep_wal()
        except BaseException:
            connection.close()
            raise
        return connection

    def close(self) -> None:
        """Close all that were opened for reading and writing."""
        self._is_closed = True
        if self._is_inherited:
            return
        with self._writing:
            if self._writer is not None:
                self.file.leave_wal()
                self._writer.close()
                self._writer = None
        self._close_idle()

    def _close_idle(self) -> None:
        while self._idle:
            with suppress(IndexError):  # another thread may close them as well
                self._idle.pop().close()

    def invalidate(self) -> None:
        """In a child process after a fork: what is open is the parent's."""
        self._is_inherited = self._has_opened and not self._is_closed


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[sqlite3.Cursor]:
    """A cursor within a transaction that has the lock for writing from its beginning."""
    cursor = connection.cursor()
    cursor.execute("BEGIN IMMEDIATE")
    try:
        yield cursor
        cursor.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


class MappedErrors:
    """SQLite's errors as ours. Why no generator: it takes part in every call, and this takes a third of the time."""

    __slots__ = ("_path",)

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, sqlite3.DatabaseError):
            raise _mapped(self._path, error) from error


def _mapped(path: Path, error: sqlite3.DatabaseError) -> StoreError:
    if isinstance(error, sqlite3.OperationalError):
        code = error.sqlite_errorcode & 0xFF
        if code == sqlite3.SQLITE_ERROR:  # nothing that time would mend
            return StoreError(f"the store {path} refused a statement: {error}")
        if code == sqlite3.SQLITE_BUSY:
            return StoreBusyError(
                f"the store {path} is busy, a transaction of others, or of the caller, holds its lock: {error}"
            )
        return StoreAwayError(f"the store {path} cannot be used for now: {error}")
    if isinstance(error, sqlite3.ProgrammingError):
        return StoreError(f"the store {path} was closed: {error}")
    if any(words in str(error) for words in _BROKEN):
        return StoreRefusedError(f"the store {path} is no SQLite file, or a broken one: {error}")
    return StoreError(f"the store {path} refused a statement: {error}")


@contextmanager
def plain_cursor(connection: sqlite3.Connection) -> Iterator[sqlite3.Cursor]:
    """A cursor on somebody else's connection that gives rows as tuples and text as str, whatever he prefers."""
    text_factory, connection.text_factory = connection.text_factory, str
    try:
        cursor = connection.cursor()
        cursor.row_factory = None
        yield cursor
    finally:
        connection.text_factory = text_factory


@contextmanager
def guest_cursor(
    connection: Any, file: StoreFile, *, needs_transaction: bool = False
) -> Iterator[sqlite3.Cursor]:
    """A cursor in the caller's own transaction, where what was done is undone if the block raises.

    BadInputError for a connection that leads elsewhere, or is in no transaction if it needs one.
    """
    bare = unwrapped(connection, sqlite3.Connection)
    if bare is None:
        raise BadInputError("connection", f"must be a sqlite3.Connection for this store, got {connection!r}")
    file.look()
    with MappedErrors(file.path), plain_cursor(bare) as cursor:
        check_own(cursor, file.path)
        if begins_by_itself(bare):
            cursor.execute("BEGIN IMMEDIATE")
        elif needs_transaction and not bare.in_transaction:
            raise no_transaction()
        cursor.execute("SAVEPOINT jobpipe")
        try:
            yield cursor
        except BaseException:
            cursor.execute("ROLLBACK TO jobpipe")
            raise
        finally:
            cursor.execute("RELEASE jobpipe")


def _holds_lock(connection: Any) -> bool:
    """Is it within a transaction, for whose end every other write would wait? May be asked in any thread."""
    bare = unwrapped(connection, sqlite3.Connection)
    try:
        return bare is not None and bare.in_transaction
    except sqlite3.ProgrammingError:  # it was closed
        return False


def begins_by_itself(connection: sqlite3.Connection) -> bool:
    """Would Python begin a transaction here before a write? Since 3.12 a connection may say so itself."""
    is_automatic = getattr(connection, "autocommit", None) is True
    return not (is_automatic or connection.in_transaction or connection.isolation_level is None)


def check_own(cursor: sqlite3.Cursor, path: Path) -> None:
    """BadInputError for a connection to another file than the store's."""
    files = [row[2] for row in cursor.execute("PRAGMA database_list") if row[1] == "main"]
    if not files or not files[0] or not Path(files[0]).samefile(path):
        raise BadInputError("connection", f"must be one to the store's own file {path}, got one to {files}")
