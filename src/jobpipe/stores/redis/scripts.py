"""The scripts, one file each in `lua/`, read once: before each of them stands what it uses of what they share.

A script that begins with `-- with NAME.lua` may use that file, too. The places of a record's fields and the legal
moves are written here from the values that define them, so that neither is said twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from functools import cache
from hashlib import sha1
from pathlib import Path

from msgspec import Struct

from ...model.durable import MOST_SIGNALS
from ...model.gate import INSURANCE, LEAD, MOST_PASSED_OVER
from ...model.job import FINISHED, KEPT_HISTORY, PENDING, TRANSITIONS
from ...model.logs import MOST_OF_ATTEMPT, MOST_OF_JOB
from ...model.unique import CANCELLING, FATES
from .records import Record

HERE = Path(__file__).parent / "lua"
KEPT_EVENTS = 10_000
MOST_DUE = 500
"""Jobs that one call queues because they came due; the rest of them is for the next call."""
_BEFORE = ("prelude", "moves", "flush")
"""What every script may use."""
_LOCAL = re.compile(r"^(?=local )", re.MULTILINE)
_NAMES = re.compile(r"local (?:function )?([\w, ]+)")
_COMMENT = re.compile(r"--.*")
_WORD = re.compile(r"[A-Za-z_]\w*")
_PART = re.compile(r"^-- with (\w+)\.lua$", re.MULTILINE)


class Script(Struct, frozen=True):
    """A script and the name under which the server knows it."""

    name: str
    text: str
    sha: str


@cache
def script(name: str) -> Script:
    """The script of a verb."""
    own = _read(name)
    shared = "\n".join([_definitions(), *map(_read, [*_BEFORE, *_PART.findall(own)])])
    text = f"{_used(shared, own)}\n{own}"
    return Script(name, text, sha1(text.encode(), usedforsecurity=False).hexdigest())


def names() -> list[str]:
    """Of all scripts that are a verb's."""
    parts = {part for path in HERE.glob("*.lua") for part in _PART.findall(path.read_text(encoding="utf-8"))}
    return sorted({path.stem for path in HERE.glob("*.lua")} - parts - {*_BEFORE})


def _used(shared: str, own: str) -> str:
    """The definitions that a script uses. Why not all: the server would make all of them anew with every call."""
    words, used = _words(own), []
    # Why from the last: each uses only those before it.
    for definition in reversed(_LOCAL.split(shared)):
        found = _NAMES.match(definition)
        if found and not words.isdisjoint(_WORD.findall(found[1])):
            words |= _words(definition)
            used.append(definition)
    return "".join(reversed(used))


def _words(text: str) -> set[str]:
    return set(_WORD.findall(_COMMENT.sub("", text)))


def _read(name: str) -> str:
    return (HERE / f"{name}.lua").read_text(encoding="utf-8")


def _set_of(words: Iterable[StrEnum]) -> str:
    return f"{{ {', '.join(f'{word} = true' for word in sorted(words))} }}"


@cache
def _definitions() -> str:
    """What the scripts share with Python."""
    fields = [name.upper() for name in Record.__struct_fields__]
    moves = (
        f"{status} = {{ {', '.join(f'[{move.value!r}] = {new.value!r}' for move, new in moves.items())} }}"
        for status, moves in TRANSITIONS.items()
    )
    second = (f"{asked} = '{fate}'" for (asked, waits), fate in FATES.items() if waits)
    lines = [
        f"local {', '.join(fields)} = {', '.join(str(place) for place in range(1, len(fields) + 1))}",
        f"local NEXT = {{ {', '.join(moves)} }}",
        f"local FINISHED, PENDING = {_set_of(FINISHED)}, {_set_of(PENDING)}",
        f"local SECOND, CANCELLING = {{ {', '.join(second)} }}, {_set_of(CANCELLING)}",
        f"local KEPT_HISTORY, KEPT_EVENTS, MOST_DUE = {KEPT_HISTORY}, {KEPT_EVENTS}, {MOST_DUE}",
        f"local MOST_OF_ATTEMPT, MOST_OF_JOB, MOST_SIGNALS = {MOST_OF_ATTEMPT}, {MOST_OF_JOB}, {MOST_SIGNALS}",
        f"local LEAD, INSURANCE, MOST_PASSED_OVER = {LEAD!r}, {INSURANCE!r}, {MOST_PASSED_OVER}",
    ]
    return "\n".join(lines)
