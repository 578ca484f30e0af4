"""Job types: requests and payloads are typed by the handler, twins by their coroutines."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, assert_type

from jobpipe import Job, Jobpipe, JobRequest, Receipt, Retry, ScheduleInfo, ScheduleRequest
from rate_envelope_queue import Context, Envelope, logging_stamp, stamp

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


async def durations() -> None:
    minute = timedelta(minutes=1)
    pipe.job("a", deadline=minute, base=minute, cap=600)
    await send_email.enqueue(Mail("a@b"), delay=minute, deadline=minute, expires_in=minute)
    JobRequest(type="email", delay=minute, deadline=minute)
    ScheduleRequest(type="email", every=minute)
    await pipe.wait("a", timeout=minute)
    raise Retry(after=minute)


@stamp
def measured(ctx: Context, envelope: Envelope[Any]) -> Generator[None, Any, None]:
    yield


def middleware(job: Job) -> None:
    own = Jobpipe("memory://", stamps=[measured, logging_stamp()], workers=8)

    @own.job(stamps=[measured], retry_on=(TimeoutError, OSError), fail_on=ValueError)
    def work(number: int) -> int:
        return number

    @own.on_failure
    async def tell(job: Job) -> None: ...

    @own.on_failure
    def tell_in_thread(job: Job) -> str:
        return job.id

    assert_type(work(1), int)
    assert_type(tell_in_thread(job), str)
    own.on_failure(tell)
