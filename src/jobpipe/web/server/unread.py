"""Unread: how many bytes of a connection its client has not taken yet, those that the system still holds among them."""

from __future__ import annotations

import asyncio
import fcntl
import struct
import termios


def unsent(transport: asyncio.Transport) -> int:
    """Bytes in our buffer and, where that can be known, in that of the system."""
    waiting = transport.get_write_buffer_size()
    try:
        # Why: the system wakes us only when much of its buffer is free, which a slow reader takes minutes for.
        raw = fcntl.ioctl(transport.get_extra_info("socket").fileno(), termios.TIOCOUTQ, b"\0\0\0\0")
    except (OSError, ValueError, AttributeError):
        return waiting
    (held,) = struct.unpack("i", raw)
    return waiting + int(held)
