"""The tasks of the project."""

from __future__ import annotations

import asyncio
import logging
import sys
from contextlib import suppress
from typing import Any

from asgiref.sync import sync_to_async
from django.db import connection, connections, transaction

import jobpipe
from jobpipe.integrations.django import task_options

from ....support.waiting import eventually
from . import project

if project.NAME == "django.tasks":
    from django.tasks import task
else:
    from django_tasks import task

CALLS: list[Any] = []
"""What tasks have noted."""


class OwnError(Exception):
    """Of the project."""


@task()
def note(*args: Any, **kwargs: Any) -> None:
    CALLS.append((args, kwargs))


@task()
async def note_async(*args: Any, **kwargs: Any) -> None:
    CALLS.append((args, kwargs))


@task
def add(a: int, b: int = 2) -> int:
    return a + b


@task()
def fail(kind: str = "ValueError") -> None:
    if kind == "SystemExit":
        sys.exit("it broke")
    if kind == "Chained":
        try:
            raise ValueError("the cause")
        except ValueError:
            raise OwnError("several\nlines: of it") from None
    raise {"ValueError": ValueError, "OwnError": OwnError, "Fail": jobpipe.Fail}[kind]("it broke")


@task()
async def fail_async() -> None:
    raise OwnError("it broke")


@task()
@task_options(max_retries=3, base=0)
def fail_twice() -> str:
    job = jobpipe.current_job()
    if job.attempts < 3:
        raise OwnError(f"attempt {job.attempts}")
    return "at last"


@task()
@task_options(max_retries=3, base=0)
def return_no_json() -> object:
    return {1, 2}


@task(takes_context=True)
@task_options(max_retries=1, base=0)
def tell_context(context: Any, word: str) -> list[Any]:
    result = context.task_result
    CALLS.append(result)
    if context.attempt == 1:
        raise OwnError("again")
    return [word, context.attempt, result.id, len(result.errors)]


@task(takes_context=True)
async def tell_context_async(context: Any) -> int:
    return int(context.attempt)


@task(queue_name="mail", priority=7)
def send(to: str) -> str:
    return f"sent to {to}"


@task()
@task_options(unique=True)
def once(number: int) -> int:
    return number


@task()
@task_options(unique=lambda number, **_: f"once-{number}", on_duplicate="replace", tags=["a"], expires_in=60)
def newest(number: int, word: str = "") -> str:
    return word


@task()
@task_options(rate="5/s", concurrency=3, key=lambda number: number)
def limited(number: int) -> int:
    return number


def _check_number(number: int) -> None:
    if number <= 0:
        raise jobpipe.BadInputError("number", f"must be positive, got {number}")


@task()
@task_options(check=_check_number, logs=False)
def positive(number: int) -> int:
    logging.getLogger(__name__).warning("not kept")
    return number


@task()
def tell_log(error: str = "") -> None:
    logging.getLogger(__name__).info("told")
    if error:
        raise OwnError(error)


def _use_database() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    CALLS.append(connections["default"])  # that of this thread
    return connection.connection is not None


@task()
def hold_connection() -> bool:
    return _use_database()


@task()
async def hold_connection_async() -> bool:
    return await sync_to_async(_use_database)()


@task()
@task_options(deadline=0.05)
async def take_too_long() -> None:
    await asyncio.sleep(1_000)


@task()
def look_at_itself() -> str:
    """The status that others see, as soon as they see that it runs."""
    result = look_at_itself.get_result(jobpipe.current_job().id)
    eventually(lambda: result.refresh() or result.status != "READY")
    return str(result.status)


def _pay(using: str, amount: int) -> int:
    CALLS.append("pay")
    with connections[using].cursor() as cursor:
        cursor.execute("INSERT INTO payments VALUES (%s)", [amount])
    return amount


@task()
@task_options(max_retries=2, base=0)
def pay(using: str) -> int:
    job = jobpipe.current_job()
    with transaction.atomic(using=using):
        if job.attempts == 1:
            with suppress(OwnError), transaction.atomic(using=using):
                job.step_sync("pay", _pay, using, 7, connection=connections[using])
                raise OwnError("of the savepoint")
        if job.attempts < 3:
            job.step_sync("pay", _pay, using, 7, connection=connections[using])
            note.enqueue("paid")
        if job.attempts == 1:
            raise OwnError("of the transaction")
    if job.attempts == 2:
        raise OwnError("after the commit")
    return job.step_sync("pay", _pay, using, 7, connection=connections[using])


@task()
@task_options(max_retries=1, base=0)
def pay_and_finish(using: str) -> str:
    job = jobpipe.current_job()
    with suppress(OwnError), transaction.atomic(using=using):
        _pay(using, 7)
        job.finish_sync("paid", connection=connections[using])
        if job.attempts == 1:
            raise OwnError("of the transaction")
    return "does not count"


@task()
def pay_and_signal(using: str) -> None:
    job = jobpipe.current_job()
    with transaction.atomic(using=using):
        job.step_sync("pay", _pay, using, 7, connection=connections[using])
        job.step_sync("without", note.func)
