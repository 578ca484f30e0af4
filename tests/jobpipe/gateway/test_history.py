"""The last minutes, on clocks that are moved by hand."""

from __future__ import annotations

import pytest

from jobpipe.gateway.history import LENGTH, MOST_QUEUES, QUEUE_LENGTH, History
from jobpipe.gateway.throughput import Throughput
from jobpipe.model.job import JobStatus
from jobpipe.stores.base import Counts, Tally
from jobpipe.testing import ManualTime


@pytest.fixture
def time() -> ManualTime:
    return ManualTime()


@pytest.fixture
def throughput(time: ManualTime) -> Throughput:
    """What takes the samples."""
    return Throughput(time, time)


@pytest.fixture
def history(throughput: Throughput) -> History:
    return throughput.history


def counts(*rows: tuple[str, str, int, int], paused: frozenset[str] = frozenset()) -> Counts:
    """Rows of queue, status, count and total."""
    return Counts(
        [Tally(queue, "echo", JobStatus(status), *numbers) for queue, status, *numbers in rows], paused
    )


def test_it_knows_nothing_before_it_has_looked_twice(throughput: Throughput, history: History) -> None:
    assert history.pulse() is None
    throughput.note(counts(("a", "done", 5, 5)))
    assert history.pulse() is None
    assert history.past().moments == []


def test_a_moment_has_what_there_is_and_what_ended_a_second(
    throughput: Throughput, history: History, time: ManualTime
) -> None:
    throughput.note(counts(("a", "done", 100, 100)))
    time.elapse(2)
    rows = [("a", "done", 90, 110), ("a", "failed", 1, 1), ("a", "queued", 7, 200), ("b", "running", 2, 9)]
    throughput.note(counts(*rows, paused=frozenset({"b", "c"})))
    pulse = history.pulse()
    assert pulse is not None
    assert (pulse.done, pulse.failed, pulse.queued, pulse.running, pulse.scheduled) == (5, 0.5, 7, 2, 0)
    assert pulse.at.timestamp() == time()
    found = [(each.name, each.paused, each.queued, each.running, each.done) for each in pulse.queues]
    assert found == [("a", False, 7, 0, 5), ("b", True, 0, 2, 0), ("c", True, 0, 0, 0)]


def test_types_of_a_queue_are_added(throughput: Throughput, history: History, time: ManualTime) -> None:
    throughput.note(Counts([], frozenset()))
    time.elapse(1)
    tallies = [Tally("a", type, JobStatus.QUEUED, 2, 2) for type in ("x", "y")]
    tallies += [Tally("a", "x", status, 1, 1) for status in (JobStatus.SCHEDULED, JobStatus.WAITING)]
    throughput.note(Counts(tallies, frozenset()))
    assert [(queue.name, queue.pending) for queue in history.past().queues] == [("a", [6])]


def test_an_emptied_store_is_no_negative_pace(
    throughput: Throughput, history: History, time: ManualTime
) -> None:
    throughput.note(counts(("a", "done", 9, 9)))
    time.elapse(1)
    throughput.note(counts())
    assert [moment.done for moment in history.past().moments] == [0]


def test_what_is_older_is_forgotten(throughput: Throughput, history: History, time: ManualTime) -> None:
    for second in range(LENGTH + 10):
        throughput.note(counts(("a", "queued", second, second)))
        time.elapse(1)
    past = history.past()
    assert len(past.moments) == LENGTH
    assert past.moments[-1].queued == LENGTH + 9
    assert past.queues[0].pending == list(range(LENGTH + 10 - QUEUE_LENGTH, LENGTH + 10))


def test_of_very_many_queues_the_fullest_are_kept(
    throughput: Throughput, history: History, time: ManualTime
) -> None:
    rows = [(f"q{n:04}", "queued", n, n) for n in range(MOST_QUEUES * 3)]
    for _ in range(2):
        throughput.note(counts(*rows))
        time.elapse(1)
    past = history.past()
    assert [queue.name for queue in past.queues] == [name for name, *_ in rows[-MOST_QUEUES:]]
    assert past.moments[-1].queued == sum(n for *_, n in rows), "the whole counts all"
