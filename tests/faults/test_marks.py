"""`kill -9` at every mark of the program, on every store: what a death there leaves behind is made good by others.

What a mark means is in `jobpipe.failpoints`. Each test arms all marks of a verb, and has one process after another die.
"""

from __future__ import annotations

import ast
import inspect
import signal
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

import jobpipe
from jobpipe import Job, JobStatus
from jobpipe.failpoints import MARKS, VARIABLE, Mark
from jobpipe.model.schedule import tick_id
from jobpipe.stores.base import ScheduleEntry
from jobpipe.testing.tools import new_job, put, take

from ..support.waiting import eventually
from . import test_marks as this
from .programs import Program, Start

LEASE = 0.5
IDS = [f"j{n}" for n in range(8)]
HOUR = 3600.0


class Marks:
    """The folder in which files are the wishes that somebody may die."""

    def __init__(self, start: Start) -> None:
        self._folder = start.folder / "marks"
        self._folder.mkdir()
        self._has_inside = not start.store_url.startswith("redis")
        start.env[VARIABLE] = str(self._folder)

    def of(self, verb: str) -> list[Mark]:
        """Those that there are on this store: a script of Redis has no inside."""
        return [
            mark for mark in MARKS if mark.startswith(verb) and (self._has_inside or "inside" not in mark)
        ]

    def arm(self, *marks: Mark, number: int | None = None) -> None:
        for mark in marks:
            (self._folder / mark).write_text("" if number is None else str(number))

    def are_used_up(self) -> bool:
        return not list(self._folder.iterdir())


@pytest.fixture
def marks(durable: Start) -> Marks:
    return Marks(durable)


def put_in(start: Start, *ids: str) -> None:
    with start.store() as store:
        put(store, *(new_job(id, id, type="mark") for id in ids))


def all_done(start: Start) -> list[Job]:
    """The jobs as they are when all are done; each has been lost a few times, and then done once."""

    def found() -> list[Job] | None:
        jobs = list(start.jobs().values())
        return jobs if jobs and all(job.is_finished for job in jobs) else None

    jobs = eventually(found, lambda: [program.output for program in start.programs])
    for job in jobs:
        *lost, last = job.history
        assert (job.status, last.error, job.result) == (JobStatus.DONE, None, job.payload), job
        assert all(run.error is not None and run.error.type == "WorkerLost" for run in lost), job
        assert job.attempts == len(job.history)
    return jobs


def lost_runs(jobs: list[Job]) -> int:
    return sum(len(job.history) - 1 for job in jobs)


def deaths(program: Program) -> int:
    return program.output.count("was killed by SIGKILL")


def test_enqueue_may_die_at_every_mark(durable: Start, marks: Marks) -> None:
    """Faults 10 and 12: who sends the same batch again finds all of it or nothing, and each job runs once."""
    service = durable.serve("--workers", "0")
    for mark in marks.of("enqueue"):
        batch = [{"id": f"{mark}-{n}", "type": "mark", "payload": n} for n in range(3)]
        marks.arm(mark)
        answer = service.call("POST", "/enqueue/batch", {"jobs": batch})
        assert marks.are_used_up()
        assert answer.status_code == (200 if mark == "enqueue-after" else 202), (mark, answer.text)
    durable.worker()
    jobs = all_done(durable)
    assert len(jobs) == 3 * len(marks.of("enqueue"))
    assert lost_runs(jobs) == 0
    assert Counter(id for id, _, _ in durable.runs()) == Counter(job.id for job in jobs)
    assert deaths(service) == len(marks.of("enqueue"))


def test_claim_may_die_at_every_mark(durable: Start, marks: Marks) -> None:
    """Fault 10: a lease that was given is over in its time, one that was not costs nothing; none has begun."""
    put_in(durable, *IDS)
    marks.arm(*marks.of("claim"))
    worker = durable("worker", "--workers", "1", "--lease", str(LEASE))
    jobs = all_done(durable)
    assert marks.are_used_up()
    assert [job.id for job in jobs] == IDS
    assert lost_runs(jobs) == 2  # after, and taken
    assert Counter(id for id, _, _ in durable.runs()) == Counter(IDS)
    assert deaths(worker) == len(marks.of("claim"))


def test_settle_may_die_at_every_mark(durable: Start, marks: Marks) -> None:
    """Fault 10: an outcome that was not recorded is another run's to tell; one that was is the only one."""
    worker = durable.worker("--lease", str(LEASE))
    for mark in marks.of("settle"):
        marks.arm(mark)
        put_in(durable, mark)  # one by one: no other job is lost along with it
        all_done(durable)
        eventually(marks.are_used_up, mark)
    runs = {mark: 1 if mark == "settle-after" else 2 for mark in marks.of("settle")}
    assert {job.id: job.attempts for job in all_done(durable)} == runs
    assert Counter(id for id, _, _ in durable.runs()) == runs
    eventually(lambda: deaths(worker) == len(runs))


def test_rescue_may_die_at_every_mark(durable: Start, marks: Marks) -> None:
    """Fault 10: each job that was lost is put back once, and has lost one attempt."""
    put_in(durable, *IDS)
    with durable.store() as store:
        assert len(take(store, len(IDS), worker="ghost", types=["mark"], lease=0.1)) == len(IDS)
    claimed_at = time.monotonic()
    eventually(lambda: time.monotonic() - claimed_at > 0.2)  # so that the first who looks finds them
    marks.arm(*marks.of("rescue"))
    service = durable("serve", "--workers", "0", "--lease", str(LEASE))
    eventually(marks.are_used_up)
    durable.worker("--lease", "10")
    jobs = all_done(durable)
    assert [[run.worker == "ghost" for run in job.history] for job in jobs] == [[True, False]] * len(IDS)
    assert Counter(id for id, _, _ in durable.runs()) == Counter(IDS)
    assert deaths(service) == len(marks.of("rescue"))


@pytest.mark.timeout(120)
def test_tick_may_die_at_every_mark_among_five_schedulers(durable: Start, marks: Marks) -> None:
    """Faults 10 and 23: the tick that one dies in is put in once, whoever comes next."""
    schedulers = [durable("serve", "--workers", "0") for _ in range(5)]
    for scheduler in schedulers:
        scheduler.line("listening on")
    due: dict[str, str] = {}
    with durable.store() as store:
        for mark in marks.of("tick"):
            marks.arm(mark)
            now = store.schedules().now
            entry = ScheduleEntry(
                name=mark,
                type="mark",
                queue="default",
                payload=b'"tick"',
                every=HOUR,
                anchor_at=now - HOUR,
                next_at=now,
            )
            store.put_schedule(entry)
            due[mark] = tick_id(mark, now)
            eventually(marks.are_used_up, mark)
            eventually(partial(store.get, due[mark]), mark)
            (after,) = [each for each in store.schedules().entries if each.name == mark]
            assert (after.last_at, after.last_job, after.next_at) == (now, due[mark], now + HOUR)
    durable.worker()  # Why only now: one that dies in a tick must hold no job
    jobs = all_done(durable)
    assert [job.id for job in jobs] == list(due.values())
    assert lost_runs(jobs) == 0
    assert Counter(id for id, _, _ in durable.runs()) == Counter(due.values())
    eventually(lambda: sum(map(deaths, schedulers)) == len(due))


def test_job_of_a_process_that_is_frozen_before_it_begins_does_not_begin_there(
    durable: Start, marks: Marks
) -> None:
    """Fault 11: SIGSTOP between claim and start, another does the job, SIGCONT: the handler is not run in vain."""
    marks.arm("claim-taken", number=signal.SIGSTOP)
    first = durable.worker("--lease", str(LEASE))
    put_in(durable, "a")
    eventually(marks.are_used_up)
    sleeper = first.child()
    durable.worker("--lease", str(LEASE))
    second = durable.begun("a", attempt=2)
    (job,) = all_done(durable)
    first.signal_child(signal.SIGCONT)
    first.line("job a is given back: its lease may have run out|the lease of job 'a' was lost")
    put_in(durable, "b")
    all_done(durable)
    first.signal(signal.SIGTERM)
    assert first.code() == 0
    assert durable.jobs()["a"] == job
    assert [pid for _, pid, _ in durable.runs("a")] == [second]
    assert second != sleeper


# The table itself


def strings_of(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_every_mark_is_in_the_program() -> None:
    root = Path(jobpipe.__file__).parent
    code = [path for path in root.rglob("*.py") if path.name != "marks.py"]
    used = Counter(text for path in code for text in strings_of(path) if text in MARKS)
    assert set(used) == set(MARKS)
    for store in ("sqlite", "postgres"):
        inside = {text for path in (root / "stores" / store).rglob("*.py") for text in strings_of(path)}
        assert {mark for mark in MARKS if "inside" in mark} <= inside, store


def test_every_mark_has_a_test_in_which_somebody_dies() -> None:
    tested = {
        name.split("_")[1]
        for name, _ in inspect.getmembers(this, inspect.isfunction)
        if "_may_die_at_" in name
    }
    assert {mark.partition("-")[0] for mark in MARKS} == tested


def test_every_mark_is_explained_in_the_docs() -> None:
    text = (Path(__file__).parents[2] / "docs" / "jobpipe" / "promises.md").read_text(encoding="utf-8")
    assert [mark for mark, meaning in MARKS.items() if f"| `{mark}` | {meaning} |" not in text] == []
