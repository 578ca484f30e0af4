"""Signals: a job that waits for an answer from outside, with a timeout; the first answer wins, and none is lost."""

import asyncio
from datetime import timedelta
from typing import Any

from jobpipe import Jobpipe, SignalRefusedError, SignalTimeout, current_job

pipe = Jobpipe("memory://")


@pipe.job
async def refund(customer: str, amount: int, patience: float = 86_400) -> str:
    job = current_job()
    try:
        answer: dict[str, Any] = await job.wait_for("approved", timeout=timedelta(seconds=patience))
    except SignalTimeout:
        return f"{customer} gets nothing: nobody answered"
    return f"{customer} gets {amount}: {answer['by']} approved it"


async def main() -> None:
    async with pipe, pipe.running(workers=1):
        await pipe.enqueue(refund.request("ada", 70), id="refund-1")
        await pipe.enqueue(refund.request("eve", 9_000, patience=0.1), id="refund-2")
        print((await pipe.wait("refund-2")).result)

        explanation = await pipe.explain("refund-1")  # it holds no worker
        print(f"refund-1 waits: {explanation.reason} {', '.join(explanation.blockers)}")
        receipt = await pipe.signal("refund-1", "approved", {"by": "grace"})
        print(f"accepted: {receipt.is_new}")
        print((await pipe.wait("refund-1")).result)

        receipt = await pipe.signal("refund-1", "approved", {"by": "grace"})
        print(f"the same again, is it new? {receipt.is_new}")
        try:
            await pipe.signal("refund-1", "approved", {"by": "eve"})
        except SignalRefusedError as error:
            print(error)

        await pipe.enqueue(refund.request("bob", 20), id="refund-3", delay=0.1)
        await pipe.signal("refund-3", "approved", {"by": "alan"})  # it comes before the job asks, and is kept
        print((await pipe.wait("refund-3")).result)


if __name__ == "__main__":
    asyncio.run(main())
