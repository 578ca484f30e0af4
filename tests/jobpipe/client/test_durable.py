"""Steps and signals through the client, against a real service that runs a program of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from jobpipe import (
    BadInputError,
    Client,
    ForbiddenError,
    JobNotFoundError,
    PayloadTooLargeError,
    SignalReceipt,
    SignalRefusedError,
    UnreachableError,
    WrongStatusError,
)

from ...support.processes import Program, program
from ...support.proxy import Proxy
from ...support.waiting import LIMIT

TOKEN = "a-very-secret-token"
READ = "only-for-looking-at"
APP = """
from jobpipe import Fail, Jobpipe, current_job

pipe = Jobpipe("memory://", max_payload=10_000)
charged = []

def charge(card):
    charged.append(card)
    return {"charge": len(charged)}

@pipe.job("order", max_retries=0)
async def order(card):
    job = current_job()
    paid = await job.step("charge", charge, card)
    answer = await job.wait_for("approved")
    if answer == "no":
        raise Fail("not approved")
    return [paid, answer]

@pipe.job("pages")
async def pages(count):
    for number in range(count):
        await current_job().step(f"page-{number}", lambda: "x" * 5_000 if number == 0 else number)
"""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a service; its jobs are those of all tests here."""
    folder = tmp_path_factory.mktemp("service")
    (folder / "shop.py").write_text(APP)
    started: Program
    flags = ["--port", "0", "--token", TOKEN, "--read-token", READ]
    with program(["-m", "jobpipe", "serve", "shop:pipe", *flags], folder) as started:
        yield started.line(r"listening on (http://127\.0\.0\.1:\d+)$")[1]


@pytest.fixture
def client(service: str) -> Iterator[Client]:
    with Client(service, TOKEN, patience=LIMIT) as opened:
        yield opened


def test_a_signal_is_sent_and_a_job_goes_on_with_it(client: Client) -> None:
    client.enqueue_sync("order", "visa", id="first")
    assert client.signal_sync("first", "approved", {"by": "ada"}) == SignalReceipt(
        id="first", name="approved", is_new=True
    )
    job = client.wait_sync("first", LIMIT)
    assert (job.status, job.result[1], job.attempts) == ("done", {"by": "ada"}, 1)
    (step,) = client.steps_sync("first")
    assert (step.name, step.result, step.cut) == ("charge", job.result[0], False)
    assert job.steps == (step,)
    assert not client.signal_sync("first", "approved", {"by": "ada"}).is_new


def test_the_same_from_an_event_loop(service: str) -> None:
    async def main() -> None:
        async with Client(service, TOKEN, patience=LIMIT) as client:
            await client.enqueue("order", "visa", id="loop")
            assert (await client.signal("loop", "approved")).is_new
            assert (await client.wait("loop", LIMIT)).result[1] is None
            assert [step.name for step in await client.steps("loop")] == ["charge"]
            with pytest.raises(WrongStatusError):
                await client.retry("loop", from_start=True)

    asyncio.run(main())


def test_all_steps_are_read_with_their_whole_results(client: Client) -> None:
    client.enqueue_sync("pages", 502, id="pages")
    job = client.wait_sync("pages", LIMIT)
    assert (job.status, len(job.steps), job.steps[0].cut) == ("done", 50, True)
    steps = client.steps_sync("pages")
    assert [step.name for step in steps] == [f"page-{number}" for number in range(502)]
    assert [step.result for step in steps] == ["x" * 5_000, *range(1, 502)]
    assert not any(step.cut for step in steps)


def test_a_retry_keeps_the_steps_unless_it_is_from_the_start(client: Client) -> None:
    client.enqueue_sync("order", "visa", id="again")
    client.signal_sync("again", "approved", "no")
    failed = client.wait_sync("again", LIMIT)
    assert failed.status == "failed"
    assert client.retry_sync("again").steps == failed.steps
    assert client.wait_sync("again", LIMIT).status == "failed", "the signal is kept, too"
    client.retry_sync("again", from_start=True)
    assert client.signal_sync("again", "approved", "yes").is_new
    job = client.wait_sync("again", LIMIT)
    assert (job.status, job.result[1]) == ("done", "yes")
    assert job.steps[0].result != failed.steps[0].result


def test_a_new_payload_lets_it_run_from_the_start(client: Client) -> None:
    client.enqueue_sync("order", "visa", id="other")
    client.signal_sync("other", "approved", "no")
    failed = client.wait_sync("other", LIMIT)
    assert client.retry_sync("other", payload="amex", from_start=True).payload == "amex"
    client.signal_sync("other", "approved", "yes")
    assert client.wait_sync("other", LIMIT).result[0] != failed.steps[0].result


def test_errors_are_those_of_the_pipe(client: Client) -> None:
    client.enqueue_sync("order", "visa", id="wrong")
    client.signal_sync("wrong", "ready", 1)
    client.enqueue_sync("echo", id="done")
    client.wait_sync("done", LIMIT)
    calls: list[tuple[type[Exception], Callable[[], Any]]] = [
        (SignalRefusedError, lambda: client.signal_sync("wrong", "ready", 2)),
        (WrongStatusError, lambda: client.signal_sync("done", "ready")),
        (JobNotFoundError, lambda: client.signal_sync("nosuch", "ready")),
        (JobNotFoundError, lambda: client.signal_sync("no such/job", "ready")),
        (JobNotFoundError, lambda: client.steps_sync("nosuch")),
        (BadInputError, lambda: client.signal_sync("wrong", "a/b")),
        (BadInputError, lambda: client.signal_sync("wrong", "x" * 201)),
        (BadInputError, lambda: client.signal_sync("wrong", "odd", object())),
        (PayloadTooLargeError, lambda: client.signal_sync("wrong", "long", "x" * 10_000)),
    ]
    for kind, call in calls:
        with pytest.raises(kind):
            call()
    with pytest.raises(SignalRefusedError, match="other content") as refused:
        client.signal_sync("wrong", "ready", 2)
    assert (refused.value.id, refused.value.name) == ("wrong", "ready")
    client.cancel_sync("wrong")


def test_a_token_for_reading_sends_no_signal(service: str, client: Client) -> None:
    client.enqueue_sync("order", "visa", id="guarded")
    with Client(service, READ) as reader:
        reader.steps_sync("guarded")
        with pytest.raises(ForbiddenError):
            reader.signal_sync("guarded", "approved", "no")
    assert client.signal_sync("guarded", "approved", "yes").is_new
    assert client.wait_sync("guarded", LIMIT).status == "done"


def test_a_signal_whose_answer_is_lost_is_sent_again_and_counts_once(service: str, client: Client) -> None:
    host, port = service.removeprefix("http://").split(":")
    client.enqueue_sync("order", "visa", id="lossy")
    with Proxy((host, int(port))) as proxy:
        with Client(f"http://{proxy.host}:{proxy.port}", TOKEN, patience=LIMIT) as behind:
            proxy.lose_replies(2, after=b"POST /jobs/lossy/signals/approved")
            assert behind.signal_sync("lossy", "approved", [1]).name == "approved"
            assert proxy.lost == 2
        with Client(f"http://{proxy.host}:{proxy.port}", TOKEN, retries=False) as behind:
            proxy.lose_replies(1, after=b"POST /jobs/lossy/signals/approved")
            with pytest.raises(UnreachableError):
                behind.signal_sync("lossy", "approved", [1])
    assert client.wait_sync("lossy", LIMIT).result[1] == [1]
