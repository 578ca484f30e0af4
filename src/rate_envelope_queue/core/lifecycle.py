"""The life of a queue: its states and the one transition table. A missing key is a refusal."""

from __future__ import annotations

from enum import Enum

from ..errors import QueueNotRunningError, QueueTerminatedError, RateEnvelopeQueueError


class QueueState(Enum):
    """Where a queue is in its life."""

    INIT = "init"
    RUNNING = "running"
    STOPPING = "stopping"
    STOPPED = "stopped"
    TERMINATED = "terminated"


class Event(Enum):
    """What moves a queue from state to state."""

    START = "start"
    STOP = "stop"
    ENDED = "all workers ended"
    PARENT_CANCELLED = "parent cancelled"
    TERMINATE = "terminate"


_S, _E = QueueState, Event

TRANSITIONS: dict[tuple[QueueState, Event], QueueState] = {
    (_S.INIT, _E.START): _S.RUNNING,
    (_S.INIT, _E.STOP): _S.INIT,
    (_S.INIT, _E.PARENT_CANCELLED): _S.STOPPED,
    (_S.INIT, _E.TERMINATE): _S.TERMINATED,
    (_S.RUNNING, _E.START): _S.RUNNING,
    (_S.RUNNING, _E.STOP): _S.STOPPING,
    (_S.RUNNING, _E.PARENT_CANCELLED): _S.STOPPING,
    (_S.RUNNING, _E.TERMINATE): _S.TERMINATED,
    (_S.STOPPING, _E.STOP): _S.STOPPING,
    (_S.STOPPING, _E.ENDED): _S.STOPPED,
    (_S.STOPPING, _E.PARENT_CANCELLED): _S.STOPPING,
    (_S.STOPPING, _E.TERMINATE): _S.TERMINATED,
    (_S.STOPPED, _E.START): _S.RUNNING,
    (_S.STOPPED, _E.STOP): _S.STOPPED,
    (_S.STOPPED, _E.PARENT_CANCELLED): _S.STOPPED,
    (_S.STOPPED, _E.TERMINATE): _S.TERMINATED,
    (_S.TERMINATED, _E.STOP): _S.TERMINATED,
    (_S.TERMINATED, _E.ENDED): _S.TERMINATED,
    (_S.TERMINATED, _E.PARENT_CANCELLED): _S.TERMINATED,
    (_S.TERMINATED, _E.TERMINATE): _S.TERMINATED,
}

REFUSES: dict[QueueState, type[RateEnvelopeQueueError]] = {
    _S.STOPPING: QueueNotRunningError,
    _S.STOPPED: QueueNotRunningError,
    _S.TERMINATED: QueueTerminatedError,
}
"""The states that take no envelopes, and the error a send gets there."""
