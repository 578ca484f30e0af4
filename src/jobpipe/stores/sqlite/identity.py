"""Identity: which file a path leads to, and its size, without its times.

Why not os.stat, where statx is there: it asks for the times, too. Linux then gives the file a new one with the next write,
which has more to put on disk for it: asked after each commit, that takes longer than the commit's own statements.
"""

from __future__ import annotations

import ctypes
import os
import struct
from typing import NamedTuple


class Identity(NamedTuple):
    """Device and inode of a file."""

    device: int
    inode: int


_HERE = -100
"""Paths are relative to the working folder."""
_INODE_AND_SIZE = 0x300
_BYTES = 256
_FIELDS = struct.Struct("=32xQQ88xII")
"""Of what statx writes: inode, size, and the device in two parts."""
_statx = getattr(ctypes.CDLL(None), "statx", None)


def identity_of(path: str) -> tuple[Identity, int]:
    """With the size of the file; OSError as os.stat raises it."""
    buffer = ctypes.create_string_buffer(_BYTES)
    if _statx is None or _statx(_HERE, os.fsencode(path), 0, _INODE_AND_SIZE, buffer) != 0:
        found = os.stat(path)
        return Identity(found.st_dev, found.st_ino), found.st_size
    inode, size, major, minor = _FIELDS.unpack_from(buffer)
    return Identity(os.makedev(major, minor), inode), size
