"""A run that simply succeeded: settled on the way to the next, it leaves the queue as if it had been settled apart."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from rate_envelope_queue.core.entry import Entry
from rate_envelope_queue.schedule import Every

from .conftest import FAILED_TICK, STOP_TYPE, TICK, Bench, env

if TYPE_CHECKING:
    from collections.abc import Callable

    from rate_envelope_queue.core.run import Run
    from rate_envelope_queue.envelope import Envelope

INTERVAL = 4.0
ANY_TIME = datetime(2000, 1, 1, tzinfo=UTC)


def a_ticker_that_runs(bench: Bench, schedule: Every) -> Run:
    ticker = env("ticker", type="sms", key="k", schedule=schedule)
    assert ticker._handling is not None
    assert ticker._handling.ticks is schedule, "or else there is only one way"
    first, beat = schedule.first_due(bench.now, ANY_TIME)
    bench.queue.add([Entry(ticker, first, None, beat)], bench.now)
    return bench.take()


def nothing(bench: Bench, run: Run) -> Run:
    return run


def cancelled(bench: Bench, run: Run) -> Run:
    assert bench.queue.cancel(run.envelope) == (True, run)
    return run


def its_type_stopped(bench: Bench, run: Run) -> Run:
    bench.send(env("other", type="sms"))
    bench.settle(bench.take(), STOP_TYPE)
    return run


def stopping(bench: Bench, run: Run) -> Run:
    bench.stop()
    return run


def stopping_for_good(bench: Bench, run: Run) -> Run:
    bench.stop(keeps=False)
    return run


def terminated(bench: Bench, run: Run) -> Run:
    bench.queue.terminate()
    return run


def sent_again(bench: Bench, run: Run) -> Run:
    bench.send(run.envelope)
    return run


def failed_before(bench: Bench, run: Run) -> Run:
    bench.settle(run, FAILED_TICK, 1, beat=run.beat)
    bench.now += 1
    return bench.take()


def a_one_off_under_its_key(bench: Bench, run: Run) -> Run:
    bench.send(env("once", key="k"))
    bench.settle(run, TICK, INTERVAL, beat=run.beat)
    return bench.take()


def one_at_a_fixed_rate_under_the_key_of_another_schedule(bench: Bench, run: Run) -> Run:
    """It finds no beat, or one that is none of its own."""
    bench.send(env("other", key="k", schedule=Every(INTERVAL, fixed_rate=True)))
    bench.settle(run, TICK, INTERVAL, beat=(ANY_TIME, bench.now))
    return bench.take()


def one_without_a_beat_under_its_key(bench: Bench, run: Run) -> Run:
    bench.send(env("other", key="k", interval=INTERVAL))
    bench.settle(run)
    return bench.take()


MEANWHILE = [
    *(nothing, cancelled, its_type_stopped, stopping, stopping_for_good, terminated),
    *(sent_again, failed_before, a_one_off_under_its_key),
    *(one_at_a_fixed_rate_under_the_key_of_another_schedule, one_without_a_beat_under_its_key),
]


@pytest.mark.parametrize("schedule", [Every(INTERVAL), Every(INTERVAL, fixed_rate=True)], ids=str)
@pytest.mark.parametrize("happens", MEANWHILE)
def test_it_makes_no_difference_on_which_way_a_success_is_settled(
    happens: Callable[[Bench, Run], Run], schedule: Every
) -> None:
    def left_by(*, apart: bool) -> tuple[Any, ...]:
        bench = Bench()
        run = happens(bench, a_ticker_that_runs(bench, schedule))
        bench.now += 1
        if apart:
            bench.queue.finish(run, bench.now)
            taken = bench.queue.take(bench.now)
        else:
            taken = bench.queue.take(bench.now, run)
        next_up = None if taken is None else (taken.envelope.id, taken.attempt, taken.beat)
        records = [(name, of.failures, of.beat) for name, of in bench.queue.records.items()]
        return (
            bench.places,
            bench.counters,
            next_up,
            names(bench.queue.removed),
            records,
            bench.queue.next_due,
        )

    assert left_by(apart=False) == left_by(apart=True)


def names(envelopes: list[Envelope[Any]]) -> list[object]:
    return [envelope.id for envelope in envelopes]
