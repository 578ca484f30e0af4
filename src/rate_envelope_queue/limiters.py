"""How long an item waits before it may run again: client-go's set of rate limiters.

A limiter only answers; it never sleeps and starts nothing. It remembers an item from its first
`when` until `forget`, so what is never forgotten stays in memory. All are safe to call from any thread.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from math import frexp, inf, ldexp
from sys import float_info
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from ._checks import Seconds, duration
from .clock import Clock, SystemClock
from .errors import BadFieldsError

if TYPE_CHECKING:
    from collections.abc import Hashable


@runtime_checkable
class Limiter(Protocol):
    """Says how long an item has to wait after each of its failures.

    A limiter may also have `use_clock(clock)`: a queue then gives it its own clock.
    """

    def when(self, item: Hashable) -> float:
        """The seconds until the item may run again; each call counts as one more failure."""

    def forget(self, item: Hashable) -> None:
        """The item succeeded or was given up: its failures no longer count."""

    def retries(self, item: Hashable) -> int:
        """How many failures of the item count."""


def give_clock(limiter: Limiter, clock: Clock) -> None:
    """Offer the clock to a limiter; one that has no `use_clock` needs none."""
    use_clock = getattr(limiter, "use_clock", None)
    if use_clock is not None:
        use_clock(clock)


class _Counting(ABC):
    """What counts the failures of each item; its heirs say how long to wait after the nth."""

    __slots__ = ("_failures", "_lock")

    def __init__(self, clock: Clock | None) -> None:
        if clock is not None:
            self.use_clock(clock)
        self._failures: dict[Hashable, int] = {}  # no zeros: a forgotten item takes no memory
        self._lock = threading.Lock()

    def when(self, item: Hashable) -> float:
        """The seconds until the item may run again; each call counts as one more failure."""
        with self._lock:
            before = self._failures.get(item, 0)
            self._failures[item] = before + 1
        return self._wait(before)

    def forget(self, item: Hashable) -> None:
        """Start this item from zero."""
        with self._lock:
            self._failures.pop(item, None)

    def retries(self, item: Hashable) -> int:
        """How often `when` was asked for this item since it was last forgotten."""
        with self._lock:
            return self._failures.get(item, 0)

    def use_clock(self, clock: Clock) -> None:
        """Look at it and let it be: counting takes no time."""
        _check_clock(clock)

    @abstractmethod
    def _wait(self, before: int) -> float: ...


class ExponentialBackoff(_Counting):
    """Waits `base` seconds after the first failure of an item and twice as long after each further one, up to `cap`."""

    __slots__ = ("_base", "_cap", "_doublings")

    def __init__(self, base: Seconds, cap: Seconds, *, clock: Clock | None = None) -> None:
        super().__init__(clock)
        self._base = duration("base", base)
        self._cap = duration("cap", cap)
        if self._cap < self._base:
            raise BadFieldsError(f"cap must not be less than base ({base!r}), got {cap!r}")
        # So many doublings never overflow, and one more always passes the cap.
        self._doublings = frexp(self._cap)[1] - frexp(self._base)[1]

    def _wait(self, before: int) -> float:
        if self._base and before > self._doublings:
            return self._cap
        return min(ldexp(self._base, before), self._cap)

    def __repr__(self) -> str:
        return f"ExponentialBackoff(base={self._base!r}, cap={self._cap!r})"


class FastSlow(_Counting):
    """Waits `fast` seconds after each of the first `attempts` failures of an item, `slow` seconds after the others."""

    __slots__ = ("_attempts", "_fast", "_slow")

    def __init__(self, fast: Seconds, slow: Seconds, attempts: int, *, clock: Clock | None = None) -> None:
        super().__init__(clock)
        self._fast = duration("fast", fast)
        self._slow = duration("slow", slow)
        self._attempts = _whole("attempts", attempts, least=0)

    def _wait(self, before: int) -> float:
        return self._fast if before < self._attempts else self._slow

    def __repr__(self) -> str:
        return f"FastSlow(fast={self._fast!r}, slow={self._slow!r}, attempts={self._attempts!r})"


class TokenBucket:
    """Lets `rate` items a second pass, `burst` at once, whatever the items: all draw on one bucket.

    Each `when` reserves a token, even one that is still to come; there is no giving it back.
    """

    __slots__ = ("_at", "_burst", "_clock", "_is_clock_fixed", "_lock", "_rate", "_used")

    def __init__(self, rate: float, burst: int, *, clock: Clock | None = None) -> None:
        self._rate = _per_second("rate", rate)
        self._burst = _whole("burst", burst, least=1)
        self._used = 0.0  # tokens taken and not grown back at `_at`; those above `burst` are debt
        self._at = -inf
        self._lock = threading.Lock()
        self._clock: Clock = SystemClock()
        self._is_clock_fixed = False
        if clock is not None:
            self.use_clock(clock)
            self._is_clock_fixed = True

    def when(self, item: Hashable) -> float:
        """Take a token: the seconds until it is there, 0 if it is there already."""
        with self._lock:
            self._grow()
            self._used += 1
            return 0.0 if self._used <= self._burst else (self._used - self._burst) / self._rate

    def forget(self, item: Hashable) -> None:
        """Nothing: a bucket knows no items."""

    def retries(self, item: Hashable) -> int:
        """Always 0: a bucket knows no items."""
        return 0

    def use_clock(self, clock: Clock) -> None:
        """Go by this clock from now on, unless one was given when the bucket was made."""
        _check_clock(clock)
        if not self._is_clock_fixed:
            with self._lock:
                self._grow()
                # Why: two clocks need not count from the same instant; what is used stays used.
                self._clock, self._at = clock, clock.now()

    def _grow(self) -> None:
        now = self._clock.now()
        self._used = max(self._used - (now - self._at) * self._rate, 0.0)
        self._at = now

    def __repr__(self) -> str:
        return f"TokenBucket(rate={self._rate!r}, burst={self._burst!r})"


class _Wrapping:
    """What keeps no state of its own but that of its limiters; its heirs say how long to wait."""

    __slots__ = ("_is_clock_fixed", "_limiters")

    def __init__(self, limiters: tuple[Limiter, ...], clock: Clock | None) -> None:
        self._limiters = limiters
        self._is_clock_fixed = False
        if clock is not None:
            self.use_clock(clock)
            self._is_clock_fixed = True

    def forget(self, item: Hashable) -> None:
        """Forget the item in every limiter."""
        for limiter in self._limiters:
            limiter.forget(item)

    def retries(self, item: Hashable) -> int:
        """The largest count of any limiter."""
        return max([limiter.retries(item) for limiter in self._limiters])

    def use_clock(self, clock: Clock) -> None:
        """Hand the clock on to every limiter, unless one was given when this was made."""
        _check_clock(clock)
        if not self._is_clock_fixed:
            for limiter in self._limiters:
                give_clock(limiter, clock)


class MaxOf(_Wrapping):
    """Asks all its limiters each time and waits as long as the strictest says."""

    __slots__ = ("_lock",)

    def __init__(self, *limiters: Limiter, clock: Clock | None = None) -> None:
        if not limiters:
            raise BadFieldsError("limiters must be at least one, got ()")
        for limiter in limiters:
            _check_limiter("limiters", limiter)
        self._lock = (
            threading.Lock()
        )  # Why: they would count the failures of several threads in different orders
        super().__init__(limiters, clock)

    def when(self, item: Hashable) -> float:
        """The longest wait; it counts as a failure in every limiter."""
        with self._lock:
            return max([limiter.when(item) for limiter in self._limiters])

    def forget(self, item: Hashable) -> None:
        """Forget the item in every limiter."""
        with self._lock:
            super().forget(item)

    def __repr__(self) -> str:
        return f"MaxOf({', '.join(map(repr, self._limiters))})"


class WithMaxWait(_Wrapping):
    """Another limiter that never says more than `seconds`."""

    __slots__ = ("_seconds",)

    def __init__(self, limiter: Limiter, seconds: Seconds, *, clock: Clock | None = None) -> None:
        _check_limiter("limiter", limiter)
        self._seconds = duration("seconds", seconds)
        super().__init__((limiter,), clock)

    def when(self, item: Hashable) -> float:
        """What the limiter says, but at most `seconds`; it counts as a failure there."""
        return min(self._limiters[0].when(item), self._seconds)

    def __repr__(self) -> str:
        return f"WithMaxWait({self._limiters[0]!r}, seconds={self._seconds!r})"


def _whole(field: str, value: object, *, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise BadFieldsError(f"{field} must be a whole number >= {least}, got {value!r}")
    return value


def _per_second(field: str, value: object) -> float:
    # Why: compared before it is converted; an int can be too large for a float.
    if isinstance(value, bool) or not isinstance(value, float | int) or not 0 < value <= float_info.max:
        raise BadFieldsError(f"{field} must be a finite number > 0 (a second), got {value!r}")
    return float(value)


def _check_limiter(field: str, value: object) -> None:
    if isinstance(value, type) or not isinstance(value, Limiter):
        raise BadFieldsError(f"{field} must have when, forget and retries, got {value!r}")


def _check_clock(value: object) -> None:
    if not callable(getattr(value, "now", None)):
        raise BadFieldsError(f"clock must be a Clock, got {value!r}")
