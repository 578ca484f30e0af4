"""The work behind `submit`: a call whose result goes into a future.

The envelope of such a call is finished whatever comes of it, and so is its future: with the result, the
exception, or cancelled when the call was never made.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ..decision import Decision, drop
from ..envelope import ASYNC, Envelope, Handling
from ..errors import Cancelled, RateLimited

if TYPE_CHECKING:
    from ..context import Context


T = TypeVar("T")

_GUARD = threading.Lock()


class AnyFuture(Protocol):
    """A future of threads or of asyncio."""

    def done(self) -> bool: ...
    def cancel(self, /) -> bool: ...
    def set_exception(self, exception: BaseException, /) -> None: ...


class Work:
    """What a submitted envelope invokes."""

    __slots__ = ("args", "call", "future", "has_begun", "kwargs")

    future: Any

    def __init__(
        self, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], future: AnyFuture
    ) -> None:
        self.call = call
        self.args = args
        self.kwargs = kwargs
        self.future = future
        self.has_begun = False  # was the future told that it runs or was cancelled?


class LightFuture(Future[T]):
    """A Future that makes its condition only when something waits: that is most of what a future costs.

    Why with private parts of CPython's: `wait` and `as_completed` use them of any future, and with a plain Future a
    `submit` takes half as long again.
    Invariant: while there is no condition, nothing waits and there is no callback. `_GUARD` is held to make it,
    and to change the state without it.
    """

    _made: threading.Condition | None = None

    def __init__(self) -> None:
        # Why not super().__init__: it makes the condition. The names are those that it sets.
        self._state = "PENDING"
        self._result = None
        self._exception = None
        self._waiters: list[Any] = []
        self._done_callbacks: list[Any] = []

    @property
    def _condition(self) -> threading.Condition:  # type: ignore[override]
        if self._made is None:
            with _GUARD:
                if self._made is None:
                    self._made = threading.Condition()
        return self._made

    def set_running_or_notify_cancel(self) -> bool:
        with _GUARD:
            if self._made is None:
                self._state = "RUNNING"
                return True
        return super().set_running_or_notify_cancel()

    def set_result(self, result: T) -> None:
        with _GUARD:
            if self._made is None:
                self._result = result
                self._state = "FINISHED"
                return
        super().set_result(result)


class ThreadWork(Work):
    """For the thread queue: the future is a concurrent.futures.Future."""

    __slots__ = ()

    future: Future[Any]

    def __call__(self, ctx: Context, envelope: Envelope[Any]) -> None:
        future = self.future
        if not self.has_begun:  # else it is called again
            self.has_begun = True
            if not future.set_running_or_notify_cancel():
                return
        try:
            result = self.call(*self.args, **self.kwargs)
        except RateLimited:
            raise  # it will be called again
        except BaseException as error:
            future.set_exception(error)
            raise
        future.set_result(result)


def abandon(envelope: Envelope[Any]) -> None:
    """Cancel the future of an envelope that will not run (again), if it has one that waits."""
    work: object = envelope._invoke
    if not isinstance(work, Work):
        return
    future = work.future
    try:
        if not future.done() and not future.cancel():
            future.set_exception(Cancelled("the call was cancelled"))  # it runs, or waits to run again
    except RuntimeError:
        pass  # it is done, but its loop is closed: there is nothing left to tell
    if isinstance(future, Future) and future.cancelled() and not work.has_begun:
        work.has_begun = True
        future.set_running_or_notify_cancel()  # wakes what waits for it


def _tell_future(ctx: Context, envelope: Envelope[Any], error: BaseException) -> Decision:
    """The failure hook of submitted work: an error that came from around the call goes to the future too."""
    work: object = envelope.invoke
    if isinstance(work, Work) and not work.future.done():
        work.future.set_exception(error)
    return drop()


SUBMITTED = Handling(failure_hook=_tell_future)
"""How submitted work is handled: its errors are the future's, and are not logged as a warning."""


def submitted(work: Work, *, is_async: bool = False) -> Envelope[None]:
    """The envelope of submitted work, made without the checks that its parts cannot fail."""
    envelope: Envelope[None] = Envelope.__new__(Envelope)
    envelope._invoke = work  # type: ignore[assignment]
    envelope._id = envelope._key = envelope.payload = None
    envelope._type = ""
    envelope._priority = 0
    envelope._lane = ASYNC if is_async else 0
    envelope._handling = SUBMITTED
    return envelope
