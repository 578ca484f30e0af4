"""The thread queue next to `ThreadPoolExecutor`: no-op work, so that all the time is the queue's.

Our clock runs from the first `send` to the end of `join()`, the executor's from the first `submit` to the
end of `shutdown()`: until the last job has finished. Envelopes are made before the clock starts.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial
from itertools import repeat
from time import perf_counter
from typing import Any

from rate_envelope_queue import Context, Envelope, RateEnvelopeQueue, stamp

from .harness import Case, Goal, expect, micros_each

_EXECUTOR = "ThreadPoolExecutor"


def cases(*, quick: bool) -> list[Case]:
    n = 20_000 if quick else 100_000
    return [
        *(_one_off(n, workers) for workers in (1, 2, 8)),
        *(_hooks(n, workers) for workers in (1, 2, 8)),
        *(_submit(n, workers) for workers in (1, 8)),
        _resend(10 * n),
        _many_workers(n),
    ]


def _one_off(n: int, workers: int) -> Case:
    return Case(
        name="one-off-threads",
        row=_workers(workers),
        shows="one-off envelopes, one a send, metrics on, until the last has finished",
        unit="µs",
        ours=partial(send_all, plain, n, workers),
        peer=partial(_submit_and_forget, n, workers),
        peer_name=_EXECUTOR,
        goals=(Goal(">=", 8),),
    )


def _hooks(n: int, workers: int) -> Case:
    return Case(
        name="hooks-threads",
        row=_workers(workers),
        shows="the same with four hooks, a stamp and a deadline; the peer does nothing else",
        unit="µs",
        ours=partial(send_all, hooked, n, workers),
        peer=partial(_submit_and_forget, n, workers),
        peer_name=_EXECUTOR,
        goals=(Goal(">=", 3),),
    )


def _submit(n: int, workers: int) -> Case:
    return Case(
        name="submit",
        row=_workers(workers),
        shows="submit(fn) with a future that is kept, until all are done",
        unit="µs",
        ours=partial(_submit_all_to_queue, n, workers),
        peer=partial(_submit_all_to_executor, n, workers),
        peer_name=_EXECUTOR,
        goals=(Goal(">=", 2),),
    )


def _resend(n: int) -> Case:
    return Case(
        name="resend",
        shows="send of an envelope that waits already, to a paused queue",
        unit="µs",
        ours=partial(_send_again, n),
        goals=(Goal("<=", 0.2, on="ours"),),
    )


def _many_workers(n: int) -> Case:
    return Case(
        name="workers-1-to-64",
        shows="one-off envelopes with 64 workers, next to the same with 1: the ratio is that of the throughputs",
        unit="µs",
        ours=partial(send_all, plain, n, 64),
        peer=partial(send_all, plain, n, 1),
        peer_name="ours with 1 worker",
        goals=(Goal(">=", 0.67),),
    )


def _workers(workers: int) -> str:
    return f"{workers} worker{'s' * (workers > 1)}"


def noop(ctx: Context, envelope: Envelope[Any]) -> None:
    """The work, and every hook that is told nothing more."""


def plain() -> Envelope[None]:
    return Envelope(noop)


def hooked() -> Envelope[None]:
    return Envelope(
        noop,
        deadline=5,
        before_hook=noop,
        after_hook=noop,
        success_hook=noop,
        failure_hook=_on_failure,
        stamps=(_stamped,),
    )


@stamp
def _stamped(ctx: Context, envelope: Envelope[Any]) -> Generator[None, Any, None]:
    yield


def _on_failure(ctx: Context, envelope: Envelope[Any], error: BaseException) -> None:
    """Never called: nothing fails."""


def _do_nothing() -> None:
    """The executor's no-op."""


def send_all(make: Callable[[], Envelope[None]], n: int, workers: int, *, metrics: bool = True) -> float:
    """Microseconds an envelope, from the first send until the last has finished."""
    envelopes = [make() for _ in range(n)]
    with RateEnvelopeQueue("bench", workers=workers, metrics=metrics) as queue:
        send = queue.send
        began = perf_counter()
        for envelope in envelopes:
            send(envelope)
        queue.join()
        took = perf_counter() - began
        expect(queue.stats().done, n, "envelopes done")
    return micros_each(took, n)


def _submit_and_forget(n: int, workers: int) -> float:
    """Microseconds a call of the executor, whose future nobody wants: what `send` is to be compared with."""
    executor = ThreadPoolExecutor(workers)
    submit = executor.submit
    began = perf_counter()
    for _ in repeat(None, n):
        submit(_do_nothing)
    executor.shutdown(wait=True)
    return micros_each(perf_counter() - began, n)


def _submit_all_to_queue(n: int, workers: int) -> float:
    queue = RateEnvelopeQueue("bench", workers=workers)
    queue.start()
    return _submit_all(queue, n)


def _submit_all_to_executor(n: int, workers: int) -> float:
    return _submit_all(ThreadPoolExecutor(workers), n)


def _submit_all(executor: Executor, n: int) -> float:
    """Microseconds a call, from the first submit until all are done: our queue is an executor too."""
    submit = executor.submit
    began = perf_counter()
    futures = [submit(_do_nothing) for _ in range(n)]
    executor.shutdown(wait=True)
    took = perf_counter() - began
    expect(sum(future.done() for future in futures), n, "futures done")
    return micros_each(took, n)


def _send_again(n: int) -> float:
    """Microseconds a send; the loop around it, 0.01 µs, is counted too."""
    envelope = plain()
    with RateEnvelopeQueue("bench", workers=1) as queue:
        queue.pause()
        queue.send(envelope)
        send = queue.send
        began = perf_counter()
        for _ in repeat(None, n):
            send(envelope)
        took = perf_counter() - began
        expect(queue.stats().ready, 1, "envelopes ready")
    return micros_each(took, n)
