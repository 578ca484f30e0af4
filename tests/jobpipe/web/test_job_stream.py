"""`GET /jobs/{id}/events`, the stream of one job; and progress in `GET /events`."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import httpx
import pytest

from jobpipe import Jobpipe, current_job
from jobpipe.model.job import Move
from jobpipe.stores.base import LogChunk, Outcome, Settlement
from jobpipe.testing.logs import chunk
from jobpipe.testing.tools import BOOM
from jobpipe.web.sse import job_stream

from ...support.gates import AsyncGate
from ...support.waiting import LIMIT, until
from .conftest import Caller, serving

log = logging.getLogger("tests.app")


@pytest.fixture
def pipe(tmp_path: Any) -> Jobpipe:
    return Jobpipe(f"sqlite:///{tmp_path}/jobs.db", queue_size=0)


async def events(stream: httpx.Response) -> AsyncGenerator[tuple[str, dict[str, Any]]]:
    """Name and data of each event; comments are none."""
    name = ""
    async for line in stream.aiter_lines():
        field, _, value = line.partition(": ")
        if field == "event":
            name = value
        elif field == "data":
            yield name, json.loads(value)


def test_stream_begins_with_the_state_and_ends_with_the_last_one(pipe: Jobpipe) -> None:
    async def scenario() -> None:
        gate = AsyncGate()

        @pipe.job
        async def work() -> None:
            log.warning("begin")
            current_job().progress(0.5, "half")
            await gate.pass_through()
            log.warning("end")

        async with (
            asyncio.timeout(LIMIT),
            serving(pipe) as server,
            httpx.AsyncClient(verify=False, base_url=server.url) as client,
        ):
            await pipe.enqueue("work", id="x", delay=0.01)
            async with client.stream("GET", "/jobs/x/events", timeout=LIMIT) as stream:
                assert stream.headers["content-type"].startswith("text/event-stream")
                told = []
                async with aclosing(events(stream)) as found:
                    async for event in found:
                        told.append(event)
                        if {"log", "progress"} <= {name for name, _ in told}:
                            gate.go.set()
            names = [name for name, _ in told]
            assert names[0] == names[-1] == "job"
            statuses = [data["status"] for name, data in told if name == "job"]
            assert statuses[-2:] == ["running", "done"]
            last = told[-1][1]
            assert last == {"id": "x", "type": "work", "queue": "default", "status": "done", "attempts": 1}
            lines = [data for name, data in told if name == "log"]
            assert [(line["attempt"], line["level"], line["message"]) for line in lines] == [
                (1, "WARNING", "begin"),
                (1, "WARNING", "end"),
            ]
            assert ("progress", {"id": "x", "value": 0.5, "note": "half"}) in told
            # Of a finished job there is its state, what it logged, and the end.
            again = await client.get("/jobs/x/events", timeout=LIMIT)
            assert again.text.count("event: job") == 1
            assert again.text.count("event: log") == 2
            assert again.text.startswith(": connected\n\nevent: job\n")

    asyncio.run(scenario())


def test_stream_tells_each_line_once_where_lines_between_are_cut(pipe: Jobpipe) -> None:
    async def scenario() -> None:
        def settle(move: Move, *chunks: LogChunk) -> None:
            outcome = Outcome(move=move, error=BOOM if move is Move.RETRY else None)
            assert pipe.store.settle([Settlement(claim.lease, outcome, 0.0, chunks)]) == [True]

        first = [f"first {number}" for number in range(10)]
        async with (
            asyncio.timeout(LIMIT),
            serving(pipe) as server,
            httpx.AsyncClient(verify=False, base_url=server.url) as client,
        ):
            await pipe.enqueue("elsewhere", id="x")
            (claim,) = pipe.store.claim("w", ["elsewhere"], 1, LIMIT).claims
            settle(Move.RETRY, chunk(*first))
            (claim,) = pipe.store.claim("w", ["elsewhere"], 1, LIMIT).claims
            told: list[str] = []
            async with (
                client.stream("GET", "/jobs/x/events", timeout=LIMIT) as stream,
                aclosing(events(stream)) as found,
            ):
                async for name, data in found:
                    if name != "log":
                        continue
                    told.append(data["message"])
                    if told == first:
                        pipe.store.write_logs([(claim.lease, chunk("6", "7", start=5, cut=5))])
                    elif told[-1] == "7":
                        settle(Move.SUCCEED, chunk("8", start=7))
            assert told == [*first, "6", "7", "8"]

    asyncio.run(scenario())


def test_stream_of_a_cancelled_job_ends_at_once(on_memory: Any) -> None:
    async def scenario(call: Caller) -> None:
        await call("POST", "/enqueue", json={"id": "x", "delay": 3600})
        await call("POST", "/jobs/x/cancel")
        assert "cancelled" in (await call("GET", "/jobs/x/events")).text

    on_memory(scenario)


def test_wrong_streams_are_refused(on_memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_stream, "MOST_STREAMS", 0)

    async def scenario(call: Caller) -> None:
        await call.refused(404, "GET", "/jobs/%00/events")
        await call.refused(422, "GET", "/jobs/x/events?pulse=true")
        await call("POST", "/enqueue", json={"id": "x"})
        await call.refused(503, "GET", "/jobs/x/events")
        monkeypatch.undo()
        await call.refused(404, "GET", "/jobs/nope/events")

    on_memory(scenario)


def test_stream_ends_with_the_service(pipe: Jobpipe) -> None:
    async def scenario() -> None:
        async with (
            asyncio.timeout(LIMIT),
            serving(pipe) as server,
            httpx.AsyncClient(verify=False, base_url=server.url) as client,
        ):
            await pipe.enqueue("echo", id="x", delay=3600)
            async with client.stream("GET", "/jobs/x/events", timeout=LIMIT) as stream:
                lines = stream.aiter_lines()
                assert await anext(lines) == ": connected"
                server.stop.set()
                assert "scheduled" in "".join([line async for line in lines])

    asyncio.run(scenario())


def test_events_carry_progress_without_a_number(pipe: Jobpipe) -> None:
    async def scenario() -> None:
        steps = [asyncio.Event() for _ in range(2)]

        @pipe.job
        async def work() -> None:
            current_job().progress(0.1)
            await steps[0].wait()
            current_job().progress(0.2, "two")
            await steps[1].wait()

        async with (
            asyncio.timeout(LIMIT),
            serving(pipe) as server,
            httpx.AsyncClient(verify=False, base_url=server.url) as client,
        ):
            await pipe.enqueue("work", id="x")
            async with client.stream("GET", "/events", timeout=LIMIT) as stream:
                lines = stream.aiter_lines()
                assert await anext(lines) == ": connected"
                steps[0].set()
                block: list[str] = []
                async for line in lines:
                    block = [*block, line] if line else []
                    if block and block[-1].startswith("data") and "0.2" in block[-1]:
                        break
                assert block[0] == "event: progress"
                assert json.loads(block[1].removeprefix("data: ")) == {"id": "x", "value": 0.2, "note": "two"}
            steps[1].set()
            await until(lambda: pipe.get_sync("x").is_finished)

    asyncio.run(scenario())
