"""The client of the service as a user writes it: a coroutine and a blocking method of each call, with one signature."""

from __future__ import annotations

from datetime import timedelta
from typing import assert_type

from jobpipe import Client, Failures, Job, JobPage, JobRequest, Receipt, ScheduleInfo, ScheduleRequest, Stats


def blocking() -> None:
    with Client("http://localhost:8080", token="secret", patience=timedelta(seconds=5)) as client:
        assert_type(client.enqueue_sync("email", {"to": "ada"}, id="a", delay=5), Receipt)
        assert_type(client.enqueue_many_sync([JobRequest(type="email")]), list[Receipt])
        assert_type(client.wait_sync("a", timeout=5), Job)
        assert_type(client.page_sync(status="done", limit=5), JobPage)
        assert_type(client.cancel_many_sync(queue="mail"), int)
        assert_type(client.delete_many_sync(all=True), int)
        assert_type(client.failures_sync(), Failures)
        assert_type(client.retry_sync("a", payload={"to": "bob"}), Job)
        assert_type(client.schedules.put_sync("s", ScheduleRequest(type="email", every=5)), ScheduleInfo)
        client.enqueue_sync("email", dalay=5)  # type: ignore[call-arg]
        client.get_sync(5)  # type: ignore[arg-type]


async def in_a_loop() -> None:
    async with Client("http://localhost:8080") as client:
        assert_type(await client.enqueue("email", priority=1), Receipt)
        assert_type(await client.get("a"), Job)
        assert_type(await client.stats(), Stats)
        assert_type(await client.schedules.all(), list[ScheduleInfo])
        assert_type(await client.schedules.drop("s"), None)
