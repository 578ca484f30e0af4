"""The errors of the package, and the signals that user code raises.

RateEnvelopeQueueError
  BadFieldsError(ValueError)             a wrong argument, named in the message
  BadIntervalsError(ValueError)          a deadline longer than the interval
  CapacityExceededError                  the envelopes do not fit
  QueueNotRunningError(RuntimeError)     sent to a stopping or stopped queue
  QueueTerminatedError(RuntimeError)     the queue has ended for good
  EnvelopeBlacklistedError               the type was stopped by StopType
  DeadlineExceeded(TimeoutError)         outcome of a run that took too long
  Cancelled                              outcome of a run whose context was cancelled
Signal                                   raised by user code to say what to do; no error
  StopEnvelope                           never run this envelope again
  StopType                               never run this type again
  RateLimited                            run this type again after a while
"""

from __future__ import annotations

from datetime import timedelta


class RateEnvelopeQueueError(Exception):
    """The root of every error that this package raises."""


class BadFieldsError(RateEnvelopeQueueError, ValueError):
    """An argument is wrong; the message names it and shows its value."""


class BadIntervalsError(RateEnvelopeQueueError, ValueError):
    """The deadline of a periodic envelope is longer than its interval."""


class CapacityExceededError(RateEnvelopeQueueError):
    """The envelopes of a send do not fit into the queue; none was admitted."""

    def __init__(self, *, capacity: int, occupied: int, needed: int) -> None:
        advice = (
            "it can never fit: send fewer at once, or raise capacity="
            if needed > capacity
            else "send fewer, wait for room (send has block=), or raise capacity="
        )
        super().__init__(
            f"no room: {needed} more needed, {occupied} of {capacity} places are occupied; {advice}"
        )
        self.capacity = capacity
        self.occupied = occupied
        self.needed = needed


class QueueNotRunningError(RateEnvelopeQueueError, RuntimeError):
    """The queue is stopping or stopped and takes no envelopes until its next start."""


class QueueTerminatedError(RateEnvelopeQueueError, RuntimeError):
    """The queue was terminated; it never starts again."""


class EnvelopeBlacklistedError(RateEnvelopeQueueError):
    """The envelope's type was stopped by StopType and not allowed again since."""

    def __init__(self, type: str) -> None:
        super().__init__(f"type {type!r} was stopped by StopType; allow({type!r}) lifts it")
        self.type = type


class DeadlineExceeded(RateEnvelopeQueueError, TimeoutError):
    """A run, or a hook within its budget, took longer than it may."""


class Cancelled(RateEnvelopeQueueError):
    """The context was cancelled before the run ended."""


class Signal(Exception):
    """What user code raises to control the queue; never counted as an error."""


class StopEnvelope(Signal):
    """Raise it in a before hook, invoke or after hook: this envelope never runs again."""


class StopType(Signal):
    """As StopEnvelope, for every envelope of this type: the type goes on the blacklist."""


class RateLimited(Signal):
    """Raise it when an upstream says slow down: the envelope runs again after `retry_after` seconds.

    Until then none of its type starts (none at all, for an envelope without a type). No failure is counted.
    """

    def __init__(self, retry_after: float | timedelta) -> None:
        from ._checks import duration  # Why here: the checks raise the errors of this module

        self.retry_after = duration("retry_after", retry_after, positive=True)
        super().__init__(f"slow down for {self.retry_after:g} s")
