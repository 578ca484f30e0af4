"""Many threads or tasks at once: nothing is lost, nothing runs twice, and the accounts are exact at the end."""

from __future__ import annotations

import asyncio
import os
import random
import threading
from functools import partial
from typing import Any

import pytest

from rate_envelope_queue import (
    AsyncRateEnvelopeQueue,
    Context,
    Envelope,
    QueueNotRunningError,
    RateEnvelopeQueue,
    RateEnvelopeQueueError,
    RateLimited,
    every,
    retry_now,
)

from .support.waiting import LIMIT

SEED = int(os.environ.get("SEED", "0"))
"""What all seeds are counted from: `make test_race` takes another one each time."""


def test_sixteen_threads_send_cancel_stop_and_start_and_the_accounts_are_exact() -> None:
    queue = RateEnvelopeQueue("q", workers=4, capacity=200)
    running: set[int] = set()
    runs: list[int] = []
    overlaps: list[int] = []
    guard = threading.Lock()

    def work(ctx: Context, envelope: Envelope[Any]) -> None:
        with guard:
            if id(envelope) in running:
                overlaps.append(1)
            running.add(id(envelope))
        runs.append(1)
        try:
            if envelope.payload == "fails" and ctx.attempt < 3:
                raise ValueError("again")
        finally:
            with guard:
                running.discard(id(envelope))

    shared = [Envelope(work, id=i, key=i % 3 or None) for i in range(20)]

    def act(seed: int) -> None:
        rng = random.Random(SEED + seed)
        for _ in range(300):
            try:
                choice = rng.random()
                if choice < 0.5:
                    queue.send(
                        Envelope(work, payload="fails", failure_hook=lambda ctx, e, error: retry_now())
                    )
                elif choice < 0.8:
                    queue.send(*rng.sample(shared, 3), delay=rng.choice((0, 0, 0.0005)))
                elif choice < 0.9:
                    queue.cancel(rng.choice(shared))
                elif choice < 0.92:
                    queue.stop(keep_waiting=rng.random() < 0.7)
                elif choice < 0.94:
                    queue.pause()
                else:
                    queue.resume()
                    queue.start()
                assert queue.occupied <= 200
            except RateEnvelopeQueueError:
                pass

    threads = [threading.Thread(target=act, args=(seed,)) for seed in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
        assert not thread.is_alive(), "deadlock"
    queue.resume()
    queue.start()
    assert queue.stop(LIMIT, keep_waiting=False)
    stats = queue.stats()
    assert not overlaps
    assert (stats.occupied, stats.ready, stats.running, stats.delayed) == (0, 0, 0, 0)
    assert len(runs) == stats.done + stats.failed
    assert not running
    assert queue.terminate() == []


def test_sixteen_threads_send_and_every_envelope_runs_exactly_once() -> None:
    runs: list[object] = []
    with RateEnvelopeQueue("q", workers=8) as queue:

        def produce(base: int) -> None:
            for i in range(500):
                queue.send(Envelope(lambda ctx, envelope: runs.append(envelope.id), id=base + i))

        producers = [threading.Thread(target=produce, args=(1000 * n,)) for n in range(16)]
        for producer in producers:
            producer.start()
        for producer in producers:
            producer.join(LIMIT)
        assert queue.join(LIMIT)
    assert len(runs) == len(set(runs)) == 8000
    stats = queue.stats()
    assert (stats.added, stats.done, stats.occupied) == (8000, 8000, 0)


@pytest.mark.parametrize("seed", range(3))
def test_starts_stops_and_terminates_at_random_do_not_deadlock(seed: int) -> None:
    queue = RateEnvelopeQueue("q", workers=2)

    def act(seed: int) -> None:
        rng = random.Random(SEED + seed)
        for _ in range(60):
            try:
                rng.choice((queue.start, queue.stop, lambda: queue.send(Envelope(lambda ctx, e: None))))()
            except RateEnvelopeQueueError:
                pass
        if seed % 4 == 3:
            queue.terminate()

    threads = [threading.Thread(target=act, args=(seed * 16 + i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
        assert not thread.is_alive(), "deadlock"
    queue.terminate()
    assert queue.join(LIMIT)
    assert queue.stop(LIMIT)
    assert queue.occupied == 0


@pytest.mark.parametrize("seed", range(4))
def test_whatever_comes_due_is_run_at_once_between_starts_and_stops(seed: int) -> None:
    """At once: long before the timer's insurance against a lost wake-up."""
    rng = random.Random(SEED + seed)
    queue = RateEnvelopeQueue("q", workers=rng.randint(1, 4), stop_mode=rng.choice(("drain", "stop")))
    queue.send(*(every(rng.choice((0.002, 0.004, 0.012)), _nothing) for _ in range(rng.randint(1, 3))))
    for _ in range(25):
        queue.start()
        sent = [threading.Event() for _ in range(rng.randint(1, 12))]
        for event in sent:
            delay = rng.choice((0, 0, 0.0005, 0.002, 0.005, 0.008, 0.011, 0.02))
            queue.send(Envelope(partial(_set, event)), delay=delay)
            if rng.random() < 0.1:
                queue.pause()
                queue.resume()
            if rng.random() < 0.5:
                queue.submit(threading.Event().wait, rng.random() * 0.004)
        assert all(event.wait(5) for event in sent), "it takes the insurance"
        assert queue.stop(5)
    queue.terminate()


@pytest.mark.parametrize("seed", range(4))
def test_drains_that_are_paused_and_go_on_end_at_once_whatever_the_limits(seed: int) -> None:
    rng, work = random.Random(SEED + seed), _Limited(random.Random(SEED + seed))
    queue = RateEnvelopeQueue("q", workers=rng.randint(2, 4), replace_stuck=True, **_LIMITS)
    queue.send(every(rng.choice((0.002, 0.004, 0.012)), _nothing))
    for _ in range(15):
        queue.start()
        queue.send(*work.envelopes(rng), delay=rng.choice((0, 0.0005, 0.005)))
        queue.submit(threading.Event().wait, 0.002 + rng.random() * 0.006)
        threading.Event().wait(rng.random() * 0.006)
        if rng.random() < 0.7:
            queue.pause()
        queue.send(*work.envelopes(rng))
        queue.stop(0)
        queue.resume()
        assert queue.stop(5), "it takes the insurance"
    queue.start()
    assert queue.stop(5, keep_waiting=False)
    assert queue.stats().occupied == 0
    assert work.most == 1
    queue.terminate()


@pytest.mark.parametrize("seed", range(4))
def test_the_asyncio_queue_ends_at_once_whatever_is_sent_cancelled_and_limited(seed: int) -> None:
    async def main() -> None:
        rng, work = random.Random(SEED + seed), _Limited(random.Random(SEED + seed))
        queue = AsyncRateEnvelopeQueue("q", workers=rng.randint(2, 4), replace_stuck=True, **_LIMITS)
        await queue.send(every(rng.choice((0.002, 0.004, 0.012)), _nothing))

        async def act(rng: random.Random) -> None:
            for _ in range(15):
                await queue.start()
                envelopes = work.envelopes(rng)
                try:
                    await queue.send(*envelopes, delay=rng.choice((0, 0.0005, 0.005)))
                    future = queue.submit(asyncio.sleep, rng.random() * 0.004)
                    await asyncio.sleep(rng.random() * 0.002)
                    future.cancel()
                except QueueNotRunningError:
                    pass  # another has stopped it
                queue.cancel(rng.choice(envelopes))
                if rng.random() < 0.7:
                    queue.pause()
                await queue.stop(0)
                queue.resume()
                assert await queue.stop(5), "it takes the insurance"

        async with asyncio.timeout(LIMIT), asyncio.TaskGroup() as group:
            for number in range(3):
                group.create_task(act(random.Random(SEED + seed * 10 + number)))
        await queue.start()
        assert await queue.stop(5, keep_waiting=False)
        assert queue.stats().occupied == 0
        assert work.most == 1
        await queue.terminate()

    asyncio.run(main())


_LIMITS: dict[str, Any] = {"rates": {"paced": "500/s"}, "concurrency": {"single": 1}}


class _Limited:
    """Work of several types that is limited now and then; counts how many of the single ones run at once."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._guard = threading.Lock()
        self._running = self.most = 0

    def __call__(self, ctx: Context, envelope: Envelope[Any]) -> None:
        if envelope.type != "single":
            if self._rng.random() < 0.2:
                raise RateLimited(self._rng.choice((0.001, 0.005)))
            return
        with self._guard:
            self._running += 1
            self.most = max(self.most, self._running)
        threading.Event().wait(0.001)
        with self._guard:
            self._running -= 1

    def envelopes(self, rng: random.Random) -> list[Envelope[Any]]:
        types = ("", "paced", "paced", "single")
        return [Envelope(self, type=rng.choice(types), deadline=rng.choice((0, 0.0005))) for _ in range(4)]


def _set(event: threading.Event, ctx: Context, envelope: Envelope[Any]) -> None:
    event.set()


def _nothing(ctx: Context, envelope: Envelope[Any]) -> None: ...
