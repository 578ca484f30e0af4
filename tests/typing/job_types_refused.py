"""Calls of job types that a checker must refuse, each with its `type: ignore`."""

from __future__ import annotations

from dataclasses import dataclass

from jobpipe import Jobpipe

pipe = Jobpipe("memory://")


@dataclass
class Mail:
    to: str


@pipe.job("email")
async def send_email(mail: Mail) -> str:
    return mail.to


@pipe.job
def resize(path: str, width: int = 640) -> str:
    return path


@pipe.job
def tick() -> None: ...


@pipe.job
def copy(source: str, target: str) -> None: ...


async def payloads() -> None:
    await send_email.enqueue("a@b")  # type: ignore[arg-type]
    await send_email.enqueue({"to": "a@b"})  # type: ignore[arg-type]
    await send_email.enqueue()  # type: ignore[call-arg]
    await send_email.enqueue(Mail("a@b"), delays=5)  # type: ignore[call-arg]
    await send_email.enqueue_many([5])  # type: ignore[list-item]
    await resize.enqueue(5)  # type: ignore[call-overload]
    await tick.enqueue(5)  # type: ignore[arg-type]
    await copy.enqueue("a")  # type: ignore[arg-type]


def requests() -> None:
    send_email.request("a@b")  # type: ignore[arg-type]
    send_email.request()  # type: ignore[call-arg]
    resize.request(5)  # type: ignore[arg-type]
    resize.request("a.png", height=5)  # type: ignore[call-arg]
    tick.request(5)  # type: ignore[call-arg]
    copy.request("a")  # type: ignore[call-arg]


def twins() -> None:
    pipe.get_sync()  # type: ignore[call-arg]
    pipe.get_sync(5)  # type: ignore[arg-type]
    pipe.enqueue_sync(5)  # type: ignore[arg-type]
    pipe.enqueue_sync("email", None, delays=5)  # type: ignore[call-arg]
    send_email.enqueue_sync("a@b")  # type: ignore[arg-type]


def options() -> None:
    pipe.job("email", max_retries="3")  # type: ignore[call-overload]
    pipe.job("email", retries=3)  # type: ignore[call-overload]
    pipe.job("email", fail_on=ValueError())  # type: ignore[call-overload]
    pipe.job("email", stamps=[5])  # type: ignore[list-item]
    Jobpipe("memory://", stamps=[5])  # type: ignore[list-item]


def hooks() -> None:
    @pipe.on_failure  # type: ignore[type-var]
    def wrong(job: str) -> None: ...

    @pipe.on_failure  # type: ignore[type-var]
    def nothing() -> None: ...

    wrong("a")
    nothing()
