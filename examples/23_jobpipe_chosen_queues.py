"""Workers for chosen queues: each queue has slots of its own, and a job that nobody would run says why it waits."""

import asyncio
from collections import Counter

from jobpipe import Jobpipe, JobRequest, current_job

pipe = Jobpipe("memory://")
running: Counter[str] = Counter()
most: Counter[str] = Counter()


@pipe.job("work")
async def work() -> None:
    queue = current_job().queue
    running[queue] += 1
    most[queue] = max(most[queue], running[queue])
    await asyncio.sleep(0.01)
    running[queue] -= 1


async def main() -> None:
    queues = ("mail", "media")
    # As `jobpipe worker app:pipe --queues mail=3,media=1` does.
    async with pipe, pipe.running(queues={"mail": 3, "media": 1}):
        requests = [JobRequest(type="work", queue=queue) for queue in queues for _ in range(8)]
        for receipt in await pipe.enqueue_many(requests):
            await pipe.wait(receipt.id)
        print(", ".join(f"{queue}: {most[queue]} at once" for queue in queues))

        await pipe.enqueue("work", id="report", queue="reports")
        explanation = await pipe.explain("report")
        print(f"{explanation.reason}: {explanation.text}")


if __name__ == "__main__":
    asyncio.run(main())
