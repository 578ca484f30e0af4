"""Background work at a bounded rate: envelopes in an in-process queue, on threads and on asyncio."""

from typing import TYPE_CHECKING

from .clock import Clock, SystemClock
from .context import Context
from .core.explain import Reason
from .core.lifecycle import QueueState
from .core.run import HookBudget
from .decision import Decision, drop, retry_after, retry_now
from .envelope import Envelope, Invoker, Stamp, every, once
from .errors import (
    BadFieldsError,
    BadIntervalsError,
    Cancelled,
    CapacityExceededError,
    DeadlineExceeded,
    EnvelopeBlacklistedError,
    QueueNotRunningError,
    QueueTerminatedError,
    RateEnvelopeQueueError,
    RateLimited,
    StopEnvelope,
    StopType,
)
from .explanation import Explanation
from .limiters import ExponentialBackoff, FastSlow, Limiter, MaxOf, TokenBucket, WithMaxWait
from .metrics import HistogramSnapshot, Metrics
from .rates import Rate
from .schedule import Cron, Every
from .stamps import before_after_stamp, logging_stamp, stamp
from .stats import Stats
from .threads import RateEnvelopeQueue, simple_drain_queue, simple_stop_queue

if TYPE_CHECKING:
    from .aio import AsyncRateEnvelopeQueue

__all__ = [
    "AsyncRateEnvelopeQueue",
    "BadFieldsError",
    "BadIntervalsError",
    "Cancelled",
    "CapacityExceededError",
    "Clock",
    "Context",
    "Cron",
    "DeadlineExceeded",
    "Decision",
    "Envelope",
    "EnvelopeBlacklistedError",
    "Every",
    "Explanation",
    "ExponentialBackoff",
    "FastSlow",
    "HistogramSnapshot",
    "HookBudget",
    "Invoker",
    "Limiter",
    "MaxOf",
    "Metrics",
    "QueueNotRunningError",
    "QueueState",
    "QueueTerminatedError",
    "Rate",
    "RateEnvelopeQueue",
    "RateEnvelopeQueueError",
    "RateLimited",
    "Reason",
    "Stamp",
    "Stats",
    "StopEnvelope",
    "StopType",
    "SystemClock",
    "TokenBucket",
    "WithMaxWait",
    "before_after_stamp",
    "drop",
    "every",
    "logging_stamp",
    "once",
    "retry_after",
    "retry_now",
    "simple_drain_queue",
    "simple_stop_queue",
    "stamp",
]


def __getattr__(name: str) -> object:
    # Why not imported above: asyncio takes as long to import as all the rest, and the thread queue needs none of it.
    if name == "AsyncRateEnvelopeQueue":
        from .aio import AsyncRateEnvelopeQueue

        return AsyncRateEnvelopeQueue
    if name == "__version__":
        from importlib.metadata import version

        return version("rate-envelope-queue")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
