"""What a worker task of the asyncio queue is: how to wake it, and how to break off what it awaits."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ..core.pool import Worker
from ..errors import Cancelled, StopEnvelope, StopType
from .futures import Work

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ..context import Context
    from ..core.run import Run
    from ..envelope import Envelope
    from .loop_alarm import LoopAlarm

T = TypeVar("T")


class Owner(Protocol):
    """What a worker needs of its queue."""

    def _in_loop(self, callback: Callable[[], None]) -> None:
        """Have the queue's loop call back."""

    def _on_task_cancelled(self, worker: TaskWorker) -> None:
        """Others cancelled the worker's task."""


working: ContextVar[TaskWorker] = ContextVar("working")
"""The worker in whose task this is, or in a task that was made there."""


class TaskWorker(Worker):
    """A worker task, and how to break off what it awaits."""

    __slots__ = ("alarm", "bell", "is_interrupted", "limit_at", "queue", "task")

    task: asyncio.Task[None]
    bell: asyncio.Future[None]  # what it sleeps on

    def __init__(self, queue: Owner, alarm: LoopAlarm) -> None:
        super().__init__()
        self.queue = queue
        self.alarm = alarm
        self.limit_at = inf  # when what it awaits is broken off
        self.is_interrupted = False  # was its task cancelled by us?

    def ring(self) -> None:
        if not self.bell.done():
            self.bell.set_result(None)

    def interrupt(self, run: Run) -> None:
        """Break the run off, if it is still under way; from any thread."""
        # Why through the loop: by then the worker is suspended in the run, or has ended it.
        self.queue._in_loop(partial(self.break_off, run))

    def break_off(self, run: Run | None) -> None:
        if run is None or self.run is not run or self.is_interrupted:
            return
        if run.report is None or run.report.done:  # else it has ended, and there is time to report it
            self.is_interrupted = True
            self.task.cancel()

    async def within(self, context: Context, awaitable: Awaitable[T]) -> T:
        """Await it, but break it off when the context is done."""
        outer = self.limit_at
        if context._until < outer:
            self.limit_at = context._until
            self.alarm.set(context._until)
        try:
            return await awaitable
        except asyncio.CancelledError as error:
            raise self.explain(error, context) from None
        finally:
            self.limit_at = outer
            self.alarm.set(outer)
            self.recover()

    def explain(self, error: BaseException, context: Context) -> BaseException:
        """What a cancellation means: the context is done, others cancelled this task, or user code raised it."""
        is_ours = self.recover()
        if not isinstance(error, asyncio.CancelledError):
            return error
        if is_ours:
            return context.error or Cancelled("the run was cancelled")
        if self.task.cancelling():
            self.queue._on_task_cancelled(self)
            return Cancelled("the task of the worker was cancelled")
        return Cancelled("the run raised CancelledError").with_traceback(error.__traceback__)

    def recover(self) -> bool:
        """Take our own cancellation back; was there one? If others cancelled the task too, that stands."""
        if not self.is_interrupted:
            return False
        self.is_interrupted = False
        if self.task.uncancel():
            self.queue._on_task_cancelled(self)
        return True


def capture(call: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    """The result or the exception, as values. Why: asyncio's futures cannot carry every exception."""
    try:
        return call(), None
    except BaseException as error:
        return None, error


class AsyncWork(Work):
    """Submitted work: the future is one of the loop."""

    __slots__ = ()

    future: asyncio.Future[Any]

    async def __call__(self, ctx: Context, envelope: Envelope[Any]) -> None:
        if self.future.done():
            return
        try:
            result = await self.call(*self.args, **self.kwargs)
        except (StopEnvelope, StopType) as stop:
            if not self.future.done():
                self.future.set_exception(stop)
            raise
        # Of an error, and why it was broken off, the future is told by the failure hook.
        if not self.future.done():
            self.future.set_result(result)
