"""Ids and names: which are allowed, how lists of names are read, and how an id is made (UUID version 7, so that ids
sort by time)."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Iterable

from ..errors import BadInputError

LONGEST_ID = 200
LONGEST_NAME = 100
MOST_SLOTS = 10_000
"""Of one queue in one process."""
_ALLOWED = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]*", re.ASCII)

_VERSION = 7 << 76
_VARIANT = 2 << 62
_RANDOM = (1 << 76) - 1 - (0b11 << 62)
"""The 74 bits beside version and variant."""


def new_id() -> str:
    """A UUID of version 7."""
    milliseconds = time.time_ns() // 1_000_000
    # Why not the system's own: an id is no secret, and Python seeds its generator anew after a fork.
    noise = random.getrandbits(76) & _RANDOM
    text = f"{milliseconds << 80 | _VERSION | _VARIANT | noise:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def check_id(value: object, field: str = "id") -> str:
    """The id of a job, or what is named like one; BadInputError naming the field."""
    return _check(field, value, LONGEST_ID)


def check_text(field: str, value: object) -> str:
    """What names something that is there, or is not: any text will do; BadInputError for what is none."""
    if isinstance(value, str):
        return value
    raise BadInputError(field, f"must be a string, got {value!r}")


def check_name(field: str, value: object) -> str:
    """The name of a type or a queue, or BadInputError naming the field."""
    return _check(field, value, LONGEST_NAME)


def _check(field: str, value: object, longest: int) -> str:
    if isinstance(value, str) and len(value) <= longest and _ALLOWED.fullmatch(value):
        # Why: no encoder takes a string that is more than one, such as a member of an enumeration.
        return value if type(value) is str else str.__str__(value)
    shown = f"{value[:40]!r}…" if isinstance(value, str) and len(value) > 40 else repr(value)
    raise BadInputError(
        field,
        f"must be 1 to {longest} characters of A-Z a-z 0-9 . _ : @ -, beginning with a letter or digit, got {shown}",
    )


def read_names(text: str) -> tuple[str, ...]:
    """a comma-separated list of names"""
    names = [check_name("a name", each) for each in _parts(text)]
    return tuple(dict.fromkeys(names))


def read_queues(text: str) -> tuple[str, ...]:
    """a comma-separated list of queues, all or none with slots: mail,media or mail=6,media=2"""
    parts = _parts(text)
    names = read_names(",".join(part.partition("=")[0].strip() or "=" for part in parts))
    slots = [part.partition("=")[2].strip() for part in parts if "=" in part]
    if not slots:
        return names
    if not len(slots) == len(parts) == len(names):
        raise BadInputError("slots", f"must be given once for every queue or for none, got {text!r}")
    if not all(each.isascii() and each.isdigit() and 1 <= int(each) <= MOST_SLOTS for each in slots):
        raise BadInputError("slots", f"must be whole numbers from 1 to {MOST_SLOTS}, got {text!r}")
    return tuple(f"{name}={int(each)}" for name, each in zip(names, slots, strict=True))


def slots_of(queues: Iterable[str]) -> dict[str, int | None]:
    """The queues that `read_queues` found, by name: the slots of each, None where they share them."""
    pairs = (queue.partition("=") for queue in queues)
    return {name: int(slots) if slots else None for name, _, slots in pairs}


def _parts(text: str) -> list[str]:
    parts = [part.strip() for part in text.split(",")]
    if not all(parts):
        raise BadInputError("a name", f"is missing, got {text!r}")
    return parts
