"""`GET /jobs/{id}/logs`: what the runs of a job logged."""

from __future__ import annotations

from typing import Any

from jobpipe import Jobpipe
from jobpipe.model.job import Move, instant
from jobpipe.stores.base import LogChunk, Outcome, Settlement
from jobpipe.testing.logs import AT, chunk

from .conftest import Caller


async def run_logging(pipe: Jobpipe, *chunks: LogChunk) -> None:
    """Run one queued job as a worker would that has logged this."""
    (claim,) = pipe.store.claim("w", ["echo"], 1, 30).claims
    settlement = Settlement(claim.lease, Outcome(move=Move.SUCCEED, result=b"1"), 0.0, chunks)
    assert pipe.store.settle([settlement]) == [True]


def test_lines_are_given_with_their_attempts(on_each_store: Any) -> None:
    async def scenario(call: Caller) -> None:
        await call("POST", "/enqueue", json={"id": "x"})
        assert (await call("GET", "/jobs/x/logs")).json() == {"lines": [], "cut": 0, "last": 0}
        await run_logging(call.pipe, chunk("one", "zwei ✓", start=3, cut=3))
        at = instant(AT).isoformat().replace("+00:00", "Z")
        first, second = (
            {"attempt": 1, "at": at, "level": "INFO", "logger": "app", "message": message}
            for message in ("one", "zwei ✓")
        )
        assert (await call("GET", "/jobs/x/logs")).json() == {"lines": [first, second], "cut": 3, "last": 5}
        assert (await call("GET", "/jobs/x/logs?after=4")).json() == {"lines": [second], "cut": 3, "last": 5}

    on_each_store(scenario)


def test_logs_of_no_job_and_wrong_numbers_are_refused(on_each_store: Any) -> None:
    async def scenario(call: Caller) -> None:
        await call.refused(404, "GET", "/jobs/nope/logs")
        await call.refused(404, "GET", "/jobs/%00/logs")
        await call("POST", "/enqueue", json={"id": "x"})
        for wrong in ("after=-1", "after=x", "after=1.5", f"after={10**13}", "before=1"):
            problem = await call.refused(422, "GET", f"/jobs/x/logs?{wrong}")
            assert wrong.partition("=")[0] in problem["detail"]

    on_each_store(scenario)
