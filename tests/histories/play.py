"""Play: real programs on a store, with random faults for a while; then it waits for all jobs to end, and tells what was seen.

The seed decides which faults there are and in which order; when exactly each hits, nobody can decide. All that
was written down stays in the folder.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from jobpipe import Job, StoreAwayError
from jobpipe.model.durable import SignalAnswer, read_signal
from jobpipe.model.schedule import placed
from jobpipe.stores import open_store
from jobpipe.stores.base import Filter, JobStatus, ScheduleEntry, Store

from ..faults.programs import Program, Start, jobpipe
from ..support.servers_redis import free_port
from ..support.waiting import eventually
from .app import APPROVED, BEAT, BEAT_EVERY, BOUNDS, LEASE, SAGAS
from .checker import pid_of
from .record import (
    SIGNALS,
    Event,
    Record,
    Rhythm,
    StoredJob,
    StoredRun,
    load_runs,
    load_sent,
    load_signals,
    load_steps,
    write_line,
)
from .stages import STAGES, Fault, Stage

ROOT = Path(__file__).parents[2]
APP = "tests.histories.app:pipe"
_LOOK_EVERY = 0.02
_DRAIN = 90.0
"""Seconds that all jobs have to end after the last fault."""


class Observer:
    """Reads what the store tells of each change, in a thread."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._look, name="observer")
        self.events: list[Event] = []
        self._thread.start()

    def _look(self) -> None:
        number = 0
        while True:
            is_last = self._is_over.is_set()
            with suppress(StoreAwayError):
                found = self._store.events(number, 1_000)
                self.events += [Event(each.id, each.status) for each in found]
                number = found[-1].number if found else number
                if is_last and not found:
                    return
            self._is_over.wait(_LOOK_EVERY)

    def close(self) -> None:
        self._is_over.set()
        self._thread.join()


class Troupe:
    """The programs of a play, and what may happen to them."""

    def __init__(self, folder: Path, stage: Stage, seed: int) -> None:
        self._start = Start(folder)
        self._start.env = {"JOBPIPE_STORE": stage.url, "PYTHONPATH": str(ROOT)}
        self._folder = folder
        self._seed = seed
        self._port = str(free_port())
        self._calls: dict[str, list[str]] = {
            "service": jobpipe("serve", APP, "--port", self._port, "--workers", "2"),
            "worker a": jobpipe("worker", APP),
            "worker b": jobpipe("worker", APP, "--processes", "2"),
        }
        self._programs = {name: self._start.command(call) for name, call in self._calls.items()}
        self._producers: dict[str, Program] = {}
        self._number = 0
        self.stopped: set[int] = set()
        self.lost: set[int] = set()

    def begin(self) -> None:
        """Returns when all are there, and jobs come."""
        self._programs["service"].line("listening on")
        for name in ("worker a", "worker b"):
            self._programs[name].line("working")
        for kind in ("h", "p"):
            self._produce(kind)

    def _produce(self, kind: str) -> None:
        self._number += 1
        name = f"{kind}{self._number}"
        arguments = [
            name,
            f"{self._seed}-{name}",
            *([f"http://127.0.0.1:{self._port}"] if kind == "h" else []),
        ]
        command = [sys.executable, "-m", "tests.histories.producer", *arguments]
        self._producers[kind] = self._start.command(command)

    @property
    def faults(self) -> dict[str, Fault]:
        return {
            "kill -9 of a process": self._kill_child,
            "kill -9 of a program": self._kill,
            "SIGTERM": self._stop,
            "SIGSTOP past the lease": self._freeze,
            "SIGSTOP within the lease": self._doze,
            "SIGSTOP until another runs the job": self._freeze_until_replaced,
            "kill -9 of a producer": self._kill_producer,
        }

    def _any(self, rng: random.Random) -> str:
        return rng.choice(sorted(self._programs))

    def _child(self, rng: random.Random) -> int | None:
        found = self._programs[self._any(rng)].children()
        return rng.choice(found) if found else None

    def _kill_child(self, rng: random.Random) -> None:
        self._signal(self._child(rng), signal.SIGKILL)

    def _kill(self, rng: random.Random) -> None:
        name = self._any(rng)
        self.lost |= set(self._programs[name].children())
        self._programs[name].kill()
        self._programs[name] = self._start.command(self._calls[name])

    def _stop(self, rng: random.Random) -> None:
        name = self._any(rng)
        program = self._programs[name]
        self.stopped |= set(program.children())
        program.signal(signal.SIGTERM)
        # Why also without a word: it may have been asked before it could listen.
        assert program.code() == 0 or not program.output, program.output
        self._programs[name] = self._start.command(self._calls[name])

    def _freeze(self, rng: random.Random) -> None:
        self._pause(self._child(rng), LEASE * rng.uniform(1.2, 2.5))

    def _freeze_until_replaced(self, rng: random.Random) -> None:
        """It wakes up in the middle of another's run, with an outcome of its own."""
        pids = {pid for program in self._programs.values() for pid in program.children()}
        busy = [run for run in load_runs(self._folder) if run.ended_at is None and pid_of(run.worker) in pids]
        if busy:
            run = rng.choice(busy[-5:])
            pid = pid_of(run.worker)
            self._signal(pid, signal.SIGSTOP)
            with suppress(AssertionError):  # it may have been its last attempt
                eventually(lambda: self._is_begun(run.id, run.attempt + 1), limit=3 * LEASE)
            self._signal(pid, signal.SIGCONT)

    def _is_begun(self, id: str, attempt: int) -> bool:
        return any((run.id, run.attempt) == (id, attempt) for run in load_runs(self._folder))

    def _doze(self, rng: random.Random) -> None:
        self._pause(self._child(rng), LEASE * rng.uniform(0.1, 0.9))

    def _pause(self, pid: int | None, seconds: float) -> None:
        self._signal(pid, signal.SIGSTOP)
        time.sleep(seconds)
        self._signal(pid, signal.SIGCONT)

    def _signal(self, pid: int | None, number: int) -> None:
        if pid is not None:
            self.lost.add(pid)
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def _kill_producer(self, rng: random.Random) -> None:
        kind = rng.choice(sorted(self._producers))
        self._producers[kind].kill()
        self._produce(kind)

    def end_of_sending(self) -> None:
        for program in self._producers.values():
            assert program.process.poll() is None, f"a producer gave up: {program.output}"
            program.kill()

    def close(self) -> None:
        self._start.close()

    def complaints(self) -> list[str]:
        """What no log should have: errors that nobody has foreseen."""
        return [
            f"{program.log}: {line}"
            for program in self._start.programs
            for line in program.output.splitlines()
            if line.startswith("Traceback")
        ]


def play(
    name: str, folder: Path, seconds: float, seed: int, say: Callable[[str], object] = lambda _: None
) -> Record:
    """Play on the store of that name for so long, and wait for the end of all jobs."""
    with STAGES[name](folder) as stage, _observed(stage.direct_url) as (store, observer):
        troupe = Troupe(folder, stage, seed)
        try:
            store.put_schedule(_beat(store))
            troupe.begin()
            _disturb({**troupe.faults, **stage.faults}, folder, seconds, seed, say)
            troupe.end_of_sending()
            rhythm = _last_tick(store)
            jobs = _drained(store, folder)
        finally:
            troupe.close()
        observer.close()
        complaints = troupe.complaints()
        assert not complaints, "\n".join(complaints)
    sent, accepted, cancelled = load_sent(folder)
    effects, seen, slept = load_steps(folder)
    return Record(
        sent=sent,
        accepted=accepted,
        cancelled=cancelled,
        runs=load_runs(folder),
        effects=effects,
        seen=seen,
        slept=slept,
        signals=load_signals(folder),
        jobs={job.id: job for job in jobs},
        lease=LEASE,
        events=observer.events,
        bounds=BOUNDS,
        rhythm=rhythm,
        stopped=frozenset(troupe.stopped),
        lost=frozenset(troupe.lost),
    )


def _disturb(
    faults: dict[str, Fault], folder: Path, seconds: float, seed: int, say: Callable[[str], object]
) -> None:
    rng = random.Random(seed)
    began_at = time.monotonic()
    deck: list[str] = []
    while (passed := time.monotonic() - began_at) < seconds:
        if not deck:  # all of them, in an order of its own each time
            deck = rng.sample(sorted(faults), len(faults))
        fault = deck.pop()
        say(f"{passed:6.1f} s  {fault}")
        write_line(folder / "faults", at=time.time(), fault=fault)
        faults[fault](rng)
        time.sleep(rng.uniform(0.05, 0.4))


@contextmanager
def _observed(url: str) -> Iterator[tuple[Store, Observer]]:
    with closing(open_store(url)) as store:
        store.migrate()
        with closing(store.sibling()) as other:
            observer = Observer(other)
            try:
                yield store, observer
            finally:
                observer.close()


def _beat(store: Store) -> ScheduleEntry:
    entry = ScheduleEntry(name=BEAT, type=BEAT, queue="default", payload=b"null", every=BEAT_EVERY)
    return placed(entry, store.schedules().now)


def _last_tick(store: Store) -> Rhythm:
    """How far the schedule has come; it goes on no more."""
    (entry,) = store.schedules().entries
    store.drop_schedule(BEAT)
    return Rhythm(name=BEAT, every=BEAT_EVERY, anchor_at=entry.anchor_at, next_at=entry.next_at)


def _signal_all(store: Store, folder: Path) -> None:
    """Send a last signal to each job that waits: whose own was refused, or never sent."""
    signal = read_signal(APPROVED, "at last", 100)
    for job in store.page(Filter(status=JobStatus.WAITING), 500).jobs:
        if store.signal(job.id, signal) is SignalAnswer.ACCEPTED:
            write_line(folder / SIGNALS, id=job.id, name=APPROVED, payload="at last", how="accepted")


def _drained(store: Store, folder: Path) -> list[StoredJob]:
    """All jobs, when all have ended, or the time for it is over."""

    def waiting() -> int:
        _signal_all(store, folder)
        unfinished = ("scheduled", "waiting", "queued", "running")
        return sum(each.count for each in store.counts().tallies if each.status in unfinished)

    with suppress(AssertionError):  # the checker says which have not
        eventually(lambda: not waiting(), limit=_DRAIN)
    jobs: list[StoredJob] = []
    before: int | None = None
    while True:
        page = store.page(Filter(), 500, before)
        jobs += [_stored(store, job) for each in page.jobs if (job := store.get(each.id)) is not None]
        before = page.next
        if before is None:
            return jobs


def _stored(store: Store, job: Job) -> StoredJob:
    state = store.durable(job.id) if job.type in SAGAS else None
    return StoredJob(
        id=job.id,
        type=job.type,
        status=job.status,
        attempts=job.attempts,
        max_retries=job.max_retries,
        created_at=job.created_at.timestamp(),
        unique=job.unique or "",
        result=job.result,
        runs=tuple(
            StoredRun(
                number=run.number,
                worker=run.worker,
                began_at=run.began_at.timestamp(),
                ended_at=run.ended_at.timestamp(),
                error=None if run.error is None else run.error.type,
            )
            for run in job.history
        ),
        steps={step.name: json.loads(step.result) for step in state.steps} if state is not None else {},
    )
