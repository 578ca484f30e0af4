"""StoreFile: the file under a store. It is made for its owner alone, and looked at with every call, as SQLite does not.

A file that was deleted, moved or replaced is still there for the processes that have it open: SQLite goes on writing, and what
was acknowledged is lost with the last of them. So what the path leads to is compared with what was opened.
"""

from __future__ import annotations

import ctypes
import os
import sqlite3
import struct
import sys
import threading
from contextlib import closing
from pathlib import Path
from typing import TypeAlias

from ...errors import StoreAwayError

PATIENCE = 30.0
"""Seconds to wait for a lock that another process has."""
_OWNER_ONLY = 0o600

Identity: TypeAlias = tuple[int, int, int]
"""Inode, and the device in two parts."""

_HERE = -100
"""Paths are relative to the working folder."""
_INODE_AND_SIZE = 0x300
_Buffer = ctypes.c_char * 256
_read = struct.Struct("=32xQQ88xII").unpack_from
"""Inode, size and device, from what statx writes."""
_statx = getattr(ctypes.CDLL(None), "statx", None) if sys.platform == "linux" else None
if _statx is not None:
    # Why told: ctypes would look at each value, which takes longer than the call.
    _statx.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint, ctypes.c_void_p)


class StoreFile:
    """What this handle knows of its file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._name = os.fsencode(path)
        self._wal_name = self._name
        """Where the write-ahead log is, once it is known."""
        self._id: Identity | None = None
        """That of the file when it was first looked at."""
        self._wal_id: Identity | None = None
        """Known only while the connection that writes is open: until it is closed, SQLite leaves the file where it is."""
        self._size = 0
        """The largest that was seen, since it last became smaller for a good reason."""
        self._cut_size: int | None = None
        """A size at which something is missing in it."""
        self._looking_closer = threading.Lock()

    def create(self) -> None:
        """Make an empty one if there never was one. SQLite makes those beside it with the mode of this one."""
        if self._id is not None:
            return
        try:
            # Why never one that is there: to close it again would drop the locks that this process has on it.
            path = os.path.realpath(self.path)
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, _OWNER_ONLY))
        except FileExistsError:
            pass
        except OSError as error:
            raise StoreAwayError(f"the store's file {self.path} cannot be made: {error.strerror}") from None

    def connect(self) -> sqlite3.Connection:
        """A connection to the file that is there; it makes none."""
        return sqlite3.connect(
            f"{self.path.as_uri()}?mode=rw",
            uri=True,
            timeout=PATIENCE,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
        )

    def look(self) -> None:
        """StoreAwayError unless it is still the file that was opened, as a whole."""
        id, size = self._find(self._name)
        if self._id is None:
            self._id = id
        elif self._id != id:
            raise self._away(self._name, "was replaced by another file")
        if size < self._size:
            self._look_closer()
        else:
            self._size = size
        wal_id = self._wal_id
        if wal_id is not None and wal_id != self._find(self._wal_name)[0]:
            raise self._away(self._wal_name, "was replaced by another file")

    def keep_wal(self) -> None:
        """The connection that writes is open: from now on the file beside it stays the same."""
        self._wal_name = os.path.realpath(self._name) + b"-wal"  # Why: SQLite follows links
        self._wal_id, _ = self._find(self._wal_name)

    def leave_wal(self) -> None:
        """It is closed."""
        self._wal_id = None

    def _find(self, path: bytes) -> tuple[Identity, int]:
        try:
            return identity_of(path)
        except FileNotFoundError:
            if self._id is None:
                raise StoreAwayError(f"there is no file {self.path}: `jobpipe migrate` makes one") from None
            raise self._away(path, "was deleted or moved away") from None
        except OSError as error:
            raise self._away(path, f"cannot be looked at: {error.strerror}") from None

    def _look_closer(self) -> None:
        """It has become smaller: VACUUM does that, and so does who cuts it off."""
        with self._looking_closer:
            # Why again: another thread may have seen it grow, or looked already.
            _, size = self._find(self._name)
            if size >= self._size:
                return
            if size == self._cut_size or not self._is_whole(size):
                self._cut_size = size
                raise self._away(self._name, f"was truncated to {size:,} bytes")
            self._size = size

    def _is_whole(self, size: int) -> bool:
        if not size:  # Why not asked: SQLite deletes the file beside an empty one, with all that is in it
            return False
        try:
            with closing(self.connect()) as connection:
                return bool(connection.execute("PRAGMA quick_check(1)").fetchone() == ("ok",))
        except (
            sqlite3.OperationalError
        ) as error:  # nobody knows: too many files are open, or another has the lock
            raise StoreAwayError(f"the store {self.path} cannot be used for now: {error}") from error
        except sqlite3.DatabaseError:
            return False

    def _away(self, path: bytes, what: str) -> StoreAwayError:
        return StoreAwayError(
            f"the store's file {os.fsdecode(path)} {what} while this process had it open; nothing more is accepted, and what "
            "was not acknowledged may be lost: put it back, or restart to go on with what is there then"
        )


def identity_of(path: bytes) -> tuple[Identity, int]:
    """Which file a path leads to, and its size; OSError as os.stat raises it.

    Why statx, where it is there: os.stat asks for the times, too. Linux then gives the file a new one with the next write,
    which has more to put on disk for it: asked after each commit, that takes longer than the commit's own statements.
    """
    buffer = _Buffer()
    if _statx is None or _statx(_HERE, path, 0, _INODE_AND_SIZE, buffer) != 0:
        found = os.stat(path)
        return (found.st_ino, os.major(found.st_dev), os.minor(found.st_dev)), found.st_size
    inode, size, major, minor = _read(buffer)
    return (inode, major, minor), size
