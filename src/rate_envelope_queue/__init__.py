"""Background work at a bounded rate: envelopes in an in-process queue, on threads and on asyncio."""

# Why not from typing: to import that takes longer than all the rest here.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from .aio import AsyncRateEnvelopeQueue
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

_MODULES = {
    "aio": ("AsyncRateEnvelopeQueue",),
    "clock": (
        "Clock",
        "SystemClock",
    ),
    "context": ("Context",),
    "core.explain": ("Reason",),
    "core.lifecycle": ("QueueState",),
    "core.run": ("HookBudget",),
    "decision": (
        "Decision",
        "drop",
        "retry_after",
        "retry_now",
    ),
    "envelope": (
        "Envelope",
        "Invoker",
        "Stamp",
        "every",
        "once",
    ),
    "errors": (
        "BadFieldsError",
        "BadIntervalsError",
        "Cancelled",
        "CapacityExceededError",
        "DeadlineExceeded",
        "EnvelopeBlacklistedError",
        "QueueNotRunningError",
        "QueueTerminatedError",
        "RateEnvelopeQueueError",
        "RateLimited",
        "StopEnvelope",
        "StopType",
    ),
    "explanation": ("Explanation",),
    "limiters": (
        "ExponentialBackoff",
        "FastSlow",
        "Limiter",
        "MaxOf",
        "TokenBucket",
        "WithMaxWait",
    ),
    "metrics": (
        "HistogramSnapshot",
        "Metrics",
    ),
    "rates": ("Rate",),
    "schedule": (
        "Cron",
        "Every",
    ),
    "stamps": (
        "before_after_stamp",
        "logging_stamp",
        "stamp",
    ),
    "stats": ("Stats",),
    "threads": (
        "RateEnvelopeQueue",
        "simple_drain_queue",
        "simple_stop_queue",
    ),
}
"""Where each public name is. Why not imported above: a program that starts quickly imports what it uses."""


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name == "__version__":
        return import_module("importlib.metadata").version("rate-envelope-queue")
    for module, names in _MODULES.items():
        if name in names:
            found: object = getattr(import_module(f".{module}", __name__), name)
            globals()[name] = found  # the next look at it is an ordinary one
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *__all__]
