"""What may be said of a new job, and that every bad_input names its field."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from jobpipe.errors import BadInputError
from jobpipe.model.request import LONGEST_DEADLINE, LONGEST_DELAY, JobRequest, read

NOON = datetime(2030, 1, 2, 12, tzinfo=timezone(timedelta(hours=2)))


def test_an_empty_request_is_one_of_the_default_type_that_says_nothing_else() -> None:
    request = read({})
    assert request == JobRequest()
    assert request.type == "echo"
    assert request.payload is None
    fields = (request.id, request.queue, request.max_retries, request.priority, request.run_at)
    assert {*fields, request.delay, request.deadline} == {UNSET}


def test_every_field_of_the_contract_is_taken() -> None:
    fields = {
        "id": "order-17",
        "type": "email",
        "queue": "mails",
        "payload": {"to": "a@b"},
        "max_retries": 100,
        "priority": -1000,
        "deadline": 0.5,
        "delay": 30,
        "expires_in": 0.5,
        "unique": "report:7",
        "on_duplicate": "replace",
        "max_wait": 60,
        "tags": ["a b", "\u00e9"],
    }
    request = read(fields)
    assert {name: getattr(request, name) for name in fields} == fields


@pytest.mark.parametrize("text", ["2030-01-02T12:00:00+02:00", "2030-01-02T10:00:00Z", NOON])
def test_a_time_with_a_zone_is_taken(text: Any) -> None:
    request = read({"run_at": text})
    assert request.run_at == datetime(2030, 1, 2, 10, tzinfo=UTC)


@given(st.integers(-1000, 1000), st.integers(0, 100), st.floats(0, LONGEST_DELAY))
def test_whatever_is_within_the_bounds_is_taken(priority: int, max_retries: int, delay: float) -> None:
    request = read({"priority": priority, "max_retries": max_retries, "delay": delay})
    assert (request.priority, request.max_retries, request.delay) == (priority, max_retries, delay)


WRONG: list[tuple[str, Any]] = [
    *[("id", value) for value in ("", "a b", "-a", "ä", 1, None, "a" * 201, True)],
    *[("type", value) for value in ("", "a/b", "a" * 101, None, 1)],
    *[("queue", value) for value in ("", "a\x00", "a" * 101, None, 5)],
    *[("max_retries", value) for value in (-1, 101, 1.5, "3", None, True, 2**70)],
    *[("priority", value) for value in (-1001, 1001, 0.5, "0", None, False)],
    *[("delay", value) for value in (-1, LONGEST_DELAY + 1, "1", None, True, float("nan"), float("inf"))],
    *[("deadline", value) for value in (0, -1, LONGEST_DEADLINE + 1, "1", None, float("nan"), float("inf"))],
    *[
        ("run_at", value)
        for value in ("2030-01-02T12:00:00", "tomorrow", "", 17, None, "2030-13-01T00:00:00Z")
    ],
    ("run_at", datetime(2030, 1, 2)),
    *[("expires_at", value) for value in ("2030-01-02T12:00:00", 17, None, "9999-12-31T23:59:59.999999Z")],
    *[("expires_in", value) for value in (-1, LONGEST_DELAY + 1, "1", None, True, float("nan"))],
    *[("unique", value) for value in ("", "a b", "-a", 1, None, "a" * 201)],
    *[("on_duplicate", value) for value in ("drop", "", 1, None, "keep", "replace")],
    *[("max_wait", value) for value in (0, -1, LONGEST_DELAY + 1, "1", None, float("nan"), 5)],
    *[("tags", value) for value in ("a", None, {"a": 1}, ["a"] * 11)],
    ("run_at", "9999-12-31T23:59:59.999999Z"),
    ("run_at", "0001-01-01T00:00:00+14:00"),
]


@pytest.mark.parametrize(("field", "value"), WRONG, ids=ascii)
def test_a_wrong_value_is_refused_by_field(field: str, value: Any) -> None:
    with pytest.raises(BadInputError) as caught:
        read({field: value})
    assert caught.value.field == field
    assert str(caught.value).startswith(f"{field} ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("tag", ["", "a" * 51, 5, None, "a\0", "\ud800"], ids=ascii)
def test_a_wrong_tag_is_refused_by_its_place(tag: Any) -> None:
    with pytest.raises(BadInputError) as caught:
        read({"tags": ["fine", tag]})
    assert caught.value.field == "tags[1]"


def test_an_expiry_is_said_in_one_way() -> None:
    with pytest.raises(BadInputError) as caught:
        read({"expires_in": 5, "expires_at": "2030-01-02T12:00:00Z"})
    assert caught.value.field == "expires_in"


@pytest.mark.parametrize("field", ["colour", "ID", "attempts", "status", "$", "a.b"])
def test_an_unknown_field_is_refused_by_name(field: str) -> None:
    with pytest.raises(BadInputError, match="is not a known field") as caught:
        read({field: 1})
    assert caught.value.field == field


def test_a_misspelt_field_is_told_the_right_one() -> None:
    with pytest.raises(
        BadInputError, match=r"^delays is not a known field; did you mean 'delay'\?$"
    ) as caught:
        read({"delays": 1})
    assert caught.value.field == "delays"


@pytest.mark.parametrize("value", [None, 1, "a", [], [{}], True])
def test_a_request_must_be_an_object(value: Any) -> None:
    with pytest.raises(BadInputError):
        read(value)


def test_delay_and_run_at_exclude_each_other() -> None:
    with pytest.raises(BadInputError, match="exclude each other") as caught:
        read({"delay": 1, "run_at": NOON})
    assert caught.value.field == "delay"


def test_a_complaint_says_where_in_a_batch_it_is() -> None:
    with pytest.raises(BadInputError) as caught:
        read({"priority": 5000}, "jobs[7].")
    assert caught.value.field == "jobs[7].priority"
    with pytest.raises(BadInputError) as caught:
        read({"delay": 1, "run_at": NOON}, "jobs[7].")
    assert caught.value.field == "jobs[7].delay"


@pytest.mark.parametrize("key", ["\ud800", "a\udfff"])
def test_a_lone_surrogate_in_a_key_is_refused(key: str) -> None:
    with pytest.raises(BadInputError, match="lone surrogate") as caught:
        read({key: 1})
    str(caught.value).encode()


def test_a_complaint_shows_little_of_a_long_value() -> None:
    with pytest.raises(BadInputError) as caught:
        read({"id": "x y" * 1_000})
    assert len(str(caught.value)) < 300


@given(st.dictionaries(st.text(max_size=5), st.none() | st.integers() | st.text(max_size=5), max_size=3))
def test_any_object_is_a_request_or_a_complaint_with_a_field(fields: dict[str, Any]) -> None:
    refusals = []
    try:
        read(fields)
    except BadInputError as error:
        refusals.append(error)
    assert all(error.field and str(error).startswith(error.field) for error in refusals)
