"""The client against a real service, blocking and not."""

from __future__ import annotations

import asyncio
import inspect
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from jobpipe import (
    BadInputError,
    Client,
    ForbiddenError,
    JobConflictError,
    JobNotFoundError,
    Jobpipe,
    JobRequest,
    QueueFullError,
    ScheduleNotFoundError,
    ScheduleRequest,
    SettingsError,
    UnauthorizedError,
    UnreachableError,
    WrongStatusError,
)
from jobpipe.client.client import ClientSchedules
from jobpipe.gateway.timetable import Timetable

from ...support.processes import Program, program
from ...support.proxy import Proxy
from ...support.waiting import LIMIT

TOKEN = "a-very-secret-token"
READ = "only-for-looking-at"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a service; its jobs are those of all tests here."""
    folder = tmp_path_factory.mktemp("service")
    flags = ["--store", "memory://", "--port", "0", "--token", TOKEN, "--read-token", READ]
    started: Program
    with program(["-m", "jobpipe", "serve", *flags, "--queue-size", "40"], folder) as started:
        yield started.line(r"listening on (http://127\.0\.0\.1:\d+)$")[1]


@pytest.fixture
def client(service: str) -> Iterator[Client]:
    with Client(service, TOKEN, patience=LIMIT) as opened:
        yield opened


def names(owner: type, *, is_async: bool) -> set[str]:
    return {
        name
        for name, value in vars(owner).items()
        if not name.startswith("_") and (not is_async or inspect.iscoroutinefunction(value))
    }


def test_it_has_the_names_of_the_pipe_and_a_twin_of_each() -> None:
    for own, other, without in (
        (Client, Jobpipe, {"insert"}),
        (ClientSchedules, Timetable, set[str]()),
    ):
        wanted = names(other, is_async=True) - without
        wanted = {name for name in wanted if not name.endswith("_sync")}
        found = names(own, is_async=False)
        assert wanted <= found
        assert {f"{name}_sync" for name in wanted} <= found


def test_a_job_is_enqueued_waited_for_and_inspected(client: Client) -> None:
    receipt = client.enqueue_sync("echo", {"a": [1, None]}, id="first", max_retries=1)
    assert (receipt.id, receipt.is_new, receipt.warning) == ("first", True, None)
    job = client.wait_sync("first", LIMIT)
    assert (job.status, job.result, job.max_retries) == ("done", {"a": [1, None]}, 1)
    assert not client.enqueue_sync("echo", {"a": [1, None]}, id="first", max_retries=1).is_new
    assert client.get_sync("first") == job
    assert "first" in {each.id for each in client.page_sync(status="done", type="echo").jobs}
    assert client.explain_sync("first").reason == "finished"
    assert client.stats_sync().done >= 1
    assert client.queues_sync()[0].name == "default"
    assert [worker.types for worker in client.workers_sync()] == [("echo", "fail", "sleep")]
    assert client.limits_sync() == []
    assert client.history_sync().moments is not None
    client.check_sync()


def test_the_same_from_an_event_loop_and_from_another_one(service: str) -> None:
    client = Client(service, TOKEN, patience=LIMIT)

    async def main(id: str) -> None:
        async with client:
            await client.enqueue("sleep", 0, id=id)
            assert (await client.wait(id, LIMIT)).status == "done"
            found = await asyncio.gather(*(client.get(id) for _ in range(20)))
            assert {job.id for job in found} == {id}

    for id in ("loop-1", "loop-2"):
        asyncio.run(main(id))


def test_a_batch_says_of_each_job_whether_it_is_new(client: Client) -> None:
    client.enqueue_sync("echo", id="known")
    batch = [
        JobRequest(type="echo", id="known"),
        JobRequest(type="echo"),
        JobRequest(type="sleep", payload=0),
    ]
    receipts = client.enqueue_many_sync(batch)
    assert [receipt.is_new for receipt in receipts] == [False, True, True]
    assert len({receipt.id for receipt in receipts}) == 3
    assert [each.is_new for each in client.enqueue_many_sync(batch[:1])] == [False]
    assert client.enqueue_many_sync([]) == []


def test_jobs_and_queues_are_managed(client: Client) -> None:
    assert client.pause_sync("lane").paused
    client.enqueue_sync("echo", id="held", queue="lane")
    assert client.cancel_sync("held").status == "cancelled"
    assert client.retry_sync("held").status == "queued"
    assert client.cancel_many_sync(queue="lane") == 1
    assert client.retry_many_sync(queue="lane") == 1
    assert not client.resume_sync("lane").paused
    assert client.wait_sync("held", LIMIT).status == "done"
    assert [job.id for job in client.page_sync(text="HELD").jobs] == ["held"]
    assert client.delete_many_sync(status="done", queue="lane") == 1


def test_failures_are_grouped_and_retried_with_another_payload(client: Client) -> None:
    client.enqueue_sync("fail", "no luck", id="unlucky", max_retries=0, tags=["sad"])
    failed = client.wait_sync("unlucky", LIMIT)
    assert failed.error is not None
    group = next(each for each in client.failures_sync().failures if each.last_id == "unlucky")
    assert (group.type, group.error, group.count) == ("fail", failed.error.type, 1)
    assert group.first_at == group.last_at == failed.finished_at
    with pytest.raises(BadInputError, match="payload"):
        client.retry_sync("unlucky", payload={"no": "text"})
    assert client.retry_sync("unlucky", payload="again").payload == "again"
    client.wait_sync("unlucky", LIMIT)
    assert [job.id for job in client.page_sync(error=failed.error.type, tag="sad").jobs] == ["unlucky"]
    assert client.delete_many_sync(error=failed.error.type, tag="sad") == 1


def test_schedules_are_managed(client: Client) -> None:
    made = client.schedules.put_sync("nightly", ScheduleRequest(type="echo", cron="0 3 * * *", payload=1))
    often = client.schedules.put_sync("often", ScheduleRequest(type="echo", every=timedelta(minutes=5)))
    assert often.every == 300
    client.schedules.drop_sync("often")
    assert (made.name, made.cron, made.payload) == ("nightly", "0 3 * * *", 1)
    assert client.schedules.get_sync("nightly") == made
    assert client.schedules.pause_sync("nightly").paused
    assert not client.schedules.resume_sync("nightly").paused
    run = client.schedules.run_sync("nightly")
    assert client.wait_sync(run.id, LIMIT).result == 1
    assert [each.name for each in client.schedules.all_sync()] == ["nightly"]
    client.schedules.drop_sync("nightly")
    with pytest.raises(ScheduleNotFoundError) as caught:
        client.schedules.get_sync("nightly")
    assert caught.value.name == "nightly"


def test_errors_are_those_of_the_pipe(client: Client) -> None:
    client.enqueue_sync("echo", 1, id="taken")
    client.wait_sync("taken", LIMIT)
    calls: list[tuple[type[Exception], Callable[[], Any]]] = [
        (JobNotFoundError, lambda: client.get_sync("nosuch")),
        (JobNotFoundError, lambda: client.get_sync("no such/job?")),
        (JobNotFoundError, lambda: client.get_sync("..")),
        (ScheduleNotFoundError, lambda: client.schedules.drop_sync("a/b")),
        (BadInputError, lambda: client.pause_sync("a/b")),
        (JobConflictError, lambda: client.enqueue_sync("echo", 2, id="taken")),
        (WrongStatusError, lambda: client.retry_sync("taken")),
        (BadInputError, lambda: client.enqueue_many_sync([JobRequest(type="no name")])),
        (BadInputError, lambda: client.page_sync(limit=0)),
    ]
    for kind, call in calls:
        with pytest.raises(kind):
            call()


def test_a_full_queue_is_an_error_when_patience_ends(service: str) -> None:
    with Client(service, TOKEN, patience=0.5) as client:
        client.pause_sync("narrow")
        fill = [JobRequest(type="echo", queue="narrow")] * 40
        client.enqueue_many_sync(fill)
        with pytest.raises(QueueFullError) as caught:
            client.enqueue_sync("echo", queue="narrow")
        assert (caught.value.queue, caught.value.capacity) == ("narrow", 40)
        client.cancel_many_sync(queue="narrow")


def test_tokens_are_refused_by_their_kind_and_never_shown(service: str) -> None:
    wrong = "wrong-but-secret"
    with Client(service, wrong) as client, pytest.raises(UnauthorizedError) as unknown:
        client.stats_sync()
    with Client(service, READ) as client:
        client.stats_sync()
        with pytest.raises(ForbiddenError) as forbidden:
            client.enqueue_sync("echo")
        assert forbidden.value.kind == "read-only-token"
    for error, token in ((unknown.value, wrong), (forbidden.value, READ)):
        assert token not in f"{error} {error!r} {vars(error)} {error.__context__}"
    assert READ not in repr(client)
    for bad in ("", "with space", "li\nne", "ünicode"):
        with pytest.raises(BadInputError, match="token must be printable") as caught:
            Client(service, bad)
        assert not bad or bad not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    ["localhost:8080", "ftp://x", "http://", "http://u:pass@x", "http://x/?token=pass", "http://[x", None],
)
def test_an_address_that_leads_to_no_service_is_refused(url: Any) -> None:
    with pytest.raises(SettingsError, match="url must be the URL of a service") as caught:
        Client(url)
    assert "pass" not in str(caught.value)


def test_nobody_there_is_unreachable_after_the_patience() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    with Client(url, patience=0.3) as client:
        with pytest.raises(UnreachableError, match=f"the service at {url} cannot be reached") as caught:
            client.stats_sync()
        assert not caught.value.may_have_arrived


def test_a_lost_answer_makes_no_second_job(service: str) -> None:
    """The service takes the job, and the answer never arrives: twice, each way."""
    host, port = service.removeprefix("http://").split(":")
    with Proxy((host, int(port))) as proxy, Client(service, TOKEN) as other:
        url = f"http://{proxy.host}:{proxy.port}"
        with Client(url, TOKEN, patience=LIMIT) as client:
            proxy.lose_replies(2, after=b"POST /enqueue")
            receipt = client.enqueue_sync("echo", queue="lossy")
            assert (receipt.is_new, proxy.lost) == (True, 2)
            proxy.lose_replies(1, after=b"POST /enqueue/batch")
            batch = client.enqueue_many_sync([JobRequest(type="echo", queue="lossy")] * 3)
            assert ([each.is_new for each in batch], proxy.lost) == ([True] * 3, 3)

        async def main() -> str:
            proxy.lose_replies(1, after=b"POST /enqueue")
            async with Client(url, TOKEN, patience=LIMIT) as client:
                return (await client.enqueue("echo", queue="lossy")).id

        ids = {receipt.id, asyncio.run(main()), *(each.id for each in batch)}
        assert proxy.lost == 4
        assert {job.id for job in other.page_sync(queue="lossy").jobs} == ids
        assert len(ids) == 5


def test_a_retry_by_hand_whose_answer_is_lost_is_not_sent_again(service: str) -> None:
    host, port = service.removeprefix("http://").split(":")
    with Proxy((host, int(port))) as proxy, Client(service, TOKEN) as other:
        other.pause_sync("once")
        other.enqueue_sync("echo", id="once", queue="once")
        other.cancel_sync("once")
        with Client(f"http://{proxy.host}:{proxy.port}", TOKEN, patience=LIMIT) as client:
            proxy.lose_replies(9, after=b"POST /jobs/once/retry")
            with pytest.raises(UnreachableError) as caught:
                client.retry_sync("once")
            assert (caught.value.may_have_arrived, proxy.lost) == (True, 1)
        assert other.get_sync("once").status == "queued"
        other.cancel_sync("once")


def test_threads_share_a_client(client: Client) -> None:
    with ThreadPoolExecutor(8) as threads:
        receipts = [*threads.map(lambda n: client.enqueue_sync("echo", n, delay=1000), range(30))]
    assert len({receipt.id for receipt in receipts}) == 30
    assert client.cancel_many_sync(status="scheduled") == 30


def test_close_leaves_nothing_open_and_the_next_call_opens_it_again(
    collect: Callable[[], None], service: str
) -> None:
    async def main() -> None:
        client = Client(service, TOKEN)
        await client.stats()
        client.close()  # closed by this very loop, soon
        await client.stats()
        await client.aclose()

    asyncio.run(main())
    client = Client(service, TOKEN)
    client.stats_sync()
    client.close()
    client.stats_sync()
    client.close()
    del client
    collect()  # what was left open would warn, and a warning is an error


def test_an_unknown_type_is_warned_of(client: Client) -> None:
    receipt = client.enqueue_sync("ecko", delay=1000)
    assert receipt.warning == "no running worker knows the type 'ecko'; did you mean 'echo'?"
    known, unknown = client.enqueue_many_sync(
        [JobRequest(type="echo", delay=1000.0), JobRequest(type="zzz", delay=1000.0)]
    )
    assert known.warning is None
    assert unknown.warning == "no running worker knows the type 'zzz'"
    client.cancel_many_sync(status="scheduled")


def test_the_folder_of_the_caller_has_no_say(
    service: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither its settings nor a proxy of the environment."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JOBPIPE_TOKEN", TOKEN)
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    with Client(service, TOKEN) as client:
        client.stats_sync()
    with Client(service) as client, pytest.raises(UnauthorizedError):
        client.stats_sync()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_a_forked_process_has_connections_of_its_own(service: str) -> None:
    """Both ask over and over: on one connection, one would get the other's answers."""
    script = """
import os, sys
from jobpipe import Client

client = Client(*sys.argv[1:])
client.stats_sync()
pid = os.fork()
name = "parent" if pid else "child"
for number in range(50):
    receipt = client.enqueue_sync("echo", id=f"{name}-{number}", delay=1000)
    assert receipt.id == f"{name}-{number}", receipt
if pid:
    assert os.waitpid(pid, 0)[1] == 0
    assert client.cancel_many_sync(status="scheduled") == 100
client.close()
"""
    ended = subprocess.run(
        [sys.executable, "-c", script, service, TOKEN],
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
