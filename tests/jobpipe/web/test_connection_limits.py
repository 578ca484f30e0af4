"""Connections that are held on to: who is slow, silent or one too many is cut off, and nobody else."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging

import pytest

from jobpipe.web.server.limits import Limits
from jobpipe.web.tally import Tally

from ...support.waiting import until
from .connections import CHUNKED, HEALTH, KIB, LIMITS, Run, World


def test_the_cap_follows_from_the_files_that_the_process_may_open() -> None:
    import resource

    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert 16 <= Limits().most_connections < files
    assert Limits(connections=7).most_connections == 7


@pytest.mark.parametrize(
    ("begin", "piece", "status"),
    [
        (b"", b"", b""),
        (b"", b"\r\n", b""),
        (b"GET /he", b"", b"408"),
        (b"GET /health HTTP/1.1\r\n", b"A: b\r\n", b"408"),
        (b"POST /echo HTTP/1.1\r\nContent-Length: 9999\r\n\r\n", b"x", b"408"),
        (CHUNKED, b"1\r\nx\r\n", b"408"),
        (HEALTH, b"\r\n", b"200"),
        (HEALTH + b"GET /he", b"a", b"200"),
        (b"POST /refuse HTTP/1.1\r\nContent-Length: 9999\r\n\r\n", b"x", b"413"),
    ],
)
def test_who_does_not_come_to_an_end_is_cut_off(run: Run, begin: bytes, piece: bytes, status: bytes) -> None:
    """Fault 38: whatever it sends meanwhile, but a whole request."""

    async def scenario(world: World) -> None:
        client = await world.connect()
        await client.send(begin)
        await until(lambda: world.server.connections == 1)

        async def trickle() -> None:
            with contextlib.suppress(ConnectionError):
                while piece:
                    await client.send(piece)
                    await asyncio.sleep(LIMITS.sweep)

        trickling = asyncio.create_task(trickle())
        rest = asyncio.create_task(client.rest())
        assert await world.pass_by(lambda: world.server.connections == 0) <= 75
        assert (await rest)[9:12] in (status, b"")
        trickling.cancel()

    run(scenario)


def test_who_asks_again_and_again_stays(run: Run) -> None:
    """Far longer than any of the limits: each whole request sets the timers back."""

    async def scenario(world: World) -> None:
        client, idle = await world.connect(), await world.connect()
        for _ in range(20):
            assert (await client.ask(HEALTH))[0] == 200
            world.time += 25
            await asyncio.sleep(2 * LIMITS.sweep)
        await idle.rest()  # so that it is known that the timers were looked at
        assert world.server.connections == 1

    run(scenario)


def test_streams_and_waits_stay(run: Run) -> None:
    async def scenario(world: World) -> None:
        for path in (b"/events", b"/wait"):
            await (await world.connect()).send(b"GET " + path + b" HTTP/1.1\r\n\r\n")
        await until(lambda: world.app.open == 2)
        for _ in range(3):
            silent = await world.connect()
            world.time += 300
            await silent.rest()  # so that it is known that the timers were looked at
        assert world.app.open == 2

    run(scenario)


def test_who_reads_no_answers_is_cut_off_and_a_slow_reader_is_not(run: Run) -> None:
    """Fault 38."""

    async def scenario(world: World) -> None:
        mute, slow = await world.connect(4 * KIB), await world.connect(4 * KIB)
        count = 100
        for client in (mute, slow):
            client.writer.write(b"GET /large HTTP/1.1\r\n\r\n" * count)
        mute.writer.transport.pause_reading()  # type: ignore[attr-defined]
        received = 0
        while data := await slow.reader.read(100 * KIB):
            received += len(data)
            if received > count * 100 * KIB:
                break
            if world.server.connections == 2:
                await asyncio.sleep(1.5 * LIMITS.sweep)
                world.time += 1
                assert world.time <= 90
        assert received > count * 100 * KIB
        await until(lambda: world.server.connections == 1)

    run(scenario)


def test_who_asks_behind_a_stream_and_vanishes_leaves_nothing_behind(run: Run) -> None:
    """Fault 39: with a little, and with more than is read ahead."""

    async def scenario(world: World) -> None:
        for number in range(60):
            client = await world.connect()
            first = b"GET /events HTTP/1.1\r\n\r\n" if number % 2 else b"GET /wait HTTP/1.1\r\n\r\n"
            behind = HEALTH * 10_000 if number < 4 else HEALTH
            client.writer.write(first + behind)
            await until(lambda: world.app.open > 0)
            client.writer.transport.abort()
            if number < 4:  # it is not read from, so that it is not known that the client has left
                assert await world.pass_by(lambda: world.app.open == 0) <= 15
            await until(lambda: world.app.open == 0)
        await until(lambda: world.server.connections == 0)
        assert not world.server._tasks
        assert len(world.app.scopes) == 60  # nobody would have read the other answers

    run(scenario)


def test_the_oldest_idle_connections_make_room_for_new_ones(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    """Fault 38: not those that are being served; and there is one log line."""

    async def scenario(world: World) -> None:
        stream = await world.connect()
        await stream.send(b"GET /events HTTP/1.1\r\n\r\n")
        await until(lambda: world.app.open == 1)
        begun = [b"", b"\r\n", b"GET /he", b"POST /echo HTTP/1.1\r\nContent-Length: 9\r\n\r\nx", HEALTH]
        idle = []
        for number in range(50):
            world.time += 0.1
            idle.append(await world.connect())
            await idle[-1].send(begun[number % len(begun)])
            assert await world.is_well()
        assert world.server.connections <= 10
        for client in idle[:40]:
            assert (await client.rest())[9:12] in (b"", b"200")
        assert world.app.open == 1

    run(scenario, Limits(connections=10))
    first, last = [record.getMessage() for record in caplog.records]
    assert first.startswith("more than 10 connections")
    assert "times more" in last  # at the stop


def test_where_nobody_can_make_room_a_new_connection_is_told(run: Run) -> None:
    async def scenario(world: World) -> None:
        for _ in range(3):
            await (await world.connect()).send(b"GET /wait HTTP/1.1\r\n\r\n")
        await until(lambda: world.app.open == 3)
        client = await world.connect()
        status, headers, body = await client.answer()
        assert status == json.loads(body)["status"] == 503
        assert headers["retry-after"]

    run(scenario, Limits(connections=3))


def test_a_flood_of_broken_connections_is_summed_up_in_the_log(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    """Fault 45."""
    tally = Tally()

    async def scenario(world: World) -> None:
        for _ in range(100):
            client = await world.connect()
            assert (await client.ask(b"nonsense\r\n\r\n"))[0] == 400
            client.writer.transport.abort()
        assert len(caplog.records) == 1
        await world.server.close()

    run(scenario, tally=tally)
    first, last = [record.getMessage() for record in caplog.records]
    assert first == "closed a connection, 400: what was sent is not HTTP/1.1 (from 127.0.0.1)"
    assert "99 times more" in last


def test_the_log_is_summed_up_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        tally = Tally(every=0.05)
        for _ in range(10):
            tally.note("it broke", "here")
        await until(lambda: len(caplog.records) == 2)
        tally.note("it broke", "there")
        await until(lambda: len(caplog.records) == 3)
        await until(lambda: not tally._kinds)
        tally.note("it broke")
        tally.close()

    caplog.set_level(logging.INFO)
    asyncio.run(main())
    assert [record.getMessage() for record in caplog.records] == [
        "it broke (here)",
        "it broke: 9 times more within 0.05 s, the last here",
        "it broke: 1 times more within 0.05 s, the last there",
        "it broke",
    ]
