"""Handlers with several parameters: the payload is an object of them, and what does not fit names the argument."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from jobpipe import BadInputError, Job, Jobpipe, JobRequest

from ...support.jobs import finished
from ...support.waiting import run

pytestmark = pytest.mark.usefixtures("away_from_home")


@dataclass
class Mail:
    to: str


@pytest.fixture
def pipe() -> Jobpipe:
    return Jobpipe("memory://")


def resize(path: str, width: int = 640, *, crop: bool = False) -> list[Any]:
    return [path, width, crop]


def send(mail: Mail, copies: list[Mail]) -> str:
    return ",".join(each.to for each in [mail, *copies])


def swap(first: int = 1, second: int = 2, /, third: int = 3) -> list[int]:
    return [second, first, third]


def once(name: str = "world") -> str:
    return f"hello {name}"


def named(*, word: str) -> str:
    return word


def run_all(pipe: Jobpipe, *requests: JobRequest) -> list[Job]:
    """Enqueue the jobs, run them, and return what became of them."""

    async def scenario() -> list[Job]:
        async with pipe, pipe.running():
            receipts = await pipe.enqueue_many(requests)
            return [await finished(pipe, receipt.id) for receipt in receipts]

    return run(scenario())


TAKEN: list[tuple[Callable[..., Any], Any, Any]] = [
    (resize, {"path": "a"}, ["a", 640, False]),
    (resize, {"path": "a", "width": 1, "crop": True}, ["a", 1, True]),
    (resize, "a", ["a", 640, False]),
    (send, {"mail": {"to": "a"}, "copies": [{"to": "b"}]}, "a,b"),
    (swap, {}, [2, 1, 3]),
    (swap, None, [2, 1, 3]),
    (swap, {"second": 7}, [7, 1, 3]),
    (swap, {"first": 8, "third": 9}, [2, 8, 9]),
    (once, None, "hello world"),
    (once, "you", "hello you"),
    (named, "it", "it"),
    (partial(resize, width=5), {"path": "a", "crop": True}, ["a", 5, True]),
    (partial(resize, width=5, crop=True), "a", ["a", 5, True]),
    (partial(send, Mail("x")), [{"to": "b"}], "x,b"),
]


def test_a_payload_becomes_the_arguments(pipe: Jobpipe) -> None:
    requests = []
    for number, (handler, payload, _) in enumerate(TAKEN):
        pipe.job(f"t{number}")(handler)
        requests.append(JobRequest(type=f"t{number}", payload=payload))
    jobs = run_all(pipe, *requests)
    assert [(job.status, job.result) for job in jobs] == [("done", result) for *_, result in TAKEN]
    assert [job.payload for job in jobs] == [payload for _, payload, _ in TAKEN], "as they were given"


REFUSED: list[tuple[Callable[..., Any], Any, str]] = [
    (resize, {}, "payload.path is required"),
    (resize, None, "payload.path must be a string, got null"),
    (resize, 5, "payload.path must be a string, got a whole number"),
    (resize, {"path": 5}, "payload.path must be a string, got a whole number"),
    (resize, {"path": "a", "width": "5"}, "payload.width must be a whole number, got a string"),
    (
        resize,
        {"path": "a", "widht": 5},
        "payload.widht is not a known field; did you mean 'width'?",
    ),
    (send, None, "payload.mail is required"),
    (send, {"mail": {"to": "a"}, "copies": [{}]}, "payload.copies[0].to is required"),
    (send, {"to": "a"}, "payload.to is not a known field"),
    (send, "a", "payload must be an object, got a string"),
    (swap, 5, "payload must be an object, got a whole number"),
    (once, 5, "payload must be a string, got a whole number"),
]


@pytest.mark.parametrize(
    ("handler", "payload", "message"), REFUSED, ids=lambda each: getattr(each, "__name__", ascii(each))
)
def test_what_does_not_fit_is_refused_by_its_name_and_nothing_is_stored(
    pipe: Jobpipe, handler: Callable[..., Any], payload: Any, message: str
) -> None:
    pipe.job("work")(handler)
    with pytest.raises(BadInputError) as caught:
        pipe.enqueue_sync("work", payload)
    assert str(caught.value) == message
    assert pipe.stats_sync().queued == 0


def test_a_request_keeps_the_arguments_as_they_were_passed(pipe: Jobpipe) -> None:
    shrink, mail, hello, tick = (
        pipe.job(resize),
        pipe.job("mail")(send),
        pipe.job(once),
        pipe.job("tick")(lambda: 1),
    )
    assert shrink.request("a").payload == {"path": "a"}
    assert shrink.request("a", 5, crop=True).payload == {"path": "a", "width": 5, "crop": True}
    assert shrink.request(width=5, path="a").payload == {"width": 5, "path": "a"}
    assert (hello.request("you").payload, hello.request().payload, tick.request().payload) == (
        "you",
        None,
        None,
    )
    jobs = run_all(pipe, mail.request(Mail("a"), [Mail("b")]), shrink.request("c"), tick.request())
    assert [job.result for job in jobs] == ["a,b", ["c", 640, False], 1]


def test_wrong_arguments_of_a_request_are_refused_by_their_names(pipe: Jobpipe) -> None:
    shrink: Any = pipe.job(resize)
    wrong: list[tuple[Callable[[], object], str]] = [
        (lambda: shrink.request(), "payload.path is required"),
        (lambda: shrink.request("a", 5, True), "payload takes at most 2 positional arguments, got 3"),
        (
            lambda: shrink.request("a", widht=5),
            "payload.widht is not a known field; did you mean 'width'?",
        ),
        (lambda: shrink.request("a", path="b"), "payload.path is given twice"),
        (lambda: pipe.enqueue_sync(shrink.request(5)), "payload.path must be a string, got a whole number"),
        (
            lambda: pipe.enqueue_many_sync([shrink.request("a"), shrink.request("a", "b")]),
            "jobs[1].payload.width must be a whole number, got a string",
        ),
    ]
    for call, message in wrong:
        with pytest.raises(BadInputError) as caught:
            call()
        assert str(caught.value) == message
    assert pipe.stats_sync().queued == 0


def test_a_request_is_enqueued_with_options(pipe: Jobpipe) -> None:
    shrink = pipe.job("resize", queue="media", max_retries=1)(resize)

    async def scenario() -> None:
        async with pipe:
            receipt = await pipe.enqueue(shrink.request("a"), id="r", delay=60, priority=3)
            job = await pipe.get("r")
            assert (receipt.status, job.queue, job.priority, job.max_retries) == ("scheduled", "media", 3, 1)
            assert not (await pipe.enqueue(shrink.request("a"), id="r", delay=60, priority=3)).is_new
            with pytest.raises(BadInputError, match=r"^payload is part of the request"):
                await pipe.enqueue(shrink.request("a"), "b")
            with pytest.raises(BadInputError, match=r"^priority "):
                await pipe.enqueue(shrink.request("a"), priority=5_000)

    run(scenario())


@pytest.mark.parametrize(
    ("handler", "shown"),
    [(lambda *args: None, r"\*args"), (lambda a, **more: None, r"\*\*more")],
    ids=["args", "options"],
)
def test_parameters_without_names_are_refused_at_the_definition(
    pipe: Jobpipe, handler: Callable[..., Any], shown: str
) -> None:
    with pytest.raises(BadInputError, match=f"must name its parameters.* takes {shown}$"):
        pipe.job("work")(handler)
    assert "work" not in pipe.types


def test_key_and_check_get_the_arguments_as_an_object(pipe: Jobpipe) -> None:
    seen: list[Any] = []
    pipe.job("work", concurrency=1, key=lambda given: given["path"], check=seen.append)(resize)
    pipe.enqueue_sync("work", "a")
    assert {"path": "a"} in seen
    with pytest.raises(BadInputError, match="key"):
        pipe.job("other", concurrency=1, key=lambda given: given["width"])(resize)
        pipe.enqueue_sync("other", "a")
