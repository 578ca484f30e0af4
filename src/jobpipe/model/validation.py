"""Complaints: what msgspec finds wrong with a value, in words for people, with the field in front.

The words of msgspec are taken apart here and nowhere else; what is not known stays as it is, after `is wrong:`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import date
from typing import Any

import msgspec

from ..errors import BadInputError
from .text import counted, did_you_mean

_PATH = re.compile(r"^(?P<problem>.*?)(?: - at (?P<key>`key` in )?`\$(?P<path>[^`]*)`)?$", re.DOTALL)
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]")
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(.*)`", re.DOTALL)
_SECONDS = frozenset({"delay", "deadline", "every", "expires_in", "max_wait", "timeout"})
"""Fields of the service that are durations."""
_MOST_SHOWN = 60
_MOST_READ = 1_000
"""Characters at the begin, and at the end, of what msgspec says."""
_NOT_KNOWN = object()

_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "a string",
    "bool": "true or false",
    "null": "null",
    "object": "an object",
    "array": "a list",
    "datetime": "a time, such as 2030-01-31T12:00:00Z",
    "date": "a date, such as 2030-01-31",
    "time": "a time of day, such as 12:00:00",
    "duration": "a duration, such as PT90S",
    "decimal": "a decimal number",
    "uuid": "a UUID",
    "bytes": "a base64 string",
}
_BOUNDS = {">=": "{} or more", "<=": "{} or less", ">": "more than {}", "<": "less than {}"}
_PARTS = {"str": "character", "array": "item", "object": "field", "bytes": "byte"}


def bad_input(
    error: msgspec.ValidationError, value: Any, type: Any, where: str = "", *, is_private: bool = False
) -> BadInputError:
    """What msgspec found in a value that was to be of the type; without the value if that is nobody else's business."""
    problem, key, path = _PATH.findall(_cut(str(error)))[0]
    steps = [name or index for name, index in _STEP.findall(path)]
    field = (where.rstrip(".") + path if where.endswith(".") else where + path.lstrip(".")).rstrip(".")
    for pattern, verdict in ((_UNKNOWN, "is not a known field"), (_MISSING, "is required")):
        named = pattern.fullmatch(problem)
        if named:
            hint = did_you_mean(named[1], _field_names(type, steps)) if pattern is _UNKNOWN else ""
            return BadInputError(".".join(filter(None, [field, named[1][:100] or "''"])), verdict + hint)
    found = _NOT_KNOWN if is_private or key else _at(value, steps)
    words = _wanted(problem, "" if is_private else field.rpartition(".")[2], type, steps)
    if words is None:
        return BadInputError(field or "the body", f"is wrong: {_within(problem)}")
    return BadInputError(
        field or "the body", f"{'has a key that ' if key else ''}{words}{_got(found, problem)}"
    )


def _cut(text: str) -> str:
    """Without the middle, where it is long: that is a name from outside, and to look through it takes time."""
    return text if len(text) <= 2 * _MOST_READ else f"{text[:_MOST_READ]}…{text[-_MOST_READ:]}"


def _within(sentence: str) -> str:
    """As it goes on within another; what begins with a shorthand stays."""
    return sentence if sentence[1:2].isupper() else sentence[:1].lower() + sentence[1:]


def _wanted(problem: str, name: str, type: Any, steps: list[str]) -> str | None:
    """What the value must be; None if that is not known."""
    for pattern, words in _PHRASES.items():
        match = re.fullmatch(pattern, problem, re.DOTALL)
        if match:
            return words if isinstance(words, str) else words(match, name)
    if problem.startswith(("Invalid enum value ", "Invalid value ")):
        choices = list(dict.fromkeys(_choices(type, steps)))
        if len(choices) == 1:
            return f"must be {choices[0]!r}"
        return f"must be one of {', '.join(map(str, choices)) or 'the known values'}"
    return None


def _kind(match: re.Match[str], name: str) -> str:
    return f"must be {_kinds(match['kind'], name)}"


def _bound(match: re.Match[str], name: str) -> str:
    shown = match["bound"].removesuffix(".0")
    return f"must be {_kinds(match['kind'], name)}, {_BOUNDS[match['sign']].format(shown)}"


def _length(match: re.Match[str], _: str) -> str:
    least, most = match["least"] or match["atleast"], match["most"] or match["atmost"]
    if least == "1":
        return "must not be empty"
    number = int(least or most or match["last"] or match["exact"])
    words = counted(number, _PARTS.get(match["kind"], "item"))
    if least or most:
        return f"must have at {'least' if least else 'most'} {words}"
    return f"must have {match['exact']} to {words}" if match["last"] else f"must have {words}"


def _kinds(text: str, name: str) -> str:
    """`int | null` is `a whole number or null`."""
    kinds = [_KINDS.get(kind, f"`{kind}`") for kind in text.split(" | ")]
    *others, last = [kind.partition(",")[0] for kind in kinds] if len(kinds) > 1 else kinds
    words = f"{', '.join(others)} or {last}" if others else last
    return words.replace("a number", "a number of seconds") if name in _SECONDS else words


_Words = str | Callable[[re.Match[str], str], str]
_ALLOWED = r"\^\[A-Za-z0-9\]\[A-Za-z0-9\._:@-\]\*\$"
_PHRASES: dict[str, _Words] = {
    r"Expected `(?P<kind>[^`]*)`(?:, got `[^`]*`)?": _kind,
    r"Expected `(?P<kind>int|float|decimal)` (?P<sign>[<>]=?) (?P<bound>[-+.\de]+)": _bound,
    r"Expected `(?P<kind>\w+)` of (?:length >= (?P<least>\d+)|length <= (?P<most>\d+)"
    r"|at least length (?P<atleast>\d+)|at most length (?P<atmost>\d+)"
    r"|length (?P<exact>\d+)(?: to (?P<last>\d+))?)(?:, got \d+)?": _length,
    r"Expected `(?P<kind>\w+)` that's a multiple of (?P<bound>.*)": (
        lambda match, name: f"must be {_kinds(match['kind'], name)}, a multiple of {match['bound']}"
    ),
    rf"Expected `str` matching regex '{_ALLOWED}'": (
        "must consist of A-Z a-z 0-9 . _ : @ -, beginning with a letter or digit"
    ),
    r"Expected `str` matching regex '(?P<pattern>.*)'": (
        lambda match, _: f"must match the pattern {match['pattern']}"
    ),
    r"Expected `(?:datetime|time)` with a timezone component": (
        "must be a time with a zone, such as 2030-01-31T12:00:00Z"
    ),
    r"Expected `(?:datetime|time)` with no timezone component": (
        "must be a time without a zone, such as 2030-01-31T12:00:00"
    ),
    r"Invalid (?:RFC3339 encoded |ISO8601 |epoch )?(datetime|date|time|duration|timestamp)": (
        lambda match, _: f"must be {_KINDS[match[1].replace('timestamp', 'datetime')]}"
    ),
    r"Invalid UUID": "must be a UUID",
    r"Invalid decimal string": "must be a decimal number",
    r"Invalid base64 encoded string": "must be a base64 string",
    r"(?:Integer value|Number) out of range": "must be a number of at most 64 bits",
    r"(?:Timestamp|Duration) is out of range ?": "must be within the years 1 to 9999",
}
"""What msgspec says, and what that means."""


def _field_names(type: Any, steps: list[str]) -> list[str]:
    return [field.encode_name for node in _nodes(type, steps) for field in getattr(node, "fields", ())]


def _nodes(type: Any, steps: list[str]) -> list[Any]:
    """What the type allows at the place."""
    from msgspec import inspect  # Why here: nobody needs it before something is wrong

    nodes = list(_members(inspect.type_info(type)))
    for step in steps:
        nodes = [inner for node in nodes for child in _inside(node, step) for inner in _members(child)]
    return nodes


def _choices(type: Any, steps: list[str]) -> Iterator[Any]:
    """The values that are known at a place of a type, as far as it says so."""
    from msgspec import inspect

    for node in _nodes(type, steps):
        if isinstance(node, inspect.EnumType):
            yield from (each.value for each in node.cls)
        elif isinstance(node, inspect.LiteralType):
            yield from node.values
        elif isinstance(node, inspect.StructType) and node.tag is not None:
            yield node.tag


def _members(node: Any) -> Iterator[Any]:
    """The node, or all that it may be."""
    inner = getattr(node, "types", None) or ([node.type] if hasattr(node, "type") else [])
    if not inner:
        yield node
    for each in inner:
        yield from _members(each)


def _inside(node: Any, step: str) -> Iterator[Any]:
    """What may be there, one step further in."""
    for field in getattr(node, "fields", ()):
        if field.encode_name == step:
            yield field.type
    if getattr(node, "tag_field", None) == step:
        yield node
    if step.isdigit() and hasattr(node, "item_types"):
        yield from node.item_types[int(step) :][:1]
    for name in ("item_type", "value_type"):
        if hasattr(node, name) and not step.isidentifier():
            yield getattr(node, name)


def _at(value: Any, steps: list[str]) -> Any:
    """The value at the place, if it can be told."""
    for step in steps:
        try:
            value = value[int(step)] if step.isdigit() and isinstance(value, list | tuple) else value[step]
        except (KeyError, IndexError, TypeError):
            return _NOT_KNOWN
    return value


def _got(value: Any, problem: str) -> str:
    """What it was instead: the value if it is a plain one, as JSON has it, else what kind of value."""
    if value is _NOT_KNOWN:
        told = re.search(r", got `?(\w+)`?$", problem)
        return f", got {_KINDS.get(told[1], told[1]).partition(',')[0]}" if told else ""
    if isinstance(value, dict | list | tuple):
        kind = "object" if isinstance(value, dict) else "array"
        return f", got {counted(len(value), _PARTS[kind]) if ' length ' in problem else _KINDS[kind]}"
    shown = _plain(value)
    return f", got {shown if len(shown) <= _MOST_SHOWN else f'{shown[:_MOST_SHOWN]}…'}"


def _plain(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | bytes):
        value = value[: _MOST_SHOWN + 1]
    return value.isoformat() if isinstance(value, date) else repr(value)
