"""Request: what has come in of one request: its head, and as much of its body as the application has not taken yet."""

from __future__ import annotations

import asyncio
from dataclasses import KW_ONLY, dataclass, field

Header = tuple[bytes, bytes]


@dataclass(slots=True, eq=False, repr=False)
class Request:
    """Filled by the parser, read by the exchange."""

    method: str
    target: bytes
    version: str
    headers: list[Header]
    _: KW_ONLY
    is_last: bool
    """Does the client want no other on this connection?"""
    expects_continue: bool
    is_whole: bool = False
    """Has all of the body come?"""
    is_broken: bool = False
    """Can the rest never come, as it is not HTTP?"""
    is_discarding: bool = False
    buffered: int = 0
    discarded: int = 0
    _parts: list[bytes] = field(default_factory=list)
    _bell: asyncio.Event | None = None

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
