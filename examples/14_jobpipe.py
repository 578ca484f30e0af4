"""The job service inside a program: define types, enqueue jobs, run them here, and wait for their results."""

import asyncio
import logging
from dataclasses import dataclass

from jobpipe import Cancel, Jobpipe, current_job

pipe = Jobpipe("memory://")


@dataclass
class Mail:
    to: str
    subject: str = "hello"


@pipe.job("email", max_retries=2, base=0.05)
async def send_email(mail: Mail) -> str:
    job = current_job()
    if job.attempts == 1:
        raise ConnectionError("the mail server is away")
    return f"{mail.subject!r} to {mail.to}, at attempt {job.attempts}"


@pipe.job
def resize(photo: str) -> str:
    """A plain function runs in a thread; it may report progress."""
    job = current_job()
    for step in range(4):
        job.progress((step + 1) / 4, f"step {step + 1}")
        if job.context.wait(0.01):
            raise Cancel("told to end")
    return f"{photo} is smaller"


async def main() -> None:
    logging.getLogger("jobpipe").addHandler(logging.NullHandler())  # it logs failed attempts as well
    async with pipe, pipe.running(workers=2):
        await send_email.enqueue(Mail(to="ada@example.org"), id="order-17")
        again = await send_email.enqueue(Mail(to="ada@example.org"), id="order-17")
        print(f"order-17 once more: a new job? {again.is_new}")

        receipts = await resize.enqueue_many(["cat.jpg", "dog.jpg"])
        for receipt in receipts:
            job = await pipe.wait(receipt.id)
            print(f"{job.type}: {job.result}, {job.progress.value if job.progress else 0:.0%}")

        job = await pipe.wait("order-17")
        print(f"{job.type}: {job.result}")
        print(f"its first run: {job.history[0].error.message if job.history[0].error else 'fine'}")

        await pipe.enqueue("echo", "later", id="tomorrow", delay=86_400)
        print(f"tomorrow: {(await pipe.explain('tomorrow')).reason}")
        print(f"tomorrow: {(await pipe.cancel('tomorrow')).status}")
        stats = await pipe.stats()
        print(f"done: {stats.done}, cancelled: {stats.cancelled}")


if __name__ == "__main__":
    asyncio.run(main())
