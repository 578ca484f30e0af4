"""Handlers on threads: which are refused, what they may do, and that nothing keeps them."""

from __future__ import annotations

import functools
import logging
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from rate_envelope_queue import (
    BadFieldsError,
    Context,
    Envelope,
    QueueState,
    QueueTerminatedError,
    RateEnvelopeQueue,
    simple_drain_queue,
    simple_stop_queue,
    stamp,
)

from ..support.waiting import LIMIT


def test_an_envelope_that_has_run_can_be_collected(
    collect: Callable[[], None], queue: RateEnvelopeQueue
) -> None:
    class Payload: ...

    payload = Payload()
    reference = weakref.ref(payload)
    queue.send(Envelope(lambda ctx, envelope: None, payload=payload))
    del payload
    assert queue.join(LIMIT)
    while len(queue._pool.idle) < 2:
        threading.Event().wait(0.001)
    collect()
    assert reference() is None


def test_what_an_envelope_returned_can_be_collected(
    collect: Callable[[], None], queue: RateEnvelopeQueue
) -> None:
    class Answer: ...

    references: list[weakref.ref[Answer]] = []

    def work(ctx: Context, envelope: Envelope[Any]) -> Answer:
        answer = Answer()
        references.append(weakref.ref(answer))
        return answer

    queue.send(Envelope(work))
    assert queue.join(LIMIT)
    while len(queue._pool.idle) < 2:
        threading.Event().wait(0.001)
    collect()
    assert references[0]() is None


def test_a_failed_envelope_can_be_collected(
    collect: Callable[[], None], queue: RateEnvelopeQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Why: a log record that pytest keeps would keep the traceback, and with it the envelope.
    monkeypatch.setattr(logging.getLogger("rate_envelope_queue"), "propagate", False)

    class Payload: ...

    def fail(ctx: Context, envelope: Envelope[Any]) -> None:
        raise ValueError

    payload = Payload()
    reference = weakref.ref(payload)
    queue.send(Envelope(fail, payload=payload))
    del payload
    assert queue.join(LIMIT)
    while len(queue._pool.idle) < 2:
        threading.Event().wait(0.001)
    collect()
    assert reference() is None


def test_the_simple_queues_are_what_they_say() -> None:
    drain, stop = simple_drain_queue("d", 3), simple_stop_queue("s", 2)
    assert (drain.name, drain.capacity, drain._drains, drain._waiting) == ("d", 1_000_000, True, True)
    assert (stop.name, stop.capacity, stop._drains, stop._waiting) == ("s", 1_000_000, False, False)


def test_a_coroutine_function_is_refused_and_named(queue: RateEnvelopeQueue) -> None:
    async def coroutine(ctx: Context, envelope: Envelope[Any]) -> None: ...

    class Callable:
        async def __call__(self, ctx: Context, envelope: Envelope[Any]) -> None: ...

    for invoke in (coroutine, functools.partial(coroutine), Callable()):
        with pytest.raises(BadFieldsError, match=r"AsyncRateEnvelopeQueue.*invoke="):
            queue.send(Envelope(invoke))
    assert queue.stats().added == 0


def test_a_handler_knows_nothing_of_a_contextmanager_that_fails(queue: RateEnvelopeQueue) -> None:
    with pytest.raises(ZeroDivisionError), RateEnvelopeQueue("other", workers=1) as other:
        other.send(Envelope(lambda ctx, envelope: None))
        raise ZeroDivisionError
    assert other.state is QueueState.STOPPED
    assert other.stats().done == 1


def test_terminating_from_a_handler_ends_the_queue(queue: RateEnvelopeQueue) -> None:
    queue.send(Envelope(lambda ctx, envelope: queue.terminate()))
    assert queue.join(LIMIT)
    with pytest.raises(QueueTerminatedError):
        queue.send(Envelope(lambda ctx, envelope: None))


def test_a_stamp_shows_its_name() -> None:
    @stamp
    def timed(ctx: Context, envelope: Envelope[Any]) -> Any:
        yield

    assert timed.__name__ == "timed"


def test_a_start_that_gets_no_thread_leaves_a_queue_that_can_be_started_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    queue = RateEnvelopeQueue("q", workers=3)
    queue.send(Envelope(lambda ctx, envelope: None))
    started: list[str] = []
    start = threading.Thread.start

    def scarce(thread: threading.Thread) -> None:
        if len(started) == 2:
            raise RuntimeError("can't start new thread")
        started.append(thread.name)
        start(thread)

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", scarce)
        with pytest.raises(RuntimeError, match="can't start"):
            queue.start()
    assert queue.stop(LIMIT)
    assert (queue.state, queue.occupied) == (QueueState.STOPPED, 1)
    queue.start()
    assert queue.join(LIMIT)
    assert queue.stop(LIMIT)
    assert queue.stats().done == 1


def test_a_call_that_returns_a_coroutine_has_failed(queue: RateEnvelopeQueue) -> None:
    async def coroutine(ctx: Context, envelope: Envelope[Any]) -> None: ...

    for options in ({}, {"deadline": 5}):
        queue.send(Envelope(lambda ctx, envelope: coroutine(ctx, envelope), **options))  # type: ignore[arg-type]
    assert queue.join(LIMIT)
    assert queue.stats().failed == 2
