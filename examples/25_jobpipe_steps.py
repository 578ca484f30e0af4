"""Durable steps: a job that fails half-way is run again from its top, and what it has done is not done again."""

import asyncio
import logging
from dataclasses import dataclass

from jobpipe import Fail, Jobpipe, current_job

pipe = Jobpipe("memory://")
carrier = {"is_open": False}


@dataclass
class Charge:
    id: str
    amount: int


def charge_card(customer: str, amount: int) -> Charge:
    """Make effects idempotent all the same: a crash after the effect, and before it is recorded, runs the step again."""
    print(f"  {customer} is charged {amount}, with the key {current_job().id}")
    return Charge(id="charge-1", amount=amount)


async def pack(item: str) -> str:
    print(f"  {item} is packed")
    return f"box with {item}"


async def ship(boxes: list[str]) -> str:
    if not carrier["is_open"]:
        raise Fail("the carrier is closed")
    return f"{len(boxes)} boxes are on their way"


@pipe.job(max_retries=5, base=0.01)
async def order(customer: str, items: list[str]) -> str:
    job = current_job()
    print(f"the handler begins, attempt {job.attempts}")  # outside of steps: runs each time
    charge = await job.step("charge", charge_card, customer, 10 * len(items))
    boxes = [await job.step(f"pack-{number}", pack, item) for number, item in enumerate(items)]
    if job.attempts == 1:
        raise ConnectionError("the network is away")
    return f"{await job.step('ship', ship, boxes)}, {charge.amount} paid"


async def main() -> None:
    logging.getLogger("jobpipe").addHandler(logging.NullHandler())  # it logs failed attempts as well
    async with pipe, pipe.running(workers=1):
        await pipe.enqueue(order.request("ada", ["tea", "cup"]), id="order-17")
        job = await pipe.wait("order-17")
        print(f"{job.status}: {job.error.message if job.error else ''}")

        carrier["is_open"] = True
        await pipe.retry("order-17")  # keeps the steps
        job = await pipe.wait("order-17")
        print(f"{job.status}: {job.result}")
        for step in job.steps:
            print(f"{step.name}: {step.result}")


if __name__ == "__main__":
    asyncio.run(main())
