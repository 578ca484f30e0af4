"""Why an envelope is not running: read off the state of the work queue, changing nothing."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

from ..envelope import identity_of
from .delay_queue import Due
from .lifecycle import QueueState
from .run import Run

if TYPE_CHECKING:
    from ..envelope import Envelope
    from .workqueue import WorkQueue


class Reason(Enum):
    """Why an envelope is not running, or that it is."""

    NOT_IN_QUEUE = "not in the queue"
    RUNNING = "running"
    NOT_STARTED = "the queue does not run"
    DELAYED = "delayed"
    PAUSED = "paused"
    THROTTLED = "throttled"
    CONCURRENCY = "concurrency"
    POSITION = "position"


class Answer(NamedTuple):
    """The reason; until which instant, held up by which envelopes, or how many are before it."""

    reason: Reason
    until: float | None = None
    held_by: tuple[Envelope[Any], ...] = ()
    position: int | None = None


def explain(queue: WorkQueue, envelope: Envelope[Any], now: float) -> Answer:
    """Why this envelope, or what has its key, is not running."""
    place = queue.backlog.places.get(identity_of(envelope))
    if place is None:
        return Answer(Reason.NOT_IN_QUEUE)
    if isinstance(place, Run):
        return Answer(Reason.RUNNING)
    if isinstance(place, Due):
        return Answer(Reason.DELAYED, until=float(place))
    if queue.state not in (QueueState.RUNNING, QueueState.STOPPING):
        return Answer(Reason.NOT_STARTED)
    if queue.is_paused:
        return Answer(Reason.PAUSED)
    gates = queue.backlog.gates_of(envelope)
    if any(gate.is_taken for gate in gates):
        holders = (run.envelope for run in queue.backlog.runs() if run.envelope.type == envelope.type)
        return Answer(Reason.CONCURRENCY, held_by=tuple(holders))
    paced_until = max((gate.paced_until for gate in gates), default=now)
    if paced_until > now:
        return Answer(Reason.THROTTLED, until=paced_until)
    line = [identity_of(ready) for ready in queue.backlog.ready_envelopes()]
    return Answer(Reason.POSITION, position=line.index(identity_of(envelope)) + 1)
