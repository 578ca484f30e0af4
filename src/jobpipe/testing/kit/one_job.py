"""One job that a test runs by itself: through its sleeps and timeouts, with no trace of it afterwards."""

from __future__ import annotations

from copy import copy
from inspect import isawaitable
from typing import TYPE_CHECKING, Any

from ...errors import BadInputError
from ...jobtypes.jobtype import JobType
from ...model.durable import timeout_at
from ...model.outcome import Suspension, cause_of

if TYPE_CHECKING:
    from ...model.newjob import NewJob
    from .block import Block
    from .inline import Inline


async def run_job(block: Block, job_type: JobType[..., Any], job: NewJob, inline: Inline | None) -> Any:
    """The result of its handler; what that raises is raised."""
    returned: list[Any] = []
    raised: list[BaseException] = []
    async with block.alone():
        session = block.session(types={job_type.name: _noting(job_type, returned)}, inline=inline)
        session.runner.executor.on_error = lambda error: raised.append(cause_of(error))
        await session.start()
        try:
            block.insert(job)
            await session.run_one(job.id)
            while raised and isinstance(raised[0], Suspension):
                raised.clear()
                _go_on(block, job.id)
                await session.run_one(job.id)
        finally:
            await session.end()
            block.store.forget(job.id)
    if raised:
        raise raised[0]
    return returned[0]


def _go_on(block: Block, id: str) -> None:
    """Let the sleep, or the wait, be over."""
    wait = block.store.pending_wait(id)
    if wait is not None and timeout_at(wait.until) is None:
        raise RuntimeError(
            f"the handler waits for the signal {wait.name!r}, and nobody can send it meanwhile: enqueue the job, "
            "drain, and send it with `jobs.signal(…)`"
        )
    block.clock.move_to(block.store.goes_on_at(id))


def check_type(job_type: object) -> None:
    """BadInputError unless it is a job type."""
    if not isinstance(job_type, JobType):
        raise BadInputError("job_type", f"must be a job type, got {job_type!r}")


def _noting(job_type: JobType[..., Any], returned: list[Any]) -> JobType[..., Any]:
    """The same type, which notes what its handler returns."""
    noting, run = copy(job_type), job_type.run

    def call(argument: Any) -> Any:
        result = run(argument)
        if isawaitable(result):
            return wait(result)
        returned.append(result)
        return result

    async def wait(result: Any) -> Any:
        returned.append(await result)
        return returned[0]

    noting.run = call
    return noting
