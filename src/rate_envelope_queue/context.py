"""Context: the deadline and the cancellation of a run, as user code sees them.

A context knows an instant after which it is done, and can be cancelled before. Subscribing and
cancelling need no lock: each step is one atomic operation on a list, and a callback is taken off the
list before it is called, so that it is called once, by the first that comes.
"""

from __future__ import annotations

import threading
from math import inf
from typing import TYPE_CHECKING

from ._checks import Seconds, duration
from .clock import Bell, Clock, SystemClock
from .errors import Cancelled, DeadlineExceeded

if TYPE_CHECKING:
    from collections.abc import Callable

_SYSTEM_CLOCK = SystemClock()
_MAKING_LIST = threading.Lock()


class Context:
    """`Context()` makes a root: give it to a queue as `parent=`, and `cancel()` stops the queue."""

    __slots__ = ("_allowed", "_callbacks", "_cancelled", "_clock", "_until", "attempt")

    attempt: int
    """1 on a first run and after every success; counts up over failures."""
    _clock: Clock
    _until: float  # the instant at which it is done
    _allowed: float  # the seconds that it had been given; set with _until
    _cancelled: Cancelled | None
    _callbacks: list[Callable[[], None]]  # Why unset until a subscription: few runs have one

    def __init__(self, *, clock: Clock = _SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._until = inf
        self._cancelled = None
        self.attempt = 1

    @property
    def done(self) -> bool:
        """Is it cancelled, or its time over?"""
        return self.error is not None

    @property
    def error(self) -> Cancelled | DeadlineExceeded | None:
        """Why it is done: `Cancelled`, `DeadlineExceeded`, or None while it is not."""
        if self._cancelled is not None:
            return self._cancelled
        if self._until != inf and self._clock.now() >= self._until:
            return DeadlineExceeded(f"timed out after {self._allowed:g} s")
        return None

    def raise_if_done(self) -> None:
        """Raise why it is done, if it is."""
        error = self.error
        if error is not None:
            raise error

    def remaining(self) -> float:
        """Seconds until the deadline; 0 when it is done, infinity without a deadline."""
        if self._cancelled is not None:
            return 0.0
        return inf if self._until == inf else max(self._until - self._clock.now(), 0.0)

    def wait(self, seconds: Seconds) -> bool:
        """Sleep so long, or until it is done; is it? (For threads: in a coroutine, use asyncio.sleep.)"""
        until = self._clock.now() + duration("seconds", seconds)
        bell = Bell()
        self._subscribe(bell.ring)
        try:
            self._clock.wait(bell, min(until, self._until), who=self._run_of())
        finally:
            self._unsubscribe(bell.ring)
        return self.done

    def cancel(self, reason: str = "the context was cancelled") -> None:
        """Be done from now on, and wake what waits for it; a second call changes nothing."""
        if self._cancelled is None:
            self._cancelled = Cancelled(reason)
            self._call_back()

    def _run_of(self) -> Context:
        """The run that it belongs to."""
        return self

    def _subscribe(self, callback: Callable[[], None]) -> None:
        """Call back once when it is cancelled; at once if it already is."""
        try:
            self._callbacks.append(callback)
        except AttributeError:
            with _MAKING_LIST:
                if not hasattr(self, "_callbacks"):
                    self._callbacks = []
            self._callbacks.append(callback)
        # Why after the append: a cancel in between has either seen the callback or is seen here.
        if self._cancelled is not None:
            self._call_back()

    def _unsubscribe(self, callback: Callable[[], None]) -> None:
        try:
            self._callbacks.remove(callback)
        except ValueError:
            pass  # it was called

    def _call_back(self) -> None:
        callbacks = getattr(self, "_callbacks", ())
        while callbacks:
            try:
                callback = callbacks.pop()
            except IndexError:
                return  # another thread called the last one
            callback()


class HookContext(Context):
    """The context of a hook within its run: done when its budget is spent, or when the run's is."""

    __slots__ = ("_run",)

    def __init__(self, run: Context, until: float, allowed: float) -> None:
        # Why not super().__init__: there are two for each run with hooks.
        self._clock = run._clock
        self._until = min(run._until, until)
        self._allowed = allowed
        self._cancelled = None
        self._run = run
        self.attempt = run.attempt

    @property
    def error(self) -> Cancelled | DeadlineExceeded | None:
        """Why it is done: the run's reason before its own."""
        return self._run.error or super().error

    def remaining(self) -> float:
        """Seconds until its budget or the run's deadline is spent."""
        return min(super().remaining(), self._run.remaining())

    def _run_of(self) -> Context:
        return self._run

    def _subscribe(self, callback: Callable[[], None]) -> None:
        super()._subscribe(callback)
        self._run._subscribe(callback)

    def _unsubscribe(self, callback: Callable[[], None]) -> None:
        super()._unsubscribe(callback)
        self._run._unsubscribe(callback)


class ReportContext(Context):
    """The context of a success or failure hook: a time of its own, whatever has become of the run's."""

    __slots__ = ("_run",)

    def __init__(self, run: Context, until: float, allowed: float) -> None:
        self._clock = run._clock
        self._until = until
        self._allowed = allowed
        self._cancelled = None
        self._run = run
        self.attempt = run.attempt

    def _run_of(self) -> Context:
        return self._run
