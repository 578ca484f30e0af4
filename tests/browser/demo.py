"""A service with the everyday work of a small shop: what the screenshots show."""

from __future__ import annotations

import asyncio
import random
from typing import Any

from jobpipe import Jobpipe, current_job

pipe = Jobpipe("memory://", queue_size=0, workers=12)


async def _steps(note: str, seconds: float) -> None:
    job = current_job()
    for step in range(1, 11):
        await asyncio.sleep(seconds / 10)
        job.progress(step / 10, f"{note} {step} of 10")


@pipe.job("email", queue="mail", max_retries=5, rate="8/s")
async def email(mail: dict[str, str]) -> dict[str, str]:
    await asyncio.sleep(random.uniform(0.02, 0.25))
    if random.random() < 0.06:
        raise ConnectionError(f"450 4.2.1 mailbox of {mail['to']} is busy")
    return {"message": f"<{random.getrandbits(40):x}@mail.shop.example>"}


@pipe.job("thumbnail", queue="media", concurrency=4, max_retries=2)
async def thumbnail(file: str) -> dict[str, int]:
    await _steps("size", random.uniform(0.5, 2.5))
    if file.endswith("7.heic"):
        raise ValueError(f"{file}: not a picture that can be read")
    return {"width": 320, "height": 240}


@pipe.job("invoice", max_retries=3, base=2)
async def invoice(order: dict[str, Any]) -> str:
    await asyncio.sleep(random.uniform(0.05, 0.6))
    if order["number"] % 23 == 0 or order["number"] == 4_711:
        raise TimeoutError("the tax service did not answer within 2 s")
    return f"invoices/{order['number']}.pdf"


@pipe.job("return", queue="returns")
async def take_back(order: dict[str, Any]) -> str:
    job = current_job()
    label = await job.step("send-label", lambda: {"label": f"labels/{order['number']}.pdf"})
    await job.sleep("on-its-way", 5)
    parcel = await job.step("register", lambda: {"parcel": f"P-{order['number']}", "weight": 1.2})
    answer = await job.wait_for("inspected", timeout=3 * 86_400)
    return f"{label['label']} {parcel['parcel']}: {answer}"


@pipe.job("report", queue="reports", deadline=120)
async def report(name: str) -> str:
    await _steps("page", 20)
    return f"reports/{name}.xlsx"


@pipe.job("webhook", queue="partners", rate="40/min", key=lambda event: event["shop"])
async def webhook(event: dict[str, str]) -> int:
    await asyncio.sleep(random.uniform(0.1, 0.4))
    return 200


@pipe.every(15, name="heartbeat")
async def heartbeat() -> None:
    await asyncio.sleep(0.01)


@pipe.cron("30 7 * * 1-5", tz="Europe/Berlin", name="morning-digest")
async def digest() -> None:
    await asyncio.sleep(1)


@pipe.cron("*/10 * * * *", name="stock-sync")
async def stock() -> None:
    await asyncio.sleep(1)


@pipe.cron("0 3 * * *", tz="Europe/Berlin", name="nightly-cleanup", missed="none")
async def cleanup() -> None:
    await asyncio.sleep(1)
