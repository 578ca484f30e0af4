"""AsyncRateEnvelopeQueue: the queue on asyncio.

The workers are tasks of one event loop, so the core needs no lock. There is one alarm for the nearest
due time or deadline. Sync `invoke`s run in threads.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from contextvars import copy_context
from functools import partial
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar, cast, overload

from ._checks import Seconds, duration, is_awaitable
from .core.lifecycle import QueueState
from .core.run import SUCCEEDED, Run
from .drivers.aio_worker import AsyncWork, TaskWorker, capture, working
from .drivers.driver import Driver, inside
from .drivers.futures import submitted
from .drivers.judge import Judgement
from .drivers.loop_alarm import LoopAlarm
from .drivers.waiters import Ring, ring_all
from .envelope import ASYNC, SPECIAL, Envelope, is_coroutine_function
from .errors import BadFieldsError, QueueNotRunningError, QueueTerminatedError

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Callable, Coroutine, Iterator

    from .clock import LoopClock
    from .core.run import Call
    from .envelope import Invoker

P = ParamSpec("P")
T = TypeVar("T")

_NO_DELAY = 0
_TURN = 64
"""Envelopes a worker runs before it lets the loop do something else, even if none of them awaited."""
_MANY_THREADS = 10_000  # Why: a thread is made only when none is idle, so the workers are the bound


class AsyncRateEnvelopeQueue(Driver[TaskWorker]):
    """A queue of envelopes with a fixed pool of worker tasks, on one event loop at a time."""

    _loop: asyncio.AbstractEventLoop

    def _prepare(self) -> None:
        self._lock = nullcontext()
        self._alarm: LoopAlarm | None = None  # there is one while there are workers
        self._threads: ThreadPoolExecutor | None = None  # for sync invokes; made when the first one runs
        self._tasks: set[asyncio.Task[None]] = set()  # the workers of this start
        if not hasattr(self._clock, "call_at"):
            raise BadFieldsError(
                f"clock must be one for asyncio, such as AsyncManualClock, got {self._clock!r}"
            )

    async def start(self) -> None:
        """Start the workers; what was sent before runs first, in order. A running queue goes on as it is."""
        await self._wait(self._try_start, self._waiters.stoppers, None)

    async def send(
        self,
        *envelopes: Envelope[Any],
        delay: Seconds = _NO_DELAY,
        block: bool = False,
        timeout: Seconds | None = None,
    ) -> None:
        """Admit all envelopes, or none and say why; with `block`, wait for room until the timeout is over."""
        if block:
            limit = None if timeout is None else duration("timeout", timeout)
            entries = self._entries(envelopes, delay)
            if not await self._wait(partial(self._try_send, entries), self._waiters.senders, limit):
                self._add(entries)
            return
        self._send(envelopes, delay)

    def send_nowait(self, *envelopes: Envelope[Any], delay: Seconds = _NO_DELAY) -> None:
        """`send` without waiting, as a plain call."""
        self._send(envelopes, delay)

    def _send(self, envelopes: tuple[Envelope[Any], ...], delay: Seconds) -> None:
        if self._pool.idle and asyncio._get_running_loop() is not self._loop:
            # Why only then: to wake a worker from elsewhere does not work. Where none sleeps, none is woken.
            raise RuntimeError(
                f"queue {self._name!r} runs on an event loop that is not this thread's: use send_threadsafe()"
            )
        if delay is _NO_DELAY and len(envelopes) == 1:
            envelope = envelopes[0]
            if envelope.__class__ is Envelope and envelope._lane < SPECIAL and not self._on_send:
                core = self._core
                if self._places.get(envelope).__class__ is float and not core.may_refuse:
                    return  # it waits already: nothing changes
                core.add_one(envelope, self._now())
                if self._pool.idle and not self._pool.is_waking:
                    self._wake()
                return
        self._add(self._entries(envelopes, delay))

    def send_threadsafe(self, *envelopes: Envelope[Any], delay: Seconds = _NO_DELAY) -> Future[None]:
        """`send` from another thread; the future has its outcome."""
        if self.state is QueueState.TERMINATED:
            raise QueueTerminatedError(f"queue {self._name!r} was terminated and takes no envelopes")
        if not self._pool.workers:
            raise QueueNotRunningError(f"queue {self._name!r} runs on no event loop: start it first")
        return asyncio.run_coroutine_threadsafe(self.send(*envelopes, delay=delay), self._loop)

    async def stop(self, timeout: Seconds | None = None, *, keep_waiting: bool = True) -> bool:
        """Stop as the queue's stop mode says; have all workers ended?

        What waits stays for the next start, or is dropped with `keep_waiting=False`. From inside an
        envelope it begins the stop and returns False.
        """
        limit = None if timeout is None else duration("timeout", timeout)
        tasks = self._tasks
        starts = self._begin_stop(drains=self._drains, keeps=keep_waiting)
        if inside.get() is self:
            return False
        ended = await self._wait(
            partial(self._has_ended, starts), self._waiters.stoppers, limit if self._waiting else 0
        )
        if ended and self._waiting and tasks:
            await asyncio.wait(tasks)  # they have nothing left to do but to end
        return ended

    async def terminate(self) -> list[Envelope[Any]]:
        """End the queue for good, without waiting for what runs; returns the envelopes that will never run."""
        return self._begin_terminate()

    async def join(self, timeout: Seconds | None = None) -> bool:
        """Wait until nothing is ready or running; False when the timeout is over before."""
        if inside.get() is self:
            raise RuntimeError("join() from inside an envelope would wait for itself")
        limit = None if timeout is None else duration("timeout", timeout)
        return await self._wait(self._is_quiet, self._waiters.joiners, limit)

    @overload
    def submit(
        self, fn: Callable[P, Coroutine[Any, Any, T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> asyncio.Future[T]: ...
    @overload
    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]: ...
    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> asyncio.Future[Any]:
        """Run `fn(*args, **kwargs)` in the queue, a plain function in a thread; its result is the future's.

        Cancelling the future takes the call out of the queue, or breaks it off.
        """
        call = fn if is_coroutine_function("fn", fn) else partial(self._in_thread, fn)
        work = AsyncWork(call, args, kwargs, asyncio.get_running_loop().create_future())
        envelope = submitted(work, is_async=True)
        self.send_nowait(envelope)
        work.future.add_done_callback(lambda future: future.cancelled() and self.cancel(envelope))
        return work.future

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    # Waiting and waking

    async def _wait(
        self, attempt: Callable[[Ring], bool], waiters: deque[Ring], timeout: float | None
    ) -> bool:
        """Wait until the attempt succeeds; False when the timeout is over before."""
        until = inf if timeout is None else monotonic() + timeout
        if not self._pool.workers:
            self._loop = asyncio.get_running_loop()
        bell = asyncio.Event()
        sleeping = self._waiters.until(attempt, waiters, bell.set)
        try:
            for _ in sleeping:
                remaining = until - monotonic()
                if remaining <= 0:
                    return False
                try:
                    async with asyncio.timeout(None if until == inf else remaining):
                        await bell.wait()
                except TimeoutError:
                    pass  # one more attempt
                bell.clear()
        finally:
            sleeping.close()
        return True

    def _start_workers(self) -> None:
        self._tasks = set()
        self._alarm = LoopAlarm(cast("LoopClock", self._clock), self._loop, self._poll)
        for _ in range(self._workers):
            self._start_worker()

    def _start_worker(self) -> None:
        assert self._alarm is not None
        worker = TaskWorker(self, self._alarm)
        self._pool.workers.append(worker)
        name = f"{self._name}-worker-{len(self._pool.workers)}"
        worker.task = self._loop.create_task(self._work(worker), name=name)
        self._tasks.add(worker.task)
        worker.task.add_done_callback(partial(self._on_task_done, worker))

    def _on_task_done(self, worker: TaskWorker, task: asyncio.Task[None]) -> None:
        """A worker's task has ended; if it did not say so itself (cancelled before it began), stop."""
        self._tasks.discard(task)
        if worker in self._pool.workers:
            self._pool.workers.remove(worker)
            self._on_task_cancelled(worker)

    def _on_stopped(self) -> None:
        if self._alarm is not None:
            self._alarm.close()
        if self._threads is not None:
            self._threads.shutdown()  # no wait: every call in it has returned
        self._alarm = self._threads = None

    def _on_task_cancelled(self, worker: TaskWorker) -> None:
        """Somebody cancelled a worker's task, as a closing loop does: stop, and keep what waits."""
        worker.is_retired = True
        self._begin_stop(drains=False, keeps=True)

    def _parent_cancelled(self) -> None:
        self._in_loop(super()._parent_cancelled)

    def _in_loop(self, callback: Callable[[], None]) -> None:
        """Have the queue's loop call back, or call at once where nothing runs on one."""
        if self._pool.workers or self._waiters.has_any:
            # Why also within the loop: a signal handler may have broken into its sleep, which then goes on.
            self._loop.call_soon_threadsafe(callback)
        else:
            callback()

    # Alarms

    def _set_alarm(self) -> None:
        if self._alarm is not None:
            self._alarm.set(self._core.next_due)

    def _next_alarm_at(self) -> float:
        return min([super()._next_alarm_at(), *(worker.limit_at for worker in self._pool.workers)])

    def _poll(self) -> None:
        """Wake a worker for what has come due, break off what overruns, and set the next alarm."""
        if self._alarm is not None:
            self._alarm.clear()
        now, next_limit = self._now(), inf
        for worker in self._pool.workers:
            if worker.limit_at <= now:
                worker.limit_at = inf
                worker.break_off(worker.run)
            next_limit = min(next_limit, worker.limit_at)
        self._wall.check(now)
        self._core.promote(now)
        self._pool.is_waking = False  # the insurance: if a wake-up was lost, this is another
        self._wake()
        if self._alarm is not None:
            self._alarm.set(next_limit)

    # The workers

    async def _work(self, me: TaskWorker) -> None:
        """A worker: settle, take and run, until there is nothing left to take and the queue stops."""
        inside.set(self)
        working.set(me)
        core, pool, now_of = self._core, self._pool, self._now
        waiters, has_stamps = self._waiters, bool(self._stamps)
        run: Run | None = None
        judged: Judgement | None = None
        envelope: Envelope[Any] | None
        turn = _TURN
        while True:
            now = now_of()
            turn -= 1
            if run is not None and (judged is not None or turn < 0 or me.is_retired):
                self._settle(run, judged, now)
                run = me.run = judged = None
            if turn < 0:
                turn = _TURN
                await self._yield_to_loop(me)
                now = now_of()
            run = me.run = None if me.is_retired else core.take(now, run)
            if core.removed:
                self._release_removed()
            if run is None:
                me.bell = self._loop.create_future()  # Why before it rests: from then on it may be rung
            stays = run is not None or self._park(me)
            if pool.idle and not pool.is_waking:
                self._wake()
            if waiters.has_any and (run is None or waiters.senders or waiters.watchers):
                ring_all(waiters.to_wake())
            if run is None:
                envelope = handling = None  # Why: a worker that sleeps must not keep the last one alive
                if stays and await self._sleep(me):
                    turn = _TURN
                    continue
                break
            run.worker = me
            envelope = run.envelope
            handling = envelope._handling
            if has_stamps or (handling is not None and handling.is_staged):
                judged = await self._drive(me, run, self._calls.of(run, self._innermost(envelope)))
                continue
            # Why apart: a bare call needs no generator, and most envelopes are no more.
            try:
                if envelope._lane & ASYNC:
                    await envelope._invoke(run, envelope)
                else:
                    await self._in_thread(envelope._invoke, run, envelope)
            except BaseException as error:
                judged = await self._drive(me, run, self._calls.after(run, me.explain(error, run)))
            else:
                if run._cancelled is not None:
                    me.recover()
                    judged = await self._drive(me, run, self._calls.after(run, None))
                elif handling is not None and handling.schedule is not None:
                    judged = self._judge.judge(run, SUCCEEDED)

    async def _sleep(self, me: TaskWorker) -> bool:
        """Until it is woken to work (True) or retired."""
        try:
            await me.bell
        except asyncio.CancelledError:
            self._pool.is_waking = False
            if not me.is_retired:  # else the queue may be in its next start by now
                self._on_task_cancelled(me)
            return me in self._pool.workers
        self._pool.is_waking = False
        return not me.is_retired

    async def _yield_to_loop(self, me: TaskWorker) -> None:
        """Let the loop do something else."""
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            self._on_task_cancelled(me)

    async def _drive(self, me: TaskWorker, run: Run, calls: Iterator[Call]) -> Judgement | None:
        """Make the calls of a run, and judge what came of it."""
        for function, args in calls:
            try:
                result = function(*args)
                if is_awaitable(result):
                    result = await me.within(args[0], result)
                run.answer = result
            except BaseException as error:
                run.raised = error
        return self._judge.judge(run, run.outcome)

    def _innermost(self, envelope: Envelope[Any]) -> Invoker:
        """The call that the stamps surround: it returns an awaitable, also for a sync `invoke`."""
        if is_coroutine_function("invoke", envelope._invoke):
            return envelope._invoke
        return partial(self._in_thread, envelope._invoke)

    async def _in_thread(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call it in a thread and wait until it has returned, also when the run is broken off meanwhile."""
        if self._threads is None:
            self._threads = ThreadPoolExecutor(_MANY_THREADS, thread_name_prefix=f"{self._name}-thread")
        future = self._loop.run_in_executor(
            self._threads, copy_context().run, capture, partial(call, *args, **kwargs)
        )
        lost: asyncio.CancelledError | None = None
        while not future.done():
            try:
                await asyncio.wait((future,))
            except asyncio.CancelledError as error:
                lost = self._on_cancel_in_thread(error)
        result, raised = future.result()
        if raised is not None:
            raise raised
        if lost is not None:
            raise lost
        return await result if is_awaitable(result) else result

    def _on_cancel_in_thread(self, error: asyncio.CancelledError) -> asyncio.CancelledError | None:
        """A call in a thread cannot be broken off: replace its worker if it overruns, and pass on other cancellations."""
        task = asyncio.current_task()
        for worker in self._pool.workers:
            if worker.task is task and worker.is_interrupted and task.cancelling() == 1:
                if self._replace_stuck and worker.run is not None and worker.run._until <= self._now():
                    worker.is_stuck = worker.is_retired = True
                    self._start_worker()
                return None
        return error
