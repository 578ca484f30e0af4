"""Durable sleeps: a job that sleeps holds no slot and uses no attempt, and a test of two weeks takes milliseconds."""

import asyncio
from datetime import timedelta

from jobpipe import Jobpipe, current_job

pipe = Jobpipe("memory://")


def send(what: str, to: str) -> str:
    print(f"  {what} is sent to {to}")
    return what


@pipe.job
async def trial(customer: str, days: float = 14) -> list[str]:
    """Welcome, a reminder after half of the trial, and the end of it."""
    job, half = current_job(), timedelta(days=days / 2)
    mails = [await job.step("welcome", send, "the welcome", customer)]
    await job.sleep("first-half", half)  # the run ends here; the next one passes at once
    mails.append(await job.step("remind", send, "the reminder", customer))
    await job.sleep("second-half", half)
    mails.append(await job.step("end", send, "the last mail", customer))
    return mails


async def real_time() -> None:
    """One worker: it is free while the job sleeps."""
    async with pipe, pipe.running(workers=1):
        await pipe.enqueue(trial.request("ada"), id="ada")
        await pipe.enqueue("echo", "hello", id="other")
        print(f"another job runs: {(await pipe.wait('other')).result}")
        job = await pipe.get("ada")
        print(f"the trial is {job.status}: {(await pipe.explain('ada')).reason}")
        print(f"attempts that it has used: {job.attempts}, steps: {[step.name for step in job.steps]}")


async def manual_clock() -> None:
    """In a test the clock is moved on, and nothing waits."""
    async with pipe.testing() as jobs:
        await pipe.enqueue(trial.request("bob"))
        await jobs.advance("6 days")
        print(f"after 6 days: {[job.status.value for job in jobs.all]}")
        await jobs.advance("8 days")
        print(f"after 14 days: {[job.status.value for job in jobs.all]}")


async def main() -> None:
    await real_time()
    await manual_clock()


if __name__ == "__main__":
    asyncio.run(main())
