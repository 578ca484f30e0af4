"""Stats: a queue at one moment."""

from __future__ import annotations

from dataclasses import dataclass

from .core.lifecycle import QueueState


@dataclass(frozen=True, slots=True)
class Stats:
    """A queue at one moment: what is in it now, and what it has counted since it was made."""

    state: QueueState
    ready: int
    running: int
    delayed: int
    occupied: int
    capacity: int
    stuck: int
    added: int
    done: int
    failed: int
    retried: int
    dropped: int
    panicked: int
