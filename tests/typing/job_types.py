"""Job types: requests and payloads are typed by the handler, twins by their coroutines."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, assert_type

from jobpipe import Job, Jobpipe, JobRequest, Receipt, ScheduleInfo

pipe = Jobpipe("memory://")


@dataclass
class Mail:
    to: str


class Letter(Mail):
    pass


@pipe.job("email", max_retries=3, deadline=10)
async def send_email(mail: Mail) -> str:
    return mail.to


@pipe.job
def resize(path: str, width: int = 640) -> str:
    return path


@pipe.job("tick")
def tick() -> None: ...


@pipe.job
def copy(source: str, target: str, *, force: bool = False) -> None: ...


@pipe.job
def plain(payload: Any) -> Any:
    return payload


async def enqueueing() -> None:
    assert_type(await send_email.enqueue(Mail("a@b"), id="order-17", delay=30), Receipt)
    await send_email.enqueue(Letter("a@b"))
    assert_type(await send_email.enqueue_many([Mail("a@b")]), list[Receipt])
    await resize.enqueue("a.png")
    await resize.enqueue({"path": "a.png", "width": 200})
    await copy.enqueue({"source": "a", "target": "b"})
    await tick.enqueue()
    await tick.enqueue(None, queue="slow")
    await plain.enqueue([1, 2])
    assert_type(await pipe.enqueue(resize.request("a.png", width=200), delay=5), Receipt)
    assert_type(
        await pipe.enqueue_many([resize.request("a.png"), send_email.request(Mail("a@b"))]), list[Receipt]
    )


def requests() -> None:
    assert_type(resize.request("a.png"), JobRequest)
    resize.request(path="a.png", width=200)
    copy.request("a", target="b", force=True)
    send_email.request(Mail("a@b"))
    tick.request()


def calls() -> None:
    assert_type(resize("a.png", 200), str)
    assert_type(tick(), None)


def twins() -> None:
    assert_type(send_email.enqueue_sync(Mail("a@b"), id="order-17"), Receipt)
    assert_type(pipe.enqueue_sync(resize.request("a.png"), priority=3), Receipt)
    assert_type(pipe.enqueue_many_sync([resize.request("a.png")]), list[Receipt])
    assert_type(pipe.get_sync("a"), Job)
    assert_type(pipe.page_sync(status="done", limit=5).jobs, list[Job])
    assert_type(pipe.cancel_many_sync(type="email"), int)
    assert_type(pipe.schedules.all_sync(), list[ScheduleInfo])


def schedules() -> None:
    @pipe.every(timedelta(minutes=1), max_retries=0)
    def clean() -> int:
        return 1

    assert_type(clean(), int)
