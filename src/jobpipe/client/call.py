"""Call: one call of the API as a value, and what comes of sending it.

Nothing here sends anything: a verb is a generator of calls (`verbs.py`), trying one is a generator of attempts and
pauses (`trying.py`), and `client.py` does both over httpx, blocking or not.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What to ask the service."""

    method: str
    path: str
    """With its query."""
    body: bytes | None = None
    seconds: float = 0.0
    """How long the service was asked to wait with its answer."""
    is_repeatable: bool = False
    """May it be sent again when nobody knows what became of it?"""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the service said."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes


@dataclass(frozen=True, slots=True)
class Failure:
    """Why there is no answer."""

    reason: str
    may_have_arrived: bool
    """False if the call was never sent."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """Send the call, and wait that number of seconds for the answer."""

    call: Call
    timeout: float


@dataclass(frozen=True, slots=True)
class Pause:
    """Do nothing for that number of seconds."""

    seconds: float


Verb = Generator[Call, Answer, T]
"""Asks, reads the answers, and returns what was wanted."""
Steps = Generator[Attempt | Pause, Any, T]
"""What a driver does; it sends back an Answer or a Failure for an Attempt."""
