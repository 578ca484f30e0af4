"""A client gets all that is new once and in order: at once where that is possible, from its backlog otherwise."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from jobpipe.web.sse import client as reader_module
from jobpipe.web.sse.client import StreamClient
from jobpipe.web.sse.piece import EventsPiece, Piece

PULSE, BEAT = Piece(b"pulse;"), Piece(b"beat;")


def piece(first: int, number: int = 1) -> EventsPiece:
    return EventsPiece([(each, b"%d;" % each) for each in range(first, first + number)])


class Line:
    """A connection: what it was given, by which way; it may be full."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.chunks: list[bytes] = []
        self.is_full = False
        self.has_room = asyncio.Event()

    def write_at_once(self, chunk: bytes) -> bool:
        if self.is_full:
            return False
        self.chunks.append(chunk)
        self.sent.append(chunk.split(b"\r\n")[1])
        return True

    async def write(self, body: bytes) -> None:
        if self.is_full:
            await self.has_room.wait()
        self.sent.append(body)

    @property
    def text(self) -> bytes:
        return b"".join(self.sent)


async def turns() -> None:
    for _ in range(50):
        await asyncio.sleep(0)


def run(scenario: Callable[[StreamClient, Line], Awaitable[None]], *, at_once: bool = True) -> None:
    """With a reader that is live, and its writer waiting for something to write."""

    async def main() -> None:
        line = Line()
        reader = StreamClient(line.write_at_once if at_once else None)
        reader.is_live = True
        reader.writer = asyncio.create_task(reader.write(line.write))
        await turns()
        await scenario(reader, line)
        reader.writer.cancel()
        await asyncio.wait([reader.writer])

    asyncio.run(main())


def test_it_is_written_at_once_as_it_is() -> None:
    async def scenario(reader: StreamClient, line: Line) -> None:
        some, more = piece(1), piece(2, 3)
        for each in (some, more):
            reader.take(each)
        reader.on_pulse(PULSE)
        reader.beat(BEAT)
        assert line.text == b"1;2;3;4;pulse;beat;"
        assert all(
            ours is theirs.chunk for ours, theirs in zip(line.chunks, (some, more, PULSE, BEAT), strict=True)
        )
        assert reader.after == 4

    run(scenario)


def test_a_server_that_cannot_write_at_once_writes_all_the_same() -> None:
    async def scenario(reader: StreamClient, line: Line) -> None:
        reader.take(piece(1))
        reader.take(piece(2))
        reader.on_pulse(PULSE)
        assert not line.sent
        await turns()
        assert line.text == b"1;2;pulse;"
        reader.beat(BEAT)
        await turns()
        assert line.text == b"1;2;pulse;beat;"

    run(scenario, at_once=False)


def test_nothing_overtakes_what_waits() -> None:
    async def scenario(reader: StreamClient, line: Line) -> None:
        reader.take(piece(1))
        line.is_full = True
        reader.take(piece(2))
        await turns()
        line.is_full = False
        reader.take(piece(3))
        assert line.text == b"1;"
        line.has_room.set()
        await turns()
        assert line.text == b"1;2;3;"
        reader.take(piece(4))
        assert line.text == b"1;2;3;4;"

    run(scenario)


def test_of_pulses_that_wait_the_last_is_sent_and_no_heartbeat_replaces_it() -> None:
    async def scenario(reader: StreamClient, line: Line) -> None:
        line.is_full = True
        reader.on_pulse(Piece(b"old;"))
        reader.on_pulse(PULSE)
        reader.beat(BEAT)
        line.is_full = False
        await turns()
        assert line.text == b"pulse;"

    run(scenario)


def test_what_it_has_seen_is_not_sent_again() -> None:
    async def scenario(reader: StreamClient, line: Line) -> None:
        reader.after = 2
        reader.take(piece(1, 2))
        reader.take(piece(2, 3))
        reader.take(piece(5))
        await turns()
        assert line.text == b"3;4;5;"

    run(scenario)


def test_what_is_new_waits_until_all_from_the_store_is_sent() -> None:
    async def main() -> None:
        line = Line()
        reader = StreamClient(line.write_at_once)
        reader.take(piece(1))
        reader.is_live = True
        for each in (piece(2), piece(3)):
            reader.take(each)
        reader.beat(BEAT)
        assert not line.sent
        reader.after = 2  # the store had it
        reader.finish()
        await reader.write(line.write)
        assert line.text == b"3;"

    asyncio.run(main())


def test_it_ends_when_all_is_written() -> None:
    async def scenario(reader: StreamClient, line: Line) -> None:
        line.is_full = True
        reader.take(piece(1))
        reader.finish()
        await turns()
        assert reader.writer is not None
        assert not reader.writer.done()
        line.has_room.set()
        await asyncio.wait([reader.writer], timeout=10)
        assert line.text == b"1;"

    run(scenario)


def test_one_that_reads_too_slowly_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader_module, "LONGEST_BACKLOG", 10)

    async def scenario(reader: StreamClient, line: Line) -> None:
        assert reader.writer is not None
        line.is_full = True
        reader.take(piece(1))
        await turns()  # it is on its way, and does not count
        reader.take(piece(2, 10))
        await turns()
        assert not reader.writer.done()
        reader.take(piece(12))
        await asyncio.wait([reader.writer], timeout=10)
        assert reader.writer.cancelled()

    run(scenario)


def test_one_that_has_left_in_the_middle_of_a_round_gets_nothing_more() -> None:
    """Its connection may have another request already."""

    async def scenario(reader: StreamClient, line: Line) -> None:
        reader.take(piece(1))
        reader.is_live = False
        reader.take(piece(2))
        await turns()
        assert line.text == b"1;"

    run(scenario)
