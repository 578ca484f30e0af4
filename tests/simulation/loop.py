"""ProcessLoop: the event loop of one simulated process, on the world's time.

Callbacks are called first in, first out, as asyncio does. What comes from threads comes when chance lets it: calls
in an executor are made in the one thread there is, between two turns of the loop, and their answers arrive later.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context
from datetime import UTC, datetime
from functools import partial
from math import inf
from typing import Any, TypeVar, TypeVarTuple

from rate_envelope_queue.clock import Alarm, Bell
from rate_envelope_queue.drivers.aio_worker import capture

from .world import World

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_TURN = 0.001
"""Seconds that pass, at the most, until a loop with something to do does it."""


class ProcessLoop(asyncio.AbstractEventLoop):
    """What asyncio needs of a loop, and what may befall it: it is held up, and it dies."""

    def __init__(
        self,
        world: World,
        *,
        speed: float,
        travel: Callable[[], float],
        on_error: Callable[[dict[str, Any]], object],
    ) -> None:
        self._world = world
        self._speed = speed
        self._began_at = world.now
        self._offset = world.chance.uniform(1.0, 1e6)
        self._travel = travel
        self._on_error = on_error
        self._ready: deque[asyncio.Handle] = deque()
        self._has_turn = False
        self._tasks: dict[asyncio.Task[Any], None] = {}
        self._calls: dict[asyncio.Future[Any], None] = {}
        self.held_until = -inf
        """Until then it does nothing."""
        self.is_dead = False

    # Time

    def time(self) -> float:
        """The process's own: it may run too fast or too slow."""
        return self._offset + (self._world.now - self._began_at) * self._speed

    def after(self, seconds: float, action: Callable[[], object]) -> None:
        """Let it happen after so many seconds of the process's own, if it lives then; later if it is held up."""
        self._world.after(seconds / self._speed, lambda: self._do(action))

    def hold(self, seconds: float) -> None:
        """Let it do nothing for so long."""
        self.held_until = max(self.held_until, self._world.now + seconds)

    def _do(self, action: Callable[[], object]) -> None:
        if self.is_dead:
            return
        if self.held_until > self._world.now:
            self._world.after(self.held_until - self._world.now, lambda: self._do(action))
            return
        with _running(self):
            action()

    # Callbacks

    def call_soon(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        self._rouse()
        return handle

    def call_soon_threadsafe(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self.after(self._travel(), lambda: self._enter(handle))
        return handle

    def call_later(
        self,
        delay: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        self.after(when - self.time(), lambda: self._enter(handle))
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        pass

    def _enter(self, handle: asyncio.Handle) -> None:
        if not handle.cancelled():
            self._ready.append(handle)
            self._rouse()

    def _rouse(self) -> None:
        if not self._has_turn and not self.is_dead:
            self._has_turn = True
            self.after(self._world.chance.random() * _TURN, self._turn)

    def _turn(self) -> None:
        """One turn: what was ready when it began. Why all of it at once: processes meet in the store alone."""
        self._has_turn = False
        for _ in range(len(self._ready)):
            if self.held_until > self._world.now:
                break
            handle = self._ready.popleft()
            if not handle.cancelled():
                handle._run()
        if self._ready:
            self._rouse()

    # Futures, tasks, calls in threads

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(
        self, coro: Any, *, name: str | None = None, context: Context | None = None
    ) -> asyncio.Task[Any]:
        task = asyncio.Task(coro, loop=self, name=name, context=context)
        self._tasks[task] = None
        task.add_done_callback(self._forget)
        return task

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._tasks.pop(task, None)

    def run_in_executor(self, executor: Any, func: Callable[[*Ts], T], *args: *Ts) -> asyncio.Future[T]:
        future: asyncio.Future[T] = self.create_future()
        self._calls[future] = None

        def arrive() -> None:
            # Why for a dead one, too: what was on its way when it died may still come to the store.
            if self.is_dead and self._world.is_chosen(0.5):
                return
            with _running(None):
                result, raised = capture(partial(func, *args))
            self.after(self._travel(), lambda: self._answer(future, result, raised))

        self._world.after(self._travel(), arrive)
        future.add_done_callback(lambda done: self._calls.pop(done, None))
        return future

    @staticmethod
    def _answer(future: asyncio.Future[Any], result: object, raised: BaseException | None) -> None:
        if future.done():
            return  # who asked did not wait for it
        if raised is None:
            future.set_result(result)
        else:
            future.set_exception(raised)

    def start(self, scenario: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Begin something in the process, from outside of it."""
        with _running(self):
            return self.create_task(scenario, name=name)

    def bury(self) -> bool:
        """Break off all that a loop still has under way, so that nothing of it is left; False if it clings to life."""
        self.is_dead = True
        self.held_until = -inf
        for _ in range(100):
            for call in list(self._calls):
                call.cancel()
            for task in list(self._tasks):
                task.cancel()
            with _running(self):
                self._turn()
            if not self._tasks and not self._ready:
                return True
        return False

    # What else is asked of a loop

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        self._on_error(context)


class ProcessClock:
    """The clock of a process, for what asks a clock and not the loop."""

    tick = 0.001

    def __init__(self, loop: ProcessLoop) -> None:
        self.now = loop.time

    def wall(self) -> datetime:
        """The time of day as the process has it: wrong, like its other clocks."""
        return datetime.fromtimestamp(self.now(), UTC)

    def wait(self, bell: Bell, until: float, at_most: float = inf, who: object = None) -> bool:
        raise NotImplementedError("no thread may wait here: there is only one")

    def call_at(self, loop: asyncio.AbstractEventLoop, when: float, callback: Callable[[], None]) -> Alarm:
        """Have the loop call back at the instant."""
        return loop.call_at(when, callback)


class _running:  # noqa: N801 - reads like a function
    """Let asyncio take a loop for the one that runs. Why no generator: it is entered for every turn."""

    def __init__(self, loop: ProcessLoop | None) -> None:
        self._loop = loop

    def __enter__(self) -> None:
        self._before = asyncio._get_running_loop()
        asyncio._set_running_loop(self._loop)

    def __exit__(self, *_: object) -> None:
        asyncio._set_running_loop(self._before)
