"""JSON in and out: what is taken comes back the same, and everything else is refused."""

from __future__ import annotations

import json as stdlib
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobpipe.errors import BadInputError, PayloadTooLargeError
from jobpipe.model.json import DEEPEST, BadJsonError, check_size, encode, fingerprint, parse

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXT, inner, max_size=5)
)


def nested(depth: int, bracket: str = "[") -> bytes:
    opening, closing = ("[", "]") if bracket == "[" else ('{"a":', "}")
    return (opening * depth + "1" + closing * depth).encode()


@given(VALUES)
def test_what_is_encoded_is_parsed_to_the_same(value: Any) -> None:
    assert parse(encode(value)) == value


@given(VALUES)
def test_parse_reads_what_the_standard_library_writes(value: Any) -> None:
    assert parse(stdlib.dumps(value).encode()) == value
    assert parse(stdlib.dumps(value, ensure_ascii=False, indent=1).encode()) == value


@given(st.binary(max_size=200))
def test_any_bytes_are_json_or_refused_and_nothing_else(body: bytes) -> None:
    try:
        value = parse(body)
    except BadJsonError:
        return
    assert value == stdlib.loads(body)


# NUL and lone surrogates


@given(before=TEXT, after=TEXT)
def test_nul_is_refused_in_values_and_keys(before: str, after: str) -> None:
    text = f"{before}\x00{after}"
    for value in (text, {text: 1}, [{"a": [text]}]):
        with pytest.raises(BadInputError, match=r"^payload contains the character NUL"):
            encode(value)


@given(st.integers(0, 6))
def test_a_backslash_before_u0000_is_no_nul(backslashes: int) -> None:
    text = "\\" * backslashes + "u0000"
    assert parse(encode(text)) == text
    with pytest.raises(BadInputError):
        encode("\\" * backslashes + "\x00")


SURROGATES = ["\ud800", "\udbff", "\udc00", "\udfff", "a\ud83d", "\udc00\ud800"]


@pytest.mark.parametrize("surrogate", SURROGATES, ids=ascii)
def test_lone_surrogates_are_refused(surrogate: str) -> None:
    for value in (surrogate, {surrogate: 1}, {"a": [surrogate]}):
        with pytest.raises(BadInputError, match="lone surrogate") as caught:
            encode(value, "result")
        assert caught.value.field == "result"
        str(caught.value).encode()


def test_an_escaped_pair_of_surrogates_is_one_character() -> None:
    assert parse(b'"\\ud83d\\ude00"') == "\U0001f600"
    with pytest.raises(BadInputError):
        encode(parse(b'"\\ud83d"'))


# Depth


@pytest.mark.parametrize("bracket", ["[", "{"])
def test_64_levels_are_taken_and_65_are_not(bracket: str) -> None:
    assert DEEPEST == 64
    value = parse(nested(64, bracket))
    assert parse(encode(value)) == value
    beside = [[], parse(nested(63, bracket))]  # Why: with more brackets than levels, they are counted
    assert parse(encode(beside)) == beside
    with pytest.raises(BadJsonError, match="more than 64 levels"):
        parse(nested(65, bracket))
    with pytest.raises(BadInputError, match=r"^payload has more than 64 levels"):
        encode([value])


def test_ten_thousand_levels_are_refused_without_a_recursion() -> None:
    with pytest.raises(BadJsonError, match="levels"):
        parse(nested(10_000))
    with pytest.raises(BadJsonError, match="levels"):
        parse(b"[" * 100_000)
    value: list[Any] = [None]
    for _ in range(100_000):
        value = [value]
    with pytest.raises(BadInputError, match="levels"):
        encode(value)


def test_more_objects_and_lists_than_memory_should_hold_are_refused() -> None:
    """The fault 28: 16 MB of empty lists would take 400."""
    with pytest.raises(BadJsonError, match="250,000 objects and lists"):
        parse(b"[" + b"[]," * 250_000 + b"1]")
    assert len(parse(b"[" + b"[]," * 249_998 + b"1]")) == 249_999


def test_brackets_side_by_side_or_in_strings_are_no_levels() -> None:
    value = [[[]] * 1_000, "[" * 1_000, '"' + "{" * 1_000, "\\" + "[" * 1_000]
    assert parse(encode(value)) == value


# Numbers


@pytest.mark.parametrize("number", [2**64 - 1, -(2**63), 2**53 + 1, 0, 2**64, 2**70, -(10**40)], ids=ascii)
def test_integers_are_exact_however_large(number: int) -> None:
    assert parse(encode(number)) == number
    assert msgspec.json.decode(encode([number])) == [number]


def test_an_integer_of_5000_digits_is_refused() -> None:
    with pytest.raises(BadInputError, match=r"^payload cannot be written as JSON"):
        encode({"a": 10**5_000})


def test_an_integer_of_a_million_digits_is_refused_at_once() -> None:
    with pytest.raises(BadJsonError, match="too long") as caught:
        parse(b"9" * 1_000_000)
    assert len(str(caught.value)) < 100


@pytest.mark.parametrize("text", [b"NaN", b"Infinity", b"-Infinity", b"[NaN]", b'{"a": NaN}'])
def test_nan_and_infinity_are_no_json(text: bytes) -> None:
    with pytest.raises(BadJsonError, match="is not JSON"):
        parse(text)


@pytest.mark.parametrize("text", [b"1e400", b"-1e400", b"[1e999999]"])
def test_a_number_that_would_become_infinite_is_refused(text: bytes) -> None:
    with pytest.raises(BadJsonError, match="too large"):
        parse(text)


@dataclass
class Reading:
    value: float | None


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_nan_and_infinity_are_refused_rather_than_written_as_null(number: float) -> None:
    for value in (number, [None, number], {"a": {"b": number}}, Reading(number), (number,)):
        with pytest.raises(BadInputError, match=r"^payload contains NaN or infinity"):
            encode(value)


def test_null_itself_is_taken_everywhere() -> None:
    assert encode(None) == b"null"
    assert encode([None, {"a": None}, "null", Reading(None)]) == b'[null,{"a":null},"null",{"value":null}]'


# Keys


@pytest.mark.parametrize("text", [b'{"a":1,"a":1}', b'[{"b":{"a":1,"c":2,"a":3}}]', b'{"a":1,"\\u0061":2}'])
def test_a_key_that_is_there_twice_is_refused_and_named(text: bytes) -> None:
    with pytest.raises(BadJsonError, match="the key 'a' appears twice"):
        parse(text)


# What is no JSON


@pytest.mark.parametrize(
    "body", [b"", b" ", b"{", b"{'a':1}", b"[1,]", b"01", b"1 2", b"nul", b'"\n"', b"\xff", b'"\xed\xa0\x80"']
)
def test_what_is_no_json_is_refused(body: bytes) -> None:
    with pytest.raises(BadJsonError, match="the body is not"):
        parse(body)


@pytest.mark.parametrize("value", [object, 1j, {(1, 2): 3}, Ellipsis, len], ids=ascii)
def test_what_cannot_be_json_is_refused_by_field(value: Any) -> None:
    with pytest.raises(BadInputError, match=r"^result cannot be written as JSON"):
        encode(value, "result")


# Size and sameness


def test_a_payload_of_exactly_the_limit_is_taken() -> None:
    raw = encode("x" * 8)
    check_size(raw, 10)
    with pytest.raises(PayloadTooLargeError, match="10 bytes as JSON, the limit is 9"):
        check_size(raw, 9)


@given(st.dictionaries(TEXT, VALUES, max_size=6), st.randoms(use_true_random=False))
def test_the_order_of_keys_makes_no_other_content(value: dict[str, Any], random: Any) -> None:
    items = list(value.items())
    random.shuffle(items)
    assert fingerprint(encode(value), "echo", 3) == fingerprint(encode(dict(items)), "echo", 3)


@given(VALUES, VALUES)
def test_other_content_has_another_fingerprint(first: Any, second: Any) -> None:
    is_same = stdlib.dumps(first, sort_keys=True) == stdlib.dumps(second, sort_keys=True)
    assert (fingerprint(encode(first)) == fingerprint(encode(second))) == is_same


def test_every_field_counts_for_the_fingerprint() -> None:
    raw = encode({"a": 1})
    assert len({fingerprint(raw), fingerprint(raw, 1), fingerprint(raw, "1"), fingerprint(raw, None, 1)}) == 4
