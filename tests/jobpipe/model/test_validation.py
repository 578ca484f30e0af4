"""What is wrong with a value is said in words for people: none of them is msgspec's."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from time import thread_time
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
import pytest
from msgspec import Meta, Struct

from jobpipe.errors import BadInputError
from jobpipe.gateway.timetable import ScheduleRequest
from jobpipe.model.request import read
from jobpipe.model.validation import bad_input
from jobpipe.web.query import JobsQuery, WaitQuery, read_query

Short = Annotated[str, Meta(min_length=2, max_length=3)]


class Size(Enum):
    SMALL = "small"
    LARGE = "large"


class Cat(Struct, tag="cat"):
    lives: int = 9


class Dog(Struct, tag="dog"):
    lives: int = 1


class Inner(Struct):
    size: Size
    sizes: list[Size] = []
    by_name: dict[str, Literal["a", "b"]] = {}
    pet: Cat | Dog | None = None


def problem(value: Any, type: Any, *, is_private: bool = False, strict: bool = True) -> str:
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.convert(value, type, strict=strict)
    return str(bad_input(caught.value, value, type, "it.", is_private=is_private))


def told(value: Any, type: Any) -> tuple[str, str]:
    return problem(value, type), problem(value, type, is_private=True)


REQUESTS: list[tuple[dict[str, Any], str]] = [
    ({"delay": -1}, "delay must be a number of seconds, 0 or more, got -1"),
    ({"delay": 316224001}, "delay must be a number of seconds, 316224000 or less, got 316224001"),
    ({"deadline": 0}, "deadline must be a number of seconds, more than 0, got 0"),
    ({"delay": "soon"}, "delay must be a number of seconds, got 'soon'"),
    ({"max_retries": 101}, "max_retries must be a whole number, 100 or less, got 101"),
    ({"max_retries": 1.5}, "max_retries must be a whole number, got 1.5"),
    ({"priority": None}, "priority must be a whole number, got null"),
    ({"priority": True}, "priority must be a whole number, got true"),
    ({"priority": 2**70}, "priority must be a whole number, 1000 or less, got 1180591620717411303424"),
    ({"id": ""}, "id must not be empty, got ''"),
    ({"type": 5}, "type must be a string, got 5"),
    ({"type": {"a": 1}}, "type must be a string, got an object"),
    ({"queue": ["a"]}, "queue must be a string, got a list"),
    (
        {"queue": "a b"},
        "queue must consist of A-Z a-z 0-9 . _ : @ -, beginning with a letter or digit, got 'a b'",
    ),
    ({"run_at": "tomorrow"}, "run_at must be a time, such as 2030-01-31T12:00:00Z, got 'tomorrow'"),
    (
        {"run_at": "2030-01-31T12:00:00"},
        "run_at must be a time with a zone, such as 2030-01-31T12:00:00Z, got '2030-01-31T12:00:00'",
    ),
    (
        {"run_at": datetime(2030, 1, 31)},
        "run_at must be a time with a zone, such as 2030-01-31T12:00:00Z, got 2030-01-31T00:00:00",
    ),
]


@pytest.mark.parametrize(("fields", "text"), REQUESTS, ids=ascii)
def test_a_wrong_field_of_a_job_is_told_in_words(fields: dict[str, Any], text: str) -> None:
    with pytest.raises(BadInputError) as caught:
        read(fields)
    assert str(caught.value) == text


def test_a_long_name_is_told_by_how_long_it_may_be() -> None:
    with pytest.raises(BadInputError, match=r"^id must have at most 200 characters, got 'aaaa"):
        read({"id": "a" * 201})


def test_what_is_no_object_is_told_as_what_it_is() -> None:
    with pytest.raises(BadInputError, match=r"^the body must be an object, got a list$"):
        read([])


@pytest.mark.parametrize(
    ("query", "type", "text"),
    [
        (b"limit=x", JobsQuery, "limit must be a whole number, got 'x'"),
        (b"limit=0", JobsQuery, "limit must be a whole number, 1 or more, got '0'"),
        (
            b"status=odd",
            JobsQuery,
            "status must be one of scheduled, waiting, queued, running, done, failed, cancelled, expired, got 'odd'",
        ),
        (b"timeout=-1", WaitQuery, "timeout must be a number of seconds, 0 or more, got '-1'"),
    ],
)
def test_a_wrong_query_is_told_in_words(query: bytes, type: type[Any], text: str) -> None:
    with pytest.raises(BadInputError) as caught:
        read_query(query, type)
    assert str(caught.value) == text


VALUES: list[tuple[Any, Any, str, str]] = [
    ("x", int, "must be a whole number", "got a string"),
    (1.5, int | str | None, "must be a whole number, a string or null", "got a number"),
    (5, bool, "must be true or false", "got a whole number"),
    (5, list[int], "must be a list", "got a whole number"),
    (5, dict[str, int], "must be an object", "got a whole number"),
    ("x", Short, "must have at least 2 characters", ""),
    ("xxxx", Short, "must have at most 3 characters", ""),
    ([], Annotated[list[int], Meta(min_length=1)], "must not be empty", ""),
    ([1, 2], Annotated[list[int], Meta(max_length=1)], "must have at most 1 item", ""),
    ([1, 2, 3], tuple[int, int], "must have 2 items", "got 3"),
    (5, datetime | None, "must be a time or null", "got a whole number"),
    (2**54, Annotated[int, Meta(le=2**53 + 1)], f"must be a whole number, {2**53 + 1} or less", ""),
    ({}, Annotated[dict[str, int], Meta(min_length=2)], "must have at least 2 fields", ""),
    (3, Annotated[int, Meta(multiple_of=2)], "must be a whole number, a multiple of 2", ""),
    (2.5, Annotated[float, Meta(lt=0.5)], "must be a number, less than 0.5", ""),
    ("x", Annotated[str, Meta(pattern="^y$")], "must match the pattern ^y$", ""),
    ("x", datetime, "must be a time, such as 2030-01-31T12:00:00Z", ""),
    ("x", date, "must be a date, such as 2030-01-31", ""),
    ("x", time, "must be a time of day, such as 12:00:00", ""),
    ("x", timedelta, "must be a duration, such as PT90S", ""),
    (
        "2030-01-31T12:00:00Z",
        Annotated[datetime, Meta(tz=False)],
        "must be a time without a zone, such as 2030-01-31T12:00:00",
        "",
    ),
    ("x", UUID, "must be a UUID", ""),
    ("x", Decimal, "must be a decimal number", ""),
    ("x", bytes, "must be a base64 string", ""),
    ("huge", Size, "must be one of small, large", ""),
    ("c", Literal["a", "b"], "must be one of a, b", ""),
    ("c", Literal["a"], "must be 'a'", ""),
    ({"type": "cow"}, Cat | Dog, "must be one of cat, dog", ""),
]


@pytest.mark.parametrize(("value", "type", "wanted", "got"), VALUES, ids=ascii)
def test_every_kind_of_complaint_is_in_words_and_shows_a_private_value_to_nobody(
    value: Any, type: Any, wanted: str, got: str
) -> None:
    shown, hidden = told(value, type)
    assert f" {wanted}" in shown
    assert ", got " in shown
    assert hidden in (f"it {wanted}{got and ', '}{got}", f"it.type {wanted}")
    for words in (shown, hidden):
        assert "xpected" not in words
        assert "`" not in words
        assert "is wrong" not in words


def test_a_private_value_that_looks_like_a_place_is_shown_to_nobody() -> None:
    _, hidden = told("s3cret - at `$.evil`", Size)
    assert hidden == "it must be one of small, large"


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ({"size": "huge"}, "it.size must be one of small, large"),
        ({"size": "small", "sizes": ["large", "huge"]}, "it.sizes[1] must be one of small, large"),
        ({"size": "small", "by_name": {"x": "c"}}, "it.by_name[...] must be one of a, b"),
        ({"size": "small", "pet": {"type": "cow"}}, "it.pet.type must be one of cat, dog"),
    ],
    ids=ascii,
)
def test_the_known_values_are_found_wherever_they_are_in_a_model(value: Any, place: str) -> None:
    assert problem(value, Inner).startswith(place)
    assert problem(value, Inner, is_private=True) == place


def test_a_wrong_key_is_told_as_one() -> None:
    assert (
        problem({"x": 1}, dict[int, int], strict=False)
        == "it has a key that must be a whole number, got a string"
    )
    assert problem({"a": {"x": 1}}, dict[str, dict[int, int]]).startswith(
        "it[...] has a key that must be a whole"
    )


def test_the_words_of_a_model_are_kept() -> None:
    class Even(Struct):
        number: int

        def __post_init__(self) -> None:
            if self.number % 2:
                raise ValueError("Odd numbers are not for us")

    assert problem({"number": 3}, Even) == "it is wrong: odd numbers are not for us"


def test_what_becomes_of_missed_ticks_is_told_with_the_choices() -> None:
    value = {"type": "echo", "every": 60, "missed": "all"}
    assert problem(value, ScheduleRequest) == "it.missed must be one of one, none, got 'all'"


@pytest.mark.parametrize(
    "value",
    [{"x" * 16_000_000: 1}, {"id": "x" * 16_000_000}, {"max_retries": "9" * 16_000_000}],
    ids=["name", "id", "value"],
)
def test_what_is_long_is_cut_before_it_is_looked_at(value: dict[str, Any]) -> None:
    """Fault 40: a field name of 16 MB took seconds to be looked through."""
    began = thread_time()
    with pytest.raises(BadInputError) as error:
        read(value)
    assert len(str(error.value)) < 500
    assert thread_time() - began < 0.5
