"""RateEnvelopeQueue: the queue on threads.

One lock guards the core. A worker settles what it finished and takes the next under one acquisition. A timer
thread has the alarm for what comes due. All are daemons: a program that ends without `stop()` does not wait for them.
"""

from __future__ import annotations

import threading
from collections import deque
from concurrent.futures import Executor, Future
from functools import partial
from math import inf
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar

from ._checks import Seconds, duration, refuse_awaitable
from .clock import Bell
from .core.lifecycle import QueueState
from .core.run import SUCCEEDED, Run
from .drivers.convoy import yield_lock
from .drivers.driver import Driver, inside
from .drivers.futures import LightFuture, ThreadWork, submitted
from .drivers.judge import Judgement
from .drivers.sending import check_sync
from .drivers.signals import Requests, code_of, is_within
from .drivers.timer import ThreadWorker, Timer
from .drivers.waiters import Ring, Waiters, ring_all
from .envelope import Envelope, is_coroutine_function
from .errors import BadFieldsError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from .core.run import Call

P = ParamSpec("P")
T = TypeVar("T")

_NO_DELAY = 0
_NEXT_TRY = 1.0
"""Seconds until a replacement is tried again that could not be started."""


class RateEnvelopeQueue(Driver[ThreadWorker], Executor):
    """A queue of envelopes with a fixed pool of worker threads. It is also an Executor."""

    def _prepare(self) -> None:
        if is_coroutine_function("advance", getattr(self._clock, "advance", len)):
            raise BadFieldsError(f"clock must be one for threads, such as ManualClock, got {self._clock!r}")
        self._lock: threading.Lock = threading.Lock()
        self._timer = Timer(self._core, self._pool, self._lock, self._clock)  # a new one for each start
        self._requests = Requests()  # what a signal handler could not do itself

    def start(self) -> None:
        """Start the workers; what was sent before runs first, in order. A running queue goes on as it is."""
        self._wait(self._try_start, self._waiters.stoppers, None)

    def send(
        self,
        *envelopes: Envelope[Any],
        delay: Seconds = _NO_DELAY,
        block: bool = False,
        timeout: Seconds | None = None,
    ) -> None:
        """Admit all envelopes, or none and say why; with `block`, wait for room until the timeout is over."""
        if not block and len(envelopes) == 1:
            envelope = envelopes[0]
            if envelope.__class__ is Envelope and envelope._lane == 0 and not self._on_send:
                core = self._core
                if delay is not _NO_DELAY:
                    wait = duration("delay", delay)
                elif self._places.get(envelope).__class__ is float and not core.may_refuse:
                    return  # it waits already: nothing changes, so no lock is needed
                else:
                    wait = 0
                if self._lock.locked():
                    yield_lock(self._lock)
                # Why `with`, which costs more: a KeyboardInterrupt between an acquire and its try would keep the lock.
                with self._lock:
                    now = self._now()
                    if wait:
                        core.delay_one(envelope, now, now + wait)
                        if now + wait < self._timer.alarm_at:
                            self._wake()
                    else:
                        core.add_one(envelope, now)
                        if self._pool.idle and not self._pool.is_waking:
                            self._wake()
                return
        limit = None if timeout is None else duration("timeout", timeout)
        entries = self._entries(envelopes, delay)
        if block and self._wait(partial(self._try_send, entries), self._waiters.senders, limit):
            return
        with self._lock:
            self._add(entries)

    def stop(self, timeout: Seconds | None = None, *, keep_waiting: bool = True) -> bool:
        """Stop as the queue's stop mode says; have all workers ended?

        What waits stays for the next start, or is dropped with `keep_waiting=False`. From inside an
        envelope, or from a signal handler that broke into a call of this queue, it begins the stop
        and returns False.
        """
        limit = None if timeout is None else duration("timeout", timeout)
        return self._end(drains=self._drains, keeps=keep_waiting, waits=self._waiting, timeout=limit)

    def terminate(self) -> list[Envelope[Any]]:
        """End the queue for good, without waiting for what runs; returns the envelopes that will never run."""
        if self._is_reentrant():
            if not self._defer_to_timer(self._begin_terminate):
                threading.Thread(target=self._begin_terminate, name=f"{self._name}-terminate").start()
            return []
        return self._begin_terminate()

    def join(self, timeout: Seconds | None = None) -> bool:
        """Wait until nothing is ready or running; False when the timeout is over before."""
        if inside.get() is self:
            raise RuntimeError("join() from inside an envelope would wait for itself")
        limit = None if timeout is None else duration("timeout", timeout)
        return self._wait(self._is_quiet, self._waiters.joiners, limit)

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run `fn(*args, **kwargs)` in the queue; its result is the future's."""
        if is_coroutine_function("fn", fn):
            raise BadFieldsError(
                f"fn is a coroutine function, which needs AsyncRateEnvelopeQueue, got {fn!r}"
            )
        future: LightFuture[T] = LightFuture()
        self.send(submitted(ThreadWork(fn, args, kwargs, future)))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Run what is ready, whatever the stop mode, and terminate; what never started is cancelled.

        With `cancel_futures`, what waits is cancelled at once, and only what runs is waited for.
        """
        self._terminates_at_end = True
        if self._end(drains=not cancel_futures, keeps=not cancel_futures, waits=wait, timeout=None):
            self._begin_terminate()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _check_sendable(self, envelope: Envelope[Any]) -> None:
        super()._check_sendable(envelope)
        check_sync(envelope)

    # Waiting and waking

    def _wait(self, attempt: Callable[[Ring], bool], waiters: deque[Ring], timeout: float | None) -> bool:
        """Sleep until the attempt succeeds; False when the timeout is over before."""
        until = inf if timeout is None else monotonic() + timeout
        bell = Bell()
        sleeping = self._waiters.until(attempt, waiters, bell.ring)
        try:
            for _ in sleeping:
                remaining = until - monotonic()
                if remaining <= 0:
                    return False
                bell.wait(remaining)
        finally:
            sleeping.close()
        return True

    def _set_alarm(self) -> None:
        self._timer.set_alarm()

    def _park(self, worker: ThreadWorker) -> bool:
        if not self._core.follows_wall:
            worker.set_alarm(self._now(), self._core.next_due, self._clock.tick)
        stays = super()._park(worker)
        if not stays:
            worker.clear_alarm()
        return stays

    def _on_stopped(self) -> None:
        self._timer.bell.ring()

    def _start_workers(self) -> None:
        self._timer.has_ended = True
        # Why before the workers: one may go idle at once.
        self._timer = Timer(self._core, self._pool, self._lock, self._clock)
        for _ in range(self._workers):
            self._start_worker()
        self._start_thread("timer", self._timer.run, self._poll_locked, self._requests.do_all)

    def _start_worker(self) -> None:
        worker = ThreadWorker(self._timer)
        self._start_thread(f"worker-{len(self._pool.workers) + 1}", self._work, worker)
        self._pool.workers.append(worker)  # it waits for the lock, which is held here

    def _start_thread(self, role: str, target: Callable[..., None], *args: object) -> None:
        threading.Thread(target=target, args=args, name=f"{self._name}-{role}", daemon=True).start()

    def _end(self, *, drains: bool, keeps: bool, waits: bool, timeout: float | None) -> bool:
        """Begin the stop and wait for its end, where that is wanted and possible."""
        if self._is_reentrant():
            self._defer_to_timer(partial(self._begin_stop, drains=drains, keeps=keeps))
            return False
        starts = self._begin_stop(drains=drains, keeps=keeps)
        if inside.get() is self:
            return False
        return self._wait(partial(self._has_ended, starts), self._waiters.stoppers, timeout if waits else 0)

    def _is_reentrant(self) -> bool:
        """Is this a signal handler that interrupted a call of this queue, which may hold the lock?"""
        return is_within(_HOLDERS, self, self._waiters)

    def _defer_to_timer(self, request: Callable[[], object]) -> bool:
        """Have it done by the timer, which may wait for the lock; False where there is none."""
        # Why not by a new thread: the signal may have interrupted the start of one, which holds a lock, too.
        if self._core.state not in (QueueState.RUNNING, QueueState.STOPPING):
            return False
        self._requests.add(request)
        self._timer.bell.ring()
        return True

    def _parent_cancelled(self) -> None:
        if not self._is_reentrant():
            super()._parent_cancelled()
        elif not self._defer_to_timer(super()._parent_cancelled):
            threading.Thread(target=super()._parent_cancelled, name=f"{self._name}-cancel").start()

    # The threads

    def _work(self, me: ThreadWorker) -> None:
        """A worker: settle, take and run, until there is nothing left to take and the queue stops."""
        inside.set(self)
        core, pool, lock, now_of = self._core, self._pool, self._lock, self._now
        judge, forgets = self._judge.judge, self._judge.forgets
        rings: Sequence[Ring] = ()
        stays = True
        waiters, has_stamps = self._waiters, bool(self._stamps)
        run: Run | None = None
        judged: Judgement | None = None
        envelope: Envelope[Any] | None
        is_fresh = True  # has it run something that was sent since it last found nothing?
        while True:
            while not lock.acquire(False):
                yield_lock(lock)
            try:
                now = now_of()
                if run is not None and (judged is not None or me.is_retired):
                    self._settle(run, judged, now)
                    run = judged = None
                run = me.run = None if me.is_retired else core.take(now, run)
                has_news = run is None or pool.idle or waiters.has_any or core.removed
                if has_news:
                    # Why not at once: a sender needs the interpreter, and has more to send. To let it go on is
                    # far cheaper than to fall asleep and be woken.
                    stays = run is not None or (is_fresh and not me.is_retired) or self._park(me)
                    if pool.idle and not pool.is_waking:
                        self._wake()
                    rings = waiters.to_wake() if run is None or waiters.senders or waiters.watchers else ()
            finally:
                lock.release()
            if has_news:
                if core.removed:
                    self._release_removed()
                ring_all(rings)
            if run is None:
                envelope = handling = answer = (
                    None  # Why: a worker that sleeps must not keep the last one alive
                )
                if is_fresh and stays:
                    is_fresh = False
                    sleep(0)
                elif not stays or not self._sleep(me):
                    break
                continue
            is_fresh = True
            envelope = run.envelope
            handling = envelope._handling
            if has_stamps or (handling is not None and handling.is_staged):
                judged = self._drive(run, self._calls.of(run, envelope._invoke))
                continue
            # Why apart: a bare call needs no generator, and most envelopes are no more.
            try:
                answer = envelope._invoke(run, envelope)
                if answer is not None:
                    refuse_awaitable(answer)
            except BaseException as error:
                judged = self._drive(run, self._calls.after(run, error))
            else:
                if run._cancelled is not None:
                    judged = self._drive(run, self._calls.after(run, None))
                elif handling is not None and handling.schedule is not None:
                    # Why not always `judge`: it is a call more for each tick.
                    judged = judge(run, SUCCEEDED) if forgets or handling.ticks is None else None
                    is_fresh = False  # the next tick comes by the alarm, not from a sender
        if self._terminates_at_end and self._core.state is QueueState.STOPPED:
            self._begin_terminate()

    def _sleep(self, me: ThreadWorker) -> bool:
        """Until it is woken to work (True) or retired."""
        until = me.wakes_at
        if until == inf:
            me.bell.wait()
        elif self._sleep_until(me, until):
            return True
        # Why without the lock: the worst that a race can do is wake one more.
        self._pool.is_waking = False
        return not me.is_retired

    def _sleep_until(self, me: ThreadWorker, until: float) -> bool:
        """Sleep until the next tick (True), or until it is woken or retired before."""
        rang = self._clock.wait(me.bell, until)
        if self._lock.locked():
            yield_lock(self._lock)
        with self._lock:
            if me in self._pool.idle:
                self._pool.idle.remove(me)
                me.clear_alarm()
                return True
            if not rang:
                me.bell.wait(0)  # it rang meanwhile, and must not do so for the next sleep
            return False

    def _drive(self, run: Run, calls: Iterator[Call]) -> Judgement | None:
        """Make the calls of a run, and judge what came of it."""
        for function, args in calls:
            if self._replace_stuck and args[0]._until < self._timer.alarm_at:
                self._timer.bell.ring()
            try:
                run.answer = function(*args)
                refuse_awaitable(run.answer)
            except BaseException as error:
                run.raised = error
        return self._judge.judge(run, run.outcome)

    def _poll(self) -> None:
        with self._lock:
            self._poll_locked(self._now())

    def _poll_locked(self, now: float) -> float:
        """* Wake a worker for what has come due, and replace the stuck; returns when the next would be."""
        self._wall.check(now)
        self._core.promote(now)
        self._pool.is_waking = False  # the insurance: if a wake-up was lost, this is another
        self._pool.wake(now)
        return self._replace_the_stuck(now) if self._replace_stuck else inf

    def _next_alarm_at(self) -> float:
        with self._lock:
            limits = [worker.limit_at for worker in self._pool.workers] if self._replace_stuck else []
        return min([super()._next_alarm_at(), *limits])

    def _replace_the_stuck(self, now: float) -> float:
        """* Hire for each worker that overruns; returns when the next one would."""
        next_limit = inf
        for worker in list(self._pool.workers):
            limit = worker.limit_at
            if limit > now:
                next_limit = min(next_limit, limit)
                continue
            try:
                self._start_worker()
            except RuntimeError:
                return now + _NEXT_TRY  # no thread is to be had now
            worker.is_stuck = worker.is_retired = True
        return next_limit


# The calls that may hold the lock when a signal breaks into the main thread.
_HOLDERS = code_of(
    RateEnvelopeQueue.send,
    Driver.blacklist,
    Driver.stats,
    Driver.metrics,
    Driver.explain,
    Driver.cancel,
    Driver.pause,
    Driver.resume,
    Driver.allow,
    Driver._release_removed,
    Driver._begin_stop,
    Driver._begin_terminate,
    Waiters.until,
)


def simple_drain_queue(name: str, workers: int) -> RateEnvelopeQueue:
    """A queue that waits and drains when it stops, with room for a million envelopes."""
    return RateEnvelopeQueue(name, workers=workers, stop_mode="drain", waiting=True, capacity=1_000_000)


def simple_stop_queue(name: str, workers: int) -> RateEnvelopeQueue:
    """A queue that neither waits nor drains when it stops, with room for a million envelopes."""
    return RateEnvelopeQueue(name, workers=workers, stop_mode="stop", waiting=False, capacity=1_000_000)
