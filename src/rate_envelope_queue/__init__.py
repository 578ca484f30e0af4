"""Background work at a bounded rate: envelopes in an in-process queue, on threads and on asyncio."""

from .aio import AsyncRateEnvelopeQueue
from .clock import Clock, SystemClock
from .context import Context
from .core.lifecycle import QueueState
from .core.run import HookBudget
from .decision import Decision, drop, retry_after, retry_now
from .envelope import Envelope, Invoker, Stamp, every, once
from .errors import *
from .limiters import ExponentialBackoff, FastSlow, Limiter, MaxOf, TokenBucket, WithMaxWait
from .schedule import Cron, Every
from .stamps import before_after_stamp, logging_stamp, stamp
from .threads import RateEnvelopeQueue, simple_drain_queue, simple_stop_queue
