"""Why a job is not running: one reason, the first that holds."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from jobpipe.gateway.explain import Explanation, Reason, explain
from jobpipe.model.gate import Limit
from jobpipe.model.job import JobStatus, Move
from jobpipe.stores.base import WorkerInfo
from jobpipe.stores.memory import MemoryStore
from jobpipe.testing import ManualTime, new_job
from jobpipe.testing.reading import look
from jobpipe.testing.tools import BOOM, bring_to, finish, put, take_one


@pytest.fixture
def time() -> ManualTime:
    return ManualTime()


@pytest.fixture
def store(time: ManualTime) -> MemoryStore:
    return MemoryStore(clock=time)


def why(store: MemoryStore, id: str) -> Explanation:
    found = explain(store, id, {})
    assert found is not None
    return found


def worker(
    name: str, *types: str, slots: int = 4, running: tuple[str, ...] = (), **chosen: Any
) -> WorkerInfo:
    return WorkerInfo(name=name, types=types, slots=slots, running=running, started_at=0, **chosen)


def test_an_unknown_job_has_no_reason(store: MemoryStore) -> None:
    assert explain(store, "nobody", {}) is None


@pytest.mark.parametrize("status", [JobStatus.DONE, JobStatus.FAILED, JobStatus.CANCELLED])
def test_a_finished_job_is_finished(store: MemoryStore, status: JobStatus) -> None:
    bring_to(store, "a", status)
    assert why(store, "a") == Explanation(reason=Reason.FINISHED, text=f"It is {status}.")


def test_an_expired_job_says_when_it_did(store: MemoryStore) -> None:
    bring_to(store, "a", JobStatus.EXPIRED)
    text = "It expired at 1970-01-01T00:00:01+00:00: it had not begun by then."
    assert why(store, "a") == Explanation(reason=Reason.FINISHED, text=text)


def test_a_running_job_runs(store: MemoryStore) -> None:
    bring_to(store, "a", JobStatus.RUNNING)
    assert why(store, "a") == Explanation(reason=Reason.RUNNING, text="It is running, attempt 1.")


def test_a_job_for_later_says_until_when(store: MemoryStore) -> None:
    put(store, new_job("a", delay=90))
    found = why(store, "a")
    job = look(store, "a")
    assert (found.reason, found.until) == (Reason.SCHEDULED, job.run_at)
    assert found.until == job.created_at + timedelta(seconds=90)
    assert "It is scheduled for 20" in found.text


def test_a_job_between_two_runs_says_that_it_waits_for_its_retry(store: MemoryStore) -> None:
    put(store, new_job("a"))
    finish(store, take_one(store), Move.RETRY, error=BOOM, delay=30)
    found = why(store, "a")
    assert found.reason is Reason.SCHEDULED
    assert "retry" in found.text


def test_a_pause_comes_before_everything_else(store: MemoryStore) -> None:
    put(store, new_job("a", queue="mails"))
    store.pause("mails")
    found = why(store, "a")
    assert (found.reason, found.blockers) == (Reason.PAUSED, ("mails",))
    store.resume("mails")
    assert why(store, "a").reason is Reason.NO_WORKER


def test_without_any_worker_it_says_so(store: MemoryStore) -> None:
    put(store, new_job("a"))
    found = why(store, "a")
    assert (found.reason, found.blockers) == (Reason.NO_WORKER, ())
    assert "no worker is running" in found.text


def test_with_workers_that_do_not_know_the_type_it_names_them(store: MemoryStore) -> None:
    put(store, new_job("a", type="rare"))
    store.beat(worker("w1", "work"), 60)
    assert "(the only running worker does not)" in why(store, "a").text
    store.beat(worker("w2"), 60)
    found = why(store, "a")
    assert (found.reason, found.blockers) == (Reason.NO_WORKER, ("w1", "w2"))
    assert "none of the 2 running workers does" in found.text


def test_a_worker_that_was_silent_for_too_long_counts_no_more(store: MemoryStore, time: ManualTime) -> None:
    put(store, new_job("a"))
    store.beat(worker("w1", "work"), 60)
    assert why(store, "a").reason is Reason.POSITION
    time.elapse(61)
    assert why(store, "a").reason is Reason.NO_WORKER


@pytest.mark.parametrize(
    ("ahead", "words"),
    [(0, "It is next in its queue;"), (1, "1 job is before it;"), (3, "3 jobs are before it;")],
)
def test_in_the_line_it_says_how_many_are_before_it(store: MemoryStore, ahead: int, words: str) -> None:
    put(store, *(new_job(f"before{number}", priority=1) for number in range(ahead)))
    put(store, new_job("a"), new_job("behind"), new_job("elsewhere", queue="other", priority=9))
    store.beat(worker("w1", "work", slots=2, running=("x", "y")), 60)
    store.beat(worker("w2", "work", "other", slots=3, running=("z",)), 60)
    store.beat(worker("w3", "other", slots=50, running=("unrelated",)), 60)
    found = why(store, "a")
    assert (found.reason, found.blockers) == (Reason.POSITION, ("x", "y", "z"))
    assert found.text.startswith(words)
    assert "3 of 5 slots" in found.text


def test_a_job_whose_turn_by_the_rate_comes_in_a_moment_is_held_by_the_rate(store: MemoryStore) -> None:
    """Also when it might be claimed already, to wait for its time in the worker."""
    limit = Limit(type="work", interval=0.05)
    store.beat(msgspec.structs.replace(worker("w1", "work"), limits=(limit,)), 60)
    put(store, new_job("a", type="work"), new_job("b", type="work"))
    assert len(store.claim("w1", ["work"], 1, 30, [limit]).claims) == 1
    found = why(store, "b")
    assert (found.reason, found.blockers) == (Reason.RATE, ("work",))
    assert found.until is not None


def test_a_queue_that_no_worker_serves_is_named(store: MemoryStore) -> None:
    put(store, new_job("a", queue="media"))
    store.beat(worker("w1", "work", queues=("mail",)), 60)
    store.beat(worker("w2", "work", except_queues=("media",)), 60)
    found = why(store, "a")
    assert (found.reason, found.blockers) == (Reason.NO_WORKER, ("w1", "w2"))
    assert found.text.startswith("No worker serves the queue 'media': start one that does")
    store.beat(worker("w3", "other", queues=("media",)), 60)
    assert why(store, "a").text.startswith("No worker that knows the type 'work' serves the queue 'media':")


def test_only_slots_for_its_queue_are_counted(store: MemoryStore) -> None:
    put(store, new_job("a", queue="media"))
    slots = {"mail": 6, "media": 2}
    chosen = worker(
        "w1",
        "work",
        slots=8,
        running=("x", "y"),
        queues=("mail", "media"),
        slots_by_queue=slots,
        running_by_queue={"mail": 2},
    )
    store.beat(chosen, 60)
    store.beat(worker("w2", "work", slots=3, running=("z",)), 60)
    store.beat(worker("w3", "work", slots=9, queues=("mail",)), 60)
    found = why(store, "a")
    assert (found.reason, found.blockers) == (Reason.POSITION, ("x", "y", "z"))
    assert found.text == "It is next in its queue; 1 of 5 slots of its workers are taken."
