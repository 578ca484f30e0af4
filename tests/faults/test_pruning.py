"""JOBPIPE_KEEP: what is finished is kept for so long, and then forgotten."""

from __future__ import annotations

import signal

from ..support.waiting import eventually
from .programs import Start


def test_finished_jobs_are_forgotten_when_their_time_is_over(start: Start) -> None:
    """By the real program, at its start and then every minute; what is not finished stays."""
    first = start.serve()
    first.all_done([first.enqueue("mark", id=f"done-{n}") for n in range(3)])
    first.enqueue("mark", id="waiting", delay=600)
    first.signal(signal.SIGTERM)
    assert first.code() == 0

    start.env = {"JOBPIPE_KEEP": "3600"}
    second = start.serve()
    second.all_done([second.enqueue("mark", id="another")])
    assert second.job("done-0")["status"] == "done"
    second.signal(signal.SIGTERM)
    assert second.code() == 0

    start.env = {"JOBPIPE_KEEP": "0"}
    third = start.serve()
    eventually(lambda: len(third.get("/jobs")["jobs"]) == 1, third.output)
    assert third.job("waiting")["status"] == "scheduled"
    assert third.call("GET", "/jobs/done-0").status_code == 404
    assert start.sql("SELECT count(*) FROM jobs") == [(1,)]
