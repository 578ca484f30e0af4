"""What JSON the service takes: strictly parsed, without NUL and lone surrogates, as bytes in one spelling.

`parse` reads what came from outside; `encode` writes what a program gave; `fingerprint` tells whether two
jobs were sent with the same content.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b
from math import isfinite
from typing import Any

import msgspec

from ..errors import BadInputError, PayloadTooLargeError

DEEPEST = 64
"""Levels of nesting."""
MOST_RESULT = 1_048_576
"""Bytes of the result of a job."""
MOST_PARTS = 250_000
"""Objects and lists in one value: each takes some twenty times its bytes in memory."""

_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")


def _dump(value: Any) -> Any:
    """What msgspec does not know, as plain values: models of pydantic, which need not be installed."""
    if isinstance(value, type) or not hasattr(value, "model_dump"):
        raise NotImplementedError(f"Encoding objects of type {type(value).__name__} is unsupported")
    return value.model_dump(mode="json", by_alias=True)


_encode = msgspec.json.Encoder(enc_hook=_dump).encode
_encode_sorted = msgspec.json.Encoder(order="deterministic").encode


class BadJsonError(ValueError):
    """Not JSON, or such as this service does not take."""


def parse(body: bytes) -> Any:
    """The value; BadJsonError for no JSON, duplicate keys, NaN, or too many levels."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadJsonError(f"the body is not UTF-8: {error.reason} at byte {error.start}") from None
    if body.count(b"[") + body.count(b"{") > DEEPEST:
        _check_depth(text)
    try:
        return _decode(text)
    except json.JSONDecodeError as error:
        raise BadJsonError(f"the body is not JSON: {error.msg} at character {error.pos}") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise BadJsonError(f"the key {twice[:100]!r} appears twice")
    return found


def _no_constant(name: str) -> Any:
    raise BadJsonError(f"{name} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise BadJsonError(f"the number {text[:40]} is too large")
    return number


def _integer(text: str) -> int:
    if len(text) > 300:
        raise BadJsonError(f"the number {text[:40]}… is too long")
    return int(text)


_decode = json.JSONDecoder(
    object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite, parse_int=_integer
).decode

_NEXT_BRACKET = re.compile(r'(?:[^"\[\]{}]++|"(?:[^"\\]++|\\.)*+"?)*+([\[\]{}]|\Z)', re.DOTALL)
"""Skips strings. Why possessive: with a way back, a long string takes a hundred times its size in memory."""


def _check_depth(text: str) -> None:
    depth = count = 0
    for found in _NEXT_BRACKET.finditer(text):
        if found[1] in ("[", "{"):
            depth += 1
            count += 1
        else:
            depth -= 1
        if depth > DEEPEST:
            raise BadJsonError(f"the body has more than {DEEPEST} levels")
        if count > MOST_PARTS:
            raise BadJsonError(f"the body has more than {MOST_PARTS:,} objects and lists")


def encode(value: Any, field: str = "payload") -> bytes:
    """The value as JSON; BadInputError naming the field for what JSON, or a store, cannot hold."""
    try:
        raw = _encode(value)
    except UnicodeEncodeError:
        raise BadInputError(field, "contains a lone surrogate, which is not a character") from None
    except RecursionError:
        raise BadInputError(field, f"has more than {DEEPEST} levels") from None
    except (TypeError, ValueError, OverflowError, NotImplementedError) as error:
        raise BadInputError(field, f"cannot be written as JSON: {error}") from None
    check(raw, field)
    if value is not None and b"null" in raw and not _is_finite(msgspec.to_builtins(value, enc_hook=_dump)):
        raise BadInputError(field, "contains NaN or infinity, which are not JSON")
    return raw


def _is_finite(value: Any) -> bool:
    """No NaN and no infinity in it? Why asked: the encoder writes them as null."""
    if isinstance(value, dict):
        return all(map(_is_finite, value.values()))
    if isinstance(value, list | tuple | set | frozenset):
        return all(map(_is_finite, value))
    return not isinstance(value, float) or isfinite(value)


def check(raw: bytes, field: str = "payload") -> None:
    """BadInputError if JSON from our own encoder holds NUL, or is too deep."""
    if b"\\u0000" in raw and _NUL.search(raw):
        raise BadInputError(field, "contains the character NUL, which not every store can keep")
    if raw.count(b"[") + raw.count(b"{") > DEEPEST:
        try:
            _check_depth(raw.decode())
        except BadJsonError:
            raise BadInputError(field, f"has more than {DEEPEST} levels") from None


def encode_result(value: Any) -> bytes:
    """What a handler returned, as JSON; BadInputError for what is none, or is too much."""
    raw = encode(value, "result")
    if len(raw) > MOST_RESULT:
        raise BadInputError(
            "result", f"takes {len(raw):,} bytes as JSON, {MOST_RESULT:,} are allowed: store it elsewhere"
        )
    return raw


def check_size(raw: bytes, limit: int) -> None:
    """PayloadTooLargeError if it is longer than that."""
    if len(raw) > limit:
        raise PayloadTooLargeError(len(raw), limit)


def fingerprint(payload: bytes, *rest: object) -> str:
    """A digest of the content: the same for the same JSON value, however its keys were ordered."""
    return fingerprints(payload, rest)[0]


def fingerprints(payload: bytes, *contents: Sequence[object]) -> list[str]:
    """The digests of one payload with each of these contents beside it."""
    sorted_payload = _encode_sorted(msgspec.json.decode(payload)) if payload[:1] in b"[{" else payload
    return [blake2b(sorted_payload + _encode(rest), digest_size=16).hexdigest() for rest in contents]
