"""Request: what has come in of one request: its head, and as much of its body as the application has not taken yet."""

from __future__ import annotations

import asyncio

Header = tuple[bytes, bytes]


class Request:
    """Filled by the parser, read by the exchange."""

    __slots__ = (
        "_bell",
        "_parts",
        "buffered",
        "discarded",
        "expects_continue",
        "headers",
        "is_broken",
        "is_discarding",
        "is_last",
        "is_whole",
        "method",
        "target",
        "version",
    )

    def __init__(
        self, method: str, target: bytes, version: str, headers: list[Header], *, is_last: bool
    ) -> None:
        self.method = method
        self.target = target
        self.version = version
        self.headers = headers
        self.is_last = is_last
        """Does the client want no other on this connection?"""
        self.expects_continue = version == "1.1" and (b"expect", b"100-continue") in headers
        self.is_whole = False
        """Has all of the body come?"""
        self.is_broken = False
        """Can the rest never come, as it is not HTTP?"""
        self.is_discarding = False
        self.buffered = 0
        self.discarded = 0
        self._parts: list[bytes] = []
        self._bell: asyncio.Event | None = None

    def add(self, part: bytes) -> None:
        """A part of the body has come."""
        if self.is_discarding:
            self.discarded += len(part)
            return
        self._parts.append(part)
        self.buffered += len(part)
        self.ring()

    def end(self) -> None:
        """The body has ended."""
        self.is_whole = True
        self.ring()

    def discard(self) -> None:
        """Nobody wants the rest of the body."""
        self.is_discarding = True
        self.take()

    def take(self) -> bytes:
        """What has come of the body since the last call."""
        parts = self._parts
        if not parts:
            return b""
        body = parts[0] if len(parts) == 1 else b"".join(parts)
        parts.clear()
        self.buffered = 0
        return body

    def ring(self) -> None:
        """Wake up who waits for a change."""
        if self._bell is not None:
            self._bell.set()

    async def changed(self) -> None:
        """Wait for more of the body, its end, or the end of the exchange."""
        if self._bell is None:
            self._bell = asyncio.Event()
        self._bell.clear()
        await self._bell.wait()
