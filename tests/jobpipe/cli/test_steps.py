"""`signal`, `job --steps` and `retry --from-start`: jobs that have steps, and what they wait for."""

from __future__ import annotations

import asyncio
import re

import pytest

from jobpipe import Jobpipe, JobStatus, current_job

from ...support.jobs import reached
from .conftest import call, call_json


@pytest.fixture
def waiting() -> None:
    """A job in the store of the folder: it has run two steps, and waits for a signal."""

    async def scenario() -> None:
        pipe = Jobpipe(queue_size=0)

        @pipe.job
        async def order() -> None:
            job = current_job()
            await job.step("charge", lambda: {"id": "c-1"})
            await job.step("write", lambda: "x" * 5_000)
            await job.wait_for("approved", timeout=3600)

        async with pipe, pipe.running():
            await order.enqueue(id="o")
            await reached(pipe, "o", JobStatus.WAITING)

    asyncio.run(scenario())


def test_a_signal_is_sent_once(there: list[str]) -> None:
    call("enqueue", "echo", "--id", "a", "--delay", "600", *there)
    assert call("signal", "a", "approved", '{"by": "ada"}', *there) == "a: signal 'approved' sent\n"
    again = call("signal", "a", "approved", '{"by": "ada"}', *there)
    assert again == "a: signal 'approved' sent (the same was sent before)\n"
    assert call_json("signal", "a", "go", *there) == {"id": "a", "name": "go", "is_new": True}
    refused = call("signal", "a", "go", "1", *there, code=1)
    assert refused == (
        "error: signal 'go' for job 'a' was sent before with other content: the first of a name wins\n"
    )


def test_a_wrong_signal_is_refused(there: list[str]) -> None:
    call("enqueue", "echo", "--id", "a", "--delay", "600", *there)
    for arguments, code, told in (
        (["nosuch", "go"], 1, "error: no job has the id 'nosuch'"),
        (["a", "no spaces"], 2, "error: NAME must be 1 to 200 characters"),
        (["a", "go", "{"], 2, "error: PAYLOAD "),
    ):
        assert call("signal", *arguments, *there, code=code).startswith(told)


def test_a_job_shows_its_steps_and_what_it_waits_for(waiting: None) -> None:
    shown = call("job", "o")
    assert re.search(r"^suspended +It waits for the signal 'approved', until 2", shown, re.MULTILINE)
    assert re.search(r"^until +2", shown, re.MULTILINE)
    assert "run at" not in shown
    assert re.search(r'^step +charge, 2\S+, \d\.\d{3} s: \{"id": "c-1"\}$', shown, re.MULTILINE)
    assert re.search(r'^step +write, 2\S+, \d\.\d{3} s: "x+…$', shown, re.MULTILINE)
    assert "jobpipe signal o approved" in call("job", "o", "--explain")
    assert [(step["name"], len(step["result"])) for step in call_json("job", "o", "--steps")] == [
        ("charge", 1),
        ("write", 5_000),
    ]
    told = call("job", "o", "--steps", "--explain", code=2)
    assert told == "error: --explain and --steps exclude each other\n"


def test_a_retry_keeps_the_steps_unless_it_is_from_the_start(waiting: None) -> None:
    call("cancel", "o")
    call("retry", "o")
    assert len(call_json("job", "o", "--steps")) == 2
    call("cancel", "o")
    call("retry", "o", "--from-start")
    assert call_json("job", "o", "--steps") == []
    told = call("retry", "--all", "--from-start", code=2)
    assert told == "error: --from-start can only be given for jobs by ID\n"
