"""Acceptors: which of the supervised processes accept connections from the sockets that they share.

While any process is ready, only those that are ready accept; while none is, one accepts, so that a probe gets its 503.
A process opens only after those that must close for it have closed: no caller gets a 503 once another process could be
seen to be ready.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

_PATIENCE = 10.0
"""Seconds after which a process that does not say that it has closed is no longer waited for: it may be stuck."""


class State(Enum):
    """Of an acceptor."""

    CLOSED = "closed"
    OPEN = "open"
    CLOSING = "closing"
    """Told to close, and not yet known to be closed."""


@dataclass(slots=True, eq=False)
class Acceptor:
    """Whether one process accepts connections, as its supervisor knows it."""

    is_ready: bool = False
    """Is the process started, and not about to stop?"""
    state: State = State.CLOSED
    awaited_until: float = 0.0
    """While it is closing: when it counts as closed anyway."""


def update(acceptors: Sequence[Acceptor], now: float) -> list[Acceptor]:
    """Bring their states up to date; returns those that have to be told to open or to close."""
    for each in acceptors:
        if each.state is State.CLOSING and now >= each.awaited_until:
            each.state = State.CLOSED
    ready = [each for each in acceptors if each.is_ready]
    wanted = set(ready or [each for each in acceptors if each.state is State.OPEN] or acceptors[:1])
    changed = [each for each in acceptors if each.state is State.OPEN and each not in wanted]
    for each in changed:
        each.state, each.awaited_until = State.CLOSING, now + _PATIENCE
    if not any(each.state is State.CLOSING for each in acceptors):
        for each in wanted:
            if each.state is State.CLOSED:
                each.state = State.OPEN
                changed.append(each)
    return changed
