"""The test kit as a user writes it: typed by the handlers, with a coroutine and a blocking method of each call."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import assert_type

from jobpipe import Job, Jobpipe
from jobpipe.testing import JobpipeTesting, JobTester

pipe = Jobpipe("memory://")


@pipe.job
async def resize(path: str, width: int = 640) -> bytes:
    return b""


@pipe.job
def count(words: list[str]) -> int:
    return len(words)


async def in_a_loop() -> None:
    async with pipe.testing() as jobs:
        assert_type(jobs, JobTester)
        assert_type(await jobs.drain(), list[Job])
        assert_type(await jobs.advance("1 hour"), None)
        assert_type(await jobs.run(resize, "a.png", width=200), bytes)
        assert_type(await jobs.run(count, ["a"]), int)
        await jobs.run(resize, 5)  # type: ignore[call-overload]
        await jobs.crash_everywhere(count, ["a"], check=lambda: None, setup=in_a_loop)


def blocking(jobpipe_testing: JobpipeTesting) -> None:
    with pipe.testing(start=datetime.now(), workers=2) as jobs:
        assert_type(jobs.drain_sync(), list[Job])
        assert_type(jobs.advance_sync(timedelta(hours=1)), None)
        assert_type(jobs.run_sync(resize, "a.png"), bytes)
        assert_type(jobs.run_sync(count, ["a"]), int)
        assert_type(jobs.assert_enqueued(count, payload=["a"], delay=5, tags=["x"]), Job)
        assert_type(jobs.assert_not_enqueued("resize", queue="media"), None)
        assert_type(jobs.all, list[Job])
        assert_type(jobs.of("resize"), list[Job])
        assert_type(jobs.now, datetime)
        jobs.assert_enqueued("resize", dalay=5)  # type: ignore[call-arg]
    assert_type(jobpipe_testing(pipe), JobTester)
