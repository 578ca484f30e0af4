"""Handlers of every kind: what their annotation says is checked at the enqueue, and made of the stored JSON again."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import msgspec
import pytest

from jobpipe import BadInputError, Job, Jobpipe, JobStatus
from jobpipe.jobtypes.jobtype import JobType

from ...support.jobs import finished
from ...support.waiting import run

if TYPE_CHECKING:
    from nowhere import Missing  # type: ignore[import-not-found]

pytestmark = pytest.mark.usefixtures("away_from_home")


@dataclass
class Mail:
    to: str
    copies: list[str] = field(default_factory=list)


class Order(TypedDict):
    number: int
    at: datetime


class Point(msgspec.Struct):
    x: float
    y: float = 0.0


@pytest.fixture
def pipe() -> Jobpipe:
    return Jobpipe("memory://")


def run_one(pipe: Jobpipe, type: str, payload: Any = None, **options: Any) -> Job:
    """Enqueue a job, run it, and return what became of it."""

    async def scenario() -> Job:
        async with pipe, pipe.running():
            receipt = await pipe.enqueue(type, payload, **options)
            return await finished(pipe, receipt.id)

    return run(scenario())


# What a handler takes


def test_a_dataclass_arrives_as_one(pipe: Jobpipe) -> None:
    @pipe.job("mail")
    async def send(mail: Mail) -> Mail:
        assert isinstance(mail, Mail)
        return Mail(mail.to, ["sent"])

    job = run_one(pipe, "mail", Mail("a@b"))
    assert job.payload == {"to": "a@b", "copies": []}
    assert job.result == {"to": "a@b", "copies": ["sent"]}


def test_a_typed_dict_arrives_with_its_values_made(pipe: Jobpipe) -> None:
    @pipe.job("order")
    def take(order: Order) -> str:
        return f"{order['number']} in {order['at'].year}"

    assert run_one(pipe, "order", Order(number=7, at=datetime(2030, 1, 2, tzinfo=UTC))).result == "7 in 2030"


def test_a_struct_arrives_as_one(pipe: Jobpipe) -> None:
    @pipe.job("point")
    def flip(point: Point) -> Point:
        return Point(point.y, point.x)

    assert run_one(pipe, "point", {"x": 1}).result == {"x": 0.0, "y": 1.0}


@pytest.mark.parametrize("payload", [None, True, 3, 2.5, "text", [1, [2]], {"a": {"b": None}}], ids=ascii)
def test_plain_json_arrives_as_it_is(pipe: Jobpipe, payload: Any) -> None:
    @pipe.job("plain")
    async def handle(payload):  # type: ignore[no-untyped-def]
        return [payload]

    assert run_one(pipe, "plain", payload).result == [payload]


def test_a_handler_without_an_argument_gets_none(pipe: Jobpipe) -> None:
    @pipe.job("tick")
    async def tick() -> str:
        return "tock"

    @pipe.job("tick.sync")
    def tick_sync() -> str:
        return "tock"

    assert run_one(pipe, "tick").result == "tock"
    assert run_one(pipe, "tick.sync", {"ignored": True}).result == "tock"


def test_a_default_may_stand_behind_the_payload(pipe: Jobpipe) -> None:
    @pipe.job("add")
    def add(number: int, more: int = 10) -> int:
        return number + more

    assert run_one(pipe, "add", 1).result == 11


def test_a_bound_method_and_a_callable_object_are_handlers_too(pipe: Jobpipe) -> None:
    class Counter:
        async def __call__(self, number: int) -> int:
            return number + 1

        def add(self, number: int) -> int:
            return number + 2

    pipe.job("object")(Counter())
    pipe.job("method")(Counter().add)
    pipe.job("partial")(functools.partial(Counter().add))
    assert run_one(pipe, "object", 1).result == 2
    assert run_one(pipe, "method", 1).result == 3
    assert run_one(pipe, "partial", 1).result == 3


def test_the_function_itself_can_still_be_called(pipe: Jobpipe) -> None:
    @pipe.job
    def double(number: int) -> int:
        """Twice as much."""
        return 2 * number

    assert isinstance(double, JobType)
    assert double(4) == 8
    assert (double.name, double.__name__, double.__doc__) == ("double", "double", "Twice as much.")
    assert repr(double) == "<job type 'double'>"


def test_an_annotation_with_bounds_is_kept(pipe: Jobpipe) -> None:
    @pipe.job("share")
    def share(value: Annotated[float, msgspec.Meta(ge=0, le=1)]) -> float:
        return value

    assert share.decode(b"0.5") == 0.5
    with pytest.raises(BadInputError, match=r"^payload must be a number, 1 or less$"):
        share.encode(1.5)


# What does not fit


WRONG: list[tuple[Any, str]] = [
    ({"to": 5}, "payload.to"),
    ({}, "payload.to"),
    ({"to": "a", "copies": ["b", 5]}, r"payload.copies\[1\]"),
    ("a@b", "payload"),
    (None, "payload"),
]


@pytest.mark.parametrize(("payload", "where"), WRONG, ids=ascii)
def test_a_payload_that_does_not_fit_is_refused_where_it_is_put_in(
    pipe: Jobpipe, payload: Any, where: str
) -> None:
    @pipe.job("mail")
    async def send(mail: Mail) -> None: ...

    async def scenario() -> None:
        async with pipe:
            with pytest.raises(BadInputError, match=rf"^{where} ") as caught:
                await send.enqueue(payload)
            assert caught.value.field == where.replace("\\", "")
            assert (await pipe.stats()).queued == 0

    run(scenario())


def test_a_stored_payload_that_fits_no_more_fails_without_a_retry(sqlite_url: str) -> None:
    """As after a change of the program."""

    async def scenario() -> None:
        old = Jobpipe(sqlite_url)
        async with old:
            await old.enqueue("mail", {"recipient": "a@b"}, id="m")
        new = Jobpipe(sqlite_url)

        @new.job("mail")
        async def send(mail: Mail) -> None: ...

        async with new, new.running():
            job = await finished(new, "m")
        assert (job.status, job.attempts) == (JobStatus.FAILED, 1)
        assert job.error is not None
        assert job.error.type == "BadInputError"
        assert job.error.message.startswith("payload.to is required")

    run(scenario())


class Opaque:
    def __init__(self, value: int) -> None: ...


def test_an_annotation_that_json_cannot_be_made_into_is_refused_at_the_definition(pipe: Jobpipe) -> None:
    def takes_a_set(value: dict[tuple[int, ...], Point] | dict[str, Mail]) -> None: ...

    with pytest.raises(
        BadInputError, match=r"^the payload of 'takes_a_set' has a type that is not supported"
    ):
        pipe.job(takes_a_set)
    assert "takes_a_set" not in pipe.types


def test_a_class_that_json_cannot_be_made_into_is_refused_at_the_definition(pipe: Jobpipe) -> None:
    for annotation in (Opaque, Path):

        def takes(value: Any) -> None: ...

        takes.__annotations__["value"] = annotation
        with pytest.raises(BadInputError, match=r"^the payload of 'takes' has a type that is not supported"):
            pipe.job(takes)


def test_an_annotation_that_cannot_be_resolved_is_refused_at_the_definition(pipe: Jobpipe) -> None:
    async def lost(value: Missing) -> None: ...

    with pytest.raises(BadInputError, match="Missing"):
        pipe.job(lost)


def test_only_the_annotation_of_the_payload_matters(pipe: Jobpipe) -> None:
    async def found(value: int) -> Missing:
        return [value]

    pipe.job(found)
    assert run_one(pipe, "found", 1).result == [1]
    with pytest.raises(BadInputError):
        pipe.types["found"].encode("one")


@pytest.mark.parametrize(
    "handler",
    [
        lambda *args: None,
        lambda a, **options: None,
        5,
        None,
    ],
    ids=["any", "any by name", "number", "nothing"],
)
def test_what_cannot_be_called_with_a_payload_is_refused(pipe: Jobpipe, handler: Any) -> None:
    with pytest.raises(BadInputError):
        pipe.job("wrong")(handler)
    assert "wrong" not in pipe.types


def test_generator_functions_are_refused(pipe: Jobpipe) -> None:
    def stream(payload: Any) -> Any:
        yield payload

    async def astream(payload: Any) -> Any:
        yield payload

    for handler in (stream, astream):
        with pytest.raises(BadInputError, match="generator"):
            pipe.job(handler)


# Names and defaults


def test_a_name_can_be_taken_only_once(pipe: Jobpipe) -> None:
    @pipe.job("mine")
    def first() -> None: ...

    with pytest.raises(BadInputError, match="'mine' is taken"):

        @pipe.job("mine")
        def second() -> None: ...


def test_a_built_in_type_may_be_replaced_once(pipe: Jobpipe) -> None:
    @pipe.job
    async def echo(payload: Any) -> Any:
        return {"own": payload}

    assert run_one(pipe, "echo", 1).result == {"own": 1}
    with pytest.raises(BadInputError):
        pipe.job(echo.__wrapped__)


WRONG_DEFAULTS: list[tuple[str, Any]] = [
    *[("queue", value) for value in ("", "a b", "a\n", None)],
    *[("max_retries", value) for value in (-1, 101, None)],
    *[("priority", value) for value in (1001, 1.5)],
    *[("deadline", value) for value in (0, -1, 86_401)],
    *[("base", -1), ("cap", "1"), ("jitter", None)],
]


@pytest.mark.parametrize(("name", "value"), WRONG_DEFAULTS, ids=ascii)
def test_a_wrong_default_is_refused_at_the_definition(pipe: Jobpipe, name: str, value: Any) -> None:
    with pytest.raises(BadInputError) as caught:
        pipe.job("mine", **{name: value})
    assert caught.value.field == name


@pytest.mark.parametrize("name", ["a b", "ä", "-a", "a" * 101, "a\n"])
def test_a_wrong_name_is_refused_at_the_definition(pipe: Jobpipe, name: str) -> None:
    with pytest.raises(BadInputError, match="the name of the job type"):
        pipe.job(name)(lambda: None)
    with pytest.raises(BadInputError, match="the name of the job type"):
        pipe.job(lambda: None)  # "<lambda>"


def test_the_defaults_of_a_type_hold_for_its_jobs_unless_the_caller_says_otherwise(pipe: Jobpipe) -> None:
    @pipe.job("slow", queue="heavy", max_retries=7, priority=-5, deadline=60)
    async def slow() -> None: ...

    async def scenario() -> None:
        async with pipe:
            plain = await pipe.get((await slow.enqueue()).id)
            assert (plain.queue, plain.max_retries, plain.priority, plain.deadline) == ("heavy", 7, -5, 60)
            receipt = await slow.enqueue(queue="light", max_retries=0, priority=0, deadline=1.5)
            own = await pipe.get(receipt.id)
            assert (own.queue, own.max_retries, own.priority, own.deadline) == ("light", 0, 0, 1.5)

    run(scenario())


def test_a_type_enqueues_many_at_once_from_a_loop_and_without(pipe: Jobpipe) -> None:
    @pipe.job
    async def each(number: int) -> int:
        return number

    assert len(each.enqueue_many_sync([1, 2])) == 2
    assert each.enqueue_sync(3, id="three").id == "three"
    with pytest.raises(BadInputError, match=r"^jobs\[1\]\.payload"):
        each.enqueue_many_sync([1, "two"])  # type: ignore[list-item]

    async def scenario() -> None:
        async with pipe:
            assert len(await each.enqueue_many([4, 5])) == 2
            assert await each.enqueue_many([]) == []
            assert (await pipe.stats()).queued == 5

    run(scenario())
