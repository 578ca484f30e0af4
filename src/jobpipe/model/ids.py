"""Ids and names: which are allowed, and how one is made (UUID version 7, so that ids sort by time)."""

from __future__ import annotations

import random
import re
import time

from ..errors import BadInputError

LONGEST_ID = 200
LONGEST_NAME = 100
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
