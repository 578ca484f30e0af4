"""Which ids and names are allowed, and that made ones are UUIDs in the order of time."""

from __future__ import annotations

import string
import uuid
from enum import Enum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobpipe.errors import BadInputError
from jobpipe.model.ids import LONGEST_ID, LONGEST_NAME, check_id, check_name, new_id

FIRST = string.ascii_letters + string.digits
ALLOWED = FIRST + "._:@-"


def test_a_made_id_is_a_uuid_of_version_7_and_allowed() -> None:
    made = new_id()
    assert uuid.UUID(made).version == 7
    assert uuid.UUID(made).variant == uuid.RFC_4122
    assert str(uuid.UUID(made)) == made
    assert check_id(made) == made


def test_made_ids_are_unique() -> None:
    assert len({new_id() for _ in range(10_000)}) == 10_000


def test_made_ids_sort_by_time(monkeypatch: pytest.MonkeyPatch) -> None:
    instants = [0, 1, 1_000, 1_700_000_000_000, 2_000_000_000_000]
    made = []
    for milliseconds in instants:
        monkeypatch.setattr("jobpipe.model.ids.time.time_ns", lambda now=milliseconds: now * 1_000_000)
        made.append(new_id())
    assert made == sorted(made)
    assert [uuid.UUID(each).int >> 80 for each in made] == instants


def test_version_and_variant_stand_whatever_the_random_bits_are(monkeypatch: pytest.MonkeyPatch) -> None:
    for bits in (0, -1):
        monkeypatch.setattr(
            "jobpipe.model.ids.random.getrandbits", lambda length, bits=bits: bits & ((1 << length) - 1)
        )
        assert uuid.UUID(new_id()).version == 7
        assert uuid.UUID(new_id()).variant == uuid.RFC_4122


@given(
    first=st.sampled_from(FIRST),
    rest=st.text(alphabet=ALLOWED, max_size=LONGEST_NAME - 1),
)
def test_names_of_the_allowed_characters_are_taken(first: str, rest: str) -> None:
    assert check_name("type", first + rest) == first + rest


@given(st.text(max_size=30))
def test_a_name_is_taken_only_if_it_consists_of_the_allowed_characters(text: str) -> None:
    is_allowed = bool(text) and text[0] in FIRST and set(text) <= set(ALLOWED)
    if is_allowed:
        assert check_id(text) == text
    else:
        with pytest.raises(BadInputError):
            check_id(text)


WRONG: list[Any] = [
    *("", " ", "a b", "a\n", "\na", "-a", ".a", "_a", ":a", "@a", "a/b", "a\x00", "ä", "a\u0660", "\ud800"),
    *(None, 1, b"a", ["a"], True),
]


@pytest.mark.parametrize("value", WRONG, ids=ascii)
def test_anything_else_is_refused_by_field(value: Any) -> None:
    with pytest.raises(BadInputError, match=r"^queue must be 1 to 100 characters") as caught:
        check_name("queue", value)
    assert caught.value.field == "queue"
    with pytest.raises(BadInputError, match=r"^id must be 1 to 200 characters"):
        check_id(value)


def test_the_longest_id_has_200_characters_and_the_longest_name_100() -> None:
    assert (LONGEST_ID, LONGEST_NAME) == (200, 100)
    assert check_id("a" * 200)
    assert check_name("type", "a" * 100)
    with pytest.raises(BadInputError):
        check_id("a" * 201)
    with pytest.raises(BadInputError):
        check_name("type", "a" * 101)


def test_a_refusal_is_one_short_line_however_long_the_value() -> None:
    with pytest.raises(BadInputError) as caught:
        check_id("x\n" * 100_000)
    assert len(str(caught.value)) < 250
    assert "\n" not in str(caught.value)


def test_a_string_that_is_more_than_one_becomes_a_plain_one() -> None:
    class Queue(str, Enum):  # noqa: UP042 - older programs have such
        MAIL = "mail"

    assert type(check_name("queue", Queue.MAIL)) is str
    assert check_name("queue", Queue.MAIL) == "mail"
    assert type(check_id(Queue.MAIL)) is str
