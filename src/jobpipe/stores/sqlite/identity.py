"""Identity: which file a path leads to, and its size, without its times.

Why not os.stat, where statx is there: it asks for the times, too. Linux then gives the file a new one with the next write,
which has more to put on disk for it: asked after each commit, that takes longer than the commit's own statements.
"""

from __future__ import annotations

import ctypes
import os
import struct
from typing import TypeAlias

Identity: TypeAlias = tuple[int, int, int]
"""Inode, and the device in two parts."""

_HERE = -100
"""Paths are relative to the working folder."""
_INODE_AND_SIZE = 0x300
_Buffer = ctypes.c_char * 256
_read = struct.Struct("=32xQQ88xII").unpack_from
"""Inode, size and device, from what statx writes."""
_statx = getattr(ctypes.CDLL(None), "statx", None)
if _statx is not None:
    # Why told: ctypes would look at each value, which takes longer than the call.
    _statx.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint, ctypes.c_void_p)


def identity_of(path: bytes) -> tuple[Identity, int]:
    """With the size of the file; OSError as os.stat raises it."""
    buffer = _Buffer()
    if _statx is None or _statx(_HERE, path, 0, _INODE_AND_SIZE, buffer) != 0:
        found = os.stat(path)
        return (found.st_ino, os.major(found.st_dev), os.minor(found.st_dev)), found.st_size
    inode, size, major, minor = _read(buffer)
    return (inode, major, minor), size
