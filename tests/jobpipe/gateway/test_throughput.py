"""How fast jobs come to have each status, on a clock that is moved by hand."""

from __future__ import annotations

import msgspec
import pytest

from jobpipe.gateway.throughput import Throughput
from jobpipe.model.job import JobStatus
from jobpipe.stores.base import Counts, Tally
from jobpipe.testing import ManualTime


def totals(**numbers: int) -> Counts:
    """Totals of the queue `default`, by status."""
    return Counts(
        [Tally("default", "echo", JobStatus(name), 0, number) for name, number in numbers.items()],
        frozenset(),
    )


@pytest.fixture
def time() -> ManualTime:
    return ManualTime()


@pytest.fixture
def pace(time: ManualTime) -> Throughput:
    return Throughput(time)


def test_it_knows_no_pace_before_it_has_looked_twice(pace: Throughput) -> None:
    assert pace.per_second() == dict.fromkeys(JobStatus, 0.0)
    pace.note(totals(done=1_000))
    assert pace.per_second() == dict.fromkeys(JobStatus, 0.0)


def test_the_pace_is_the_difference_over_the_time(pace: Throughput, time: ManualTime) -> None:
    pace.note(totals(done=1_000, failed=5))
    time.elapse(2)
    pace.note(totals(done=1_010, failed=5, cancelled=1))
    found = pace.per_second()
    assert (found[JobStatus.DONE], found[JobStatus.FAILED], found[JobStatus.CANCELLED]) == (5, 0, 0.5)


def test_totals_that_were_forgotten_slow_nothing_down(pace: Throughput, time: ManualTime) -> None:
    gone = Tally("default", "gone", JobStatus.DONE, 0, 5_000)
    pace.note(Counts([gone, Tally("default", "echo", JobStatus.DONE, 0, 10)], frozenset()))
    time.elapse(2)
    pace.note(Counts([Tally("default", "echo", JobStatus.DONE, 0, 30)], frozenset()))
    assert pace.per_second("default")[JobStatus.DONE] == 10
    time.elapse(2)
    pace.note(Counts([msgspec.structs.replace(gone, total=1)], frozenset()))
    assert pace.per_second()[JobStatus.DONE] == 0, "never below"


def test_what_is_older_than_ten_seconds_is_forgotten(pace: Throughput, time: ManualTime) -> None:
    pace.note(totals(done=0))
    for _ in range(20):
        time.elapse(1)
        pace.note(totals(done=1_000))
    assert pace.per_second()[JobStatus.DONE] == 0


def test_it_keeps_few_samples_however_often_it_looks(pace: Throughput, time: ManualTime) -> None:
    for second in range(1_000):
        pace.note(totals(done=second))
        time.elapse(0.01)
    assert pace.per_second()[JobStatus.DONE] == pytest.approx(100)


def test_two_looks_at_one_instant_divide_by_nothing(pace: Throughput) -> None:
    pace.note(totals(done=1))
    pace.note(totals(done=1))
    assert pace.per_second()[JobStatus.DONE] == 0


def test_queues_are_told_apart_and_types_are_added(pace: Throughput, time: ManualTime) -> None:
    pace.note(Counts([], frozenset()))
    time.elapse(1)
    rows = [("a", "x", 3), ("a", "y", 4), ("b", "x", 10)]
    pace.note(Counts([Tally(queue, type, JobStatus.DONE, 0, n) for queue, type, n in rows], frozenset()))
    assert pace.per_second("a")[JobStatus.DONE] == 7
    assert pace.per_second("b")[JobStatus.DONE] == 10
    assert pace.per_second("c")[JobStatus.DONE] == 0
    assert pace.per_second()[JobStatus.DONE] == 17


def test_it_tells_when_there_will_be_room_by_all_that_leaves_the_queue(
    pace: Throughput, time: ManualTime
) -> None:
    pace.note(totals(done=0))
    time.elapse(10)
    pace.note(totals(done=10, failed=5, cancelled=5, scheduled=1_000))
    assert pace.seconds_for(1, "default") == 1
    assert pace.seconds_for(7, "default") == 4
    assert pace.seconds_for(1_000_000, "default") == 300, "no longer than five minutes"


def test_where_nothing_moves_it_guesses(pace: Throughput) -> None:
    assert pace.seconds_for(1, "default") == 5
