"""Piece: bytes of an event stream that go to many clients, and are framed once for all of them."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from ..operation import encode

LARGEST_PIECE = 65_536
"""Bytes, unless one event has more: a client that stops reading is found out after so many."""

Frame = tuple[int, bytes]
"""The number of an event, and how it goes over the wire."""


def frame(event: bytes, data: Any) -> bytes:
    """An event without a number, as it goes over the wire."""
    return b"event: %b\ndata: %b\n\n" % (event, encode(data))


class Piece:
    """Bytes that go to many clients."""

    def __init__(self, body: bytes) -> None:
        self.body = body

    @cached_property
    def chunk(self) -> bytes:
        """The body as HTTP/1.1 frames it, made once for all."""
        return b"%x\r\n%b\r\n" % (len(self.body), self.body)


SIGN_OF_LIFE = Piece(b": heartbeat\n\n")


class EventsPiece(Piece):
    """Events, in order."""

    def __init__(self, frames: list[Frame]) -> None:
        super().__init__(b"".join(frame for _, frame in frames))
        self._frames = frames
        self.first = frames[0][0]
        self.last = frames[-1][0]

    def __len__(self) -> int:
        return len(self._frames)

    def since(self, after: int) -> bytes:
        """What is new to who has seen all up to `after`."""
        if after < self.first:
            return self.body
        return b"".join(frame for number, frame in self._frames if number > after)


def pieces_of(frames: list[Frame]) -> list[EventsPiece]:
    """The events in as few pieces as may be."""
    pieces: list[EventsPiece] = []
    first = size = 0
    for at, (_, frame) in enumerate(frames):
        if size and size + len(frame) > LARGEST_PIECE:
            pieces.append(EventsPiece(frames[first:at]))
            first, size = at, 0
        size += len(frame)
    return [*pieces, EventsPiece(frames[first:])]
