"""The errors of the service, and the signals that a handler raises.

JobpipeError
  BadInputError(ValueError)            a value is wrong; `field` names it
    PayloadTooLargeError               the payload is larger than the limit
    StepResultError                    the result of a step cannot be recorded
    TooManyNamesError                  the limit on pairs of queue and type is reached
  JobNotFoundError(LookupError)        no job has that id
  ScheduleNotFoundError(LookupError)   no schedule has that name
  JobConflictError                     the id is taken by a job with other content
    DuplicateError                     another job of the same unique name waits
  SignalRefusedError                   the job does not accept the signal
  SignalTimeout                        a wait for a signal timed out; raised by `wait_for`
  WrongStatusError                     the job's status does not allow it
  QueueFullError                       too many jobs are ready in the queue
    TooManyScheduledError              too many jobs of the store are scheduled
  StoppingError                        the service is stopping and accepts no more jobs
  ProcessDied                          the process of an isolated run ended, or could not start
    MemoryExceeded                     it had more memory than its type allows, and was killed
  LeaseLostError                       another worker may have the job by now
  StoreError                           something is wrong with the store
    StoreAwayError                     it cannot be reached, or cannot write, at the moment
    StoreRefusedError                  it cannot keep the promises, or its schema is newer than the program
  SettingsError(ValueError)            a setting is wrong; `name` names it
  UnauthorizedError                    the service does not accept the client's token, or wants one
  ForbiddenError                       the client's token does not allow it
  UnreachableError                     the service gave the client no answer, or is not ready
  AppBrokenError                       the user's module cannot be imported (see loading.py)
Signal                                 raised by a handler to decide what happens next; not an error
  Retry, Snooze, Cancel, Fail
"""

from __future__ import annotations

from datetime import timedelta
from math import isfinite
from typing import ClassVar, Self


class JobpipeError(Exception):
    """The root of every error that this package raises."""


class BadInputError(JobpipeError, ValueError):
    """A value is wrong; nothing was changed."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field} {problem}")
        self.field = field

    def within(self, place: str) -> Self:
        """The same of a field in there."""
        self.field = place + self.field
        self.args = (f"{place}{self}",)
        return self


class PayloadTooLargeError(BadInputError):
    """The payload is longer than the setting allows."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(
            "payload",
            f"has {size:,} bytes as JSON, the limit is {limit:,}: "
            "store the data elsewhere and send its address, or raise JOBPIPE_MAX_PAYLOAD",
        )


class TooManyNamesError(BadInputError):
    """The limit on pairs of queue and type with jobs is reached; no job of the call was accepted."""

    def __init__(self, queue: str, type: str, *, most: int) -> None:
        super().__init__(
            "queue",
            f"{queue!r} has no job of type {type!r} yet, and the limit of {most:,} pairs of queue and type is reached: "
            "use fewer names, or raise JOBPIPE_MAX_NAMES",
        )
        self.queue = queue
        self.type = type
        self.most = most


class StepResultError(BadInputError):
    """The result of a step is not JSON, or too large. If not caught, it fails the job without a retry: the step has run."""


class JobNotFoundError(JobpipeError, LookupError):
    """No job has that id: it never existed, or it finished long ago and was deleted."""

    def __init__(self, id: str) -> None:
        super().__init__(f"no job has the id {id!r}")
        self.id = id


class ScheduleNotFoundError(JobpipeError, LookupError):
    """No schedule has that name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"no schedule has the name {name!r}")
        self.name = name


class JobConflictError(JobpipeError):
    """The id is taken by a job with other content."""

    def __init__(self, id: str, problem: str = "is taken by a job with other content") -> None:
        super().__init__(f"the id {id!r} {problem}: choose another id, or send the same content")
        self.id = id


class DuplicateError(JobConflictError):
    """Another job of the same unique name waits, and is in the way; `id` is that job's."""

    def __init__(self, id: str, unique: str, advice: str) -> None:
        JobpipeError.__init__(self, f"the unique name {unique!r} is that of the job {id!r}: {advice}")
        self.id = id
        self.unique = unique


class WrongStatusError(JobpipeError):
    """The job's status does not allow what was asked."""

    def __init__(self, id: str, status: str, action: str) -> None:
        super().__init__(f"job {id!r} is {status}: it cannot {action}")
        self.id = id
        self.status = status


class QueueFullError(JobpipeError):
    """Too many jobs are ready in the queue; no job of the call was accepted."""

    SETTING: ClassVar = "QUEUE_SIZE"

    def __init__(self, queue: str, *, waiting: int, needed: int, capacity: int) -> None:
        advice = (
            "the call is larger than the limit: send fewer at once"
            if needed > capacity
            else "try again later"
        )
        super().__init__(
            f"{self._full(queue)}: {waiting:,} of {capacity:,} jobs, {needed:,} more do not fit; "
            f"{advice}, or raise {self.SETTING}"
        )
        self.queue = queue
        self.waiting = waiting
        self.needed = needed
        self.capacity = capacity

    def _full(self, queue: str) -> str:
        return f"queue {queue!r} is full"


class TooManyScheduledError(QueueFullError):
    """Too many jobs are scheduled in the store, in all queues together; no job of the call was accepted."""

    SETTING = "JOBPIPE_SCHEDULED_SIZE"

    def _full(self, queue: str) -> str:
        return "too many jobs are scheduled"


class SignalRefusedError(JobpipeError):
    """The job does not accept the signal; nothing was changed."""

    def __init__(self, id: str, name: str, problem: str) -> None:
        super().__init__(f"signal {name!r} for job {id!r} {problem}")
        self.id = id
        self.name = name


class SignalTimeout(JobpipeError):
    """The wait for a signal timed out. If not caught, it fails the job without a retry."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the wait for signal {name!r} timed out")
        self.name = name


class StoppingError(JobpipeError):
    """The service is stopping and accepts no more jobs."""

    def __init__(self) -> None:
        super().__init__(
            "the service is stopping and accepts no more jobs: try another instance, or again after the restart"
        )


class LeaseLostError(JobpipeError):
    """The lease ran out before the run ended: the job is, or was, given to another worker."""

    def __init__(self, id: str) -> None:
        super().__init__(f"the lease of job {id!r} was lost: the outcome of this run was not recorded")
        self.id = id


class ProcessDied(JobpipeError):
    """The child process of an isolated run ended before the run did, or could not start; it costs an attempt."""


class MemoryExceeded(ProcessDied):
    """The child process of an isolated run was killed, as it had more memory than the type allows."""

    def __init__(self, memory: int, limit: int) -> None:
        super().__init__(f"the process had {memory:,} bytes in memory, the limit is {limit:,}")
        self.memory = memory
        self.limit = limit


class StoreError(JobpipeError):
    """Something is wrong with the store."""


class StoreAwayError(StoreError):
    """The store cannot be reached, or cannot write, at the moment; nothing was changed."""


class StoreRefusedError(StoreError):
    """The store cannot be used until it is repaired."""


class SettingsError(JobpipeError, ValueError):
    """A setting has a wrong value."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"{name} {problem}")
        self.name = name


class UnauthorizedError(JobpipeError):
    """The service does not accept the client's token, or wants one; nothing was changed."""


class ForbiddenError(JobpipeError):
    """The service does not allow it to this client; nothing was changed.

    `kind` is the end of the problem's `type`: `read-only-token` for one that is for reading only.
    """

    def __init__(self, text: str, kind: str = "") -> None:
        super().__init__(text)
        self.kind = kind


class UnreachableError(JobpipeError):
    """The service gave the client no answer, or is not ready.

    If it `may_have_arrived`, the service may have done what it was asked.
    """

    def __init__(self, text: str, *, may_have_arrived: bool = True) -> None:
        super().__init__(text)
        self.may_have_arrived = may_have_arrived


class Signal(Exception):
    """Raised by a handler to decide what happens to its job."""


def seconds_of(field: str, value: float | timedelta) -> float:
    """A duration, given as seconds or as a timedelta, in seconds; BadInputError unless it is finite and not negative."""
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise BadInputError(field, f"must be a number of seconds, or a timedelta, got {value!r}")
    if not isfinite(seconds) or seconds < 0:
        raise BadInputError(field, f"must be a number of seconds >= 0, got {value!r}")
    return float(seconds)


class Retry(Signal):
    """Run the job again, after the back-off or after the given time. Uses an attempt; without one left, the job fails."""

    def __init__(
        self, after: float | timedelta | None = None, reason: str = "the handler asked for a retry"
    ) -> None:
        super().__init__(reason)
        self.after = None if after is None else seconds_of("after", after)


class Snooze(Signal):
    """Run the job again after the given time; this run does not count as an attempt."""

    def __init__(self, seconds: float | timedelta) -> None:
        self.seconds = seconds_of("seconds", seconds)
        super().__init__(f"snoozed for {self.seconds:g} s")


class Cancel(Signal):
    """End the job as cancelled; it does not run again."""

    def __init__(self, reason: str = "the handler cancelled it") -> None:
        super().__init__(reason)
        self.reason = reason


class Fail(Signal):
    """End the job as failed; it is not retried, however many retries are left."""

    def __init__(self, reason: str = "the handler gave up") -> None:
        super().__init__(reason)
        self.reason = reason
