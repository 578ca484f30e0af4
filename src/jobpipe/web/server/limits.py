"""Limits: how long a client may take, and how much it may send, before its connection ends."""

from __future__ import annotations

import resource
from dataclasses import dataclass

_RESERVED_FILES = 128
"""Files that are not connections: those of the store, of logs, and of what handlers open."""
_FEWEST_CONNECTIONS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Seconds and bytes."""

    head: float = 60.0
    """From the connection, or from the last answer, to a whole request head."""
    idle: float = 30.0
    """From the last answer to the first byte of the next request."""
    body: float = 60.0
    """From the head of a request to the end of its body."""
    unread: float = 75.0
    """Without progress, while there is something to read for the client."""
    ahead: float = 10.0
    """For a call, where so much has come behind it that nothing more is read, not even that the client has left."""
    linger: float = 1.0
    """For the client to read why it is refused, before the connection is cut."""
    closing: float = 1.0
    """For connections to end, at the stop, since the last one that did."""
    closing_at_most: float = 10.0
    """For all of them."""
    sweep: float = 1.0
    """Between two looks at all of these."""
    head_bytes: int = 65_536
    """Request line, headers and trailers, and 32 bytes more for each of those."""
    linger_bytes: int = 1_048_576
    discarded_bytes: int = 128 * 1024 * 1024
    """Of a body that was refused already; it is read so that the client comes to read the answer."""
    connections: int | None = None
    """At once; None: as many as the system lets this process open, but for some files."""

    @property
    def most_connections(self) -> int:
        if self.connections is not None:
            return self.connections
        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if files == resource.RLIM_INFINITY:
            files = 1_000_000
        return max(files - _RESERVED_FILES, files // 2, _FEWEST_CONNECTIONS)
