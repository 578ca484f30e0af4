"""Life: what one seed comes to: processes, jobs and faults for a while, then fair weather until all is done.

A life that breaks a promise raises Violation with its seed; the same seed on the same code is the same life.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from jobpipe.errors import JobNotFoundError, SignalRefusedError, StoreAwayError, WrongStatusError
from jobpipe.model.job import FINISHED, JobStatus
from jobpipe.stores.base import Store

from .process import GRACE, Process
from .program import LEASE, TYPES, Program, Stage, Task, task_of
from .saga import Saga, saga_of
from .weather import FAIR, weather_of
from .witness import Witness
from .world import Violation, World

MakeStore = Callable[[Callable[[], float]], Store]

_STORM = 5.0
"""Seconds of faults."""
_AFTERWARDS = 90.0
"""Seconds in which all must be done once the weather is fair."""
_LATEST_TICK = 2.5
"""In fair weather no tick waits for so many seconds."""


@dataclass(frozen=True, slots=True)
class Summary:
    """What there is to tell of a life that kept the promises."""

    seed: int
    digest: str
    steps: int
    jobs: int
    runs: int
    rescues: int
    ticks: int
    recorded: int
    """Steps of jobs."""
    suspensions: int
    signals: int
    trace: tuple[str, ...] = ()


class Life:
    """The director: who lives, what they are given to do, what befalls them."""

    def __init__(
        self, seed: int, programs: list[Program], store: MakeStore, *, keeps_trace: bool = False
    ) -> None:
        self.world = World(seed, keeps_trace=keeps_trace)
        self._chance = self.world.chance
        self.weather = weather_of(self._chance)
        self._witness = Witness(store(self.world.clock), self.world)
        self._stage = Stage(self._chance, self._witness.recorded, is_blocking=self.weather.block > 0)
        self._stage.falter = self._falter
        self._programs = programs[: self._chance.randint(1, len(programs))]
        self._is_storm = True
        self._is_ending = False
        self._up: list[Process] = []
        self._all: list[Process] = []
        self._accepted: set[str] = set()
        self._offers: dict[str, Process] = {}
        """Jobs of which it is not known whether they are in, and who asks."""
        for program in self._programs:
            program.stage = self._stage
            program.line.connect(self._witness, self._chance)

    def live(self) -> Summary:
        """Live it; Violation if a promise was broken."""
        world = self.world
        world.tell("weather", repr(self.weather))
        with _chance_of(world.seed), _errors_told_to(self._witness.fail):
            try:
                self._up = [self._start(place) for place in range(len(self._programs))]
                for number in range(self._chance.randint(1, 10)):
                    world.after(self._chance.uniform(0.0, _STORM), partial(self._enqueue, f"j{number}"))
                world.after(0.0, self._befall)
                self._run(lambda: False, _STORM)
                self._clear_up()
                self._run(self._is_awake, _AFTERWARDS)
                self._catch_up()
                self._run(lambda: self._is_answered() and self._witness.is_quiet, _AFTERWARDS)
                self._check_ended()
                self._stop_all()
            finally:
                for process in self._all:
                    if not process.loop.bury():
                        self._witness.fail(f"{process.name} cannot be ended")
                self._raise()
        return Summary(
            seed=world.seed,
            digest=world.digest,
            steps=world.steps,
            jobs=len(self._witness.lives),
            runs=sum(self._stage.runs.values()),
            rescues=self._witness.rescues,
            ticks=len(self._witness.ticks),
            recorded=self._witness.recorded.steps,
            suspensions=self._witness.recorded.suspensions,
            signals=self._witness.recorded.signals,
            trace=tuple(world.trace),
        )

    def _run(self, is_over: Callable[[], bool], seconds: float) -> bool:
        violations = self._witness.violations
        is_done = self.world.run(lambda: bool(violations) or is_over(), self.world.now + seconds)
        self._raise()
        return is_done

    def _raise(self) -> None:
        if self._witness.violations:
            raise Violation(f"seed {self.world.seed}: {self._witness.violations[0]}")

    # Who lives

    def _start(self, place: int) -> Process:
        program = self._programs[place]
        speed = self.weather.speed(self._chance) if self._is_storm else 1.0
        weather = self.weather if self._is_storm else FAIR
        program.line.expose(weather)
        program.line.on_death = partial(self._die, place)
        process = Process(self.world, f"w{len(self._all)}", program, weather, speed)
        self._all.append(process)
        self.world.tell(process.name, f"starts, its clock at {speed:g}")
        return process

    def _living(self) -> list[tuple[int, Process]]:
        return [(place, each) for place, each in enumerate(self._up) if each.is_up]

    def _start_later(self, place: int) -> None:
        self.world.after(self._chance.uniform(0.0, 2 * LEASE), lambda: self._start_again(place))

    def _start_again(self, place: int) -> None:
        before = self._up[place]
        if self._is_ending:
            return
        if not before.is_up:
            self._up[place] = self._start(place)
        elif before.is_stopping:
            self.world.after(0.2, lambda: self._start_again(place))

    # What they are given to do

    def _enqueue(self, id: str) -> None:
        type = self._chance.choice(TYPES)
        task = saga_of(self._chance) if type == "saga" else task_of(self._chance)
        delay = self._chance.choice((0.0, 0.0, 1.0)) * self._chance.random()
        living = self._living()
        if not living:
            self.world.after(0.1, lambda: self._enqueue(id))
            return
        if isinstance(task, Saga):
            self._plan_signals(id, task)
        _, process = self._chance.choice(living)
        self._offers[id] = process
        process.loop.start(self._offer(process, id, type, task, round(delay, 3)), f"enqueue {id}")

    async def _offer(self, process: Process, id: str, type: str, task: Task | Saga, delay: float) -> None:
        """Put a job in, until it is known to be in: who asks may ask again."""
        while True:
            try:
                await process.program.pipe.enqueue(type, task, id=id, delay=delay)
            except StoreAwayError:
                await asyncio.sleep(0.2)
            else:
                self._accepted.add(id)
                del self._offers[id]
                return

    def _plan_signals(self, id: str, saga: Saga) -> None:
        """None, or some: they come before the job waits for them, while it does, or later."""
        for name in saga.waits():
            for _ in range(self._chance.randint(0, 3)):
                payload = self._chance.choice(("yes", "yes", "no"))
                self.world.after(self._chance.uniform(0.0, _STORM), partial(self._signal, id, name, payload))

    def _signal(self, id: str, name: str, payload: str) -> None:
        for _, process in self._any_living():
            process.loop.start(self._send(process, id, name, payload), f"signal {name} of {id}")

    async def _send(self, process: Process, id: str, name: str, payload: str) -> None:
        """Send a signal, until it is known what became of it."""
        while True:
            try:
                await process.program.pipe.signal(id, name, payload)
            except StoreAwayError:
                await asyncio.sleep(0.2)
            except (JobNotFoundError, SignalRefusedError, WrongStatusError):
                return
            else:
                return

    def _signal_at_last(self) -> None:
        """In fair weather nobody waits for a signal for ever."""
        for id, name in self._witness.recorded.waiting():
            self._signal(id, name, "at last")
        self.world.after(0.5, self._signal_at_last)

    def _is_answered(self) -> bool:
        """Does nobody ask any more? Those who asked and died will never know."""
        return not any(process.is_up for process in self._offers.values())

    # What befalls them

    def _befall(self) -> None:
        if not self._is_storm:
            return
        kinds = ("crash", "pause", "stop", "outage", "cancel")
        odds = [getattr(self.weather, kind) for kind in kinds]
        if any(odds):
            getattr(self, f"_{self._chance.choices(kinds, odds)[0]}")()
        self.world.after(self._chance.expovariate(1.0), self._befall)

    def _crash(self) -> None:
        for place, _ in self._any_living():
            self._die(place)

    def _die(self, place: int) -> None:
        if self._up[place].is_up:
            self._up[place].crash()
            self._start_later(place)

    def _pause(self) -> None:
        for _, process in self._any_living():
            process.pause(self._chance.uniform(0.0, 2.5 * LEASE))

    def _falter(self, worker: str) -> None:
        """Perhaps it stands still in the middle of a step, and wakes up without its lease."""
        if self._is_storm and self.weather.pause and self._chance.random() < 0.4:
            for _, process in self._living():
                if process.name == worker:
                    process.pause(self._chance.uniform(LEASE, 3 * LEASE))

    def _stop(self) -> None:
        for place, process in self._any_living():
            process.stop()
            self._start_later(place)

    def _outage(self) -> None:
        self.world.tell("store", "is away")
        self._cut(is_cut=True)
        self.world.after(self._chance.uniform(0.0, 2 * LEASE), lambda: self._cut(is_cut=False))

    def _cut(self, *, is_cut: bool) -> None:
        for program in self._programs:
            program.line.is_cut = is_cut

    def _cancel(self) -> None:
        known = list(self._witness.lives)
        if known:
            ids, draw = [self._chance.choice(known)], self._chance.random()
            if draw < 0.6:
                self._witness.cancel(ids)
            else:
                self._witness.retry(ids, from_start=draw < 0.8)

    def _any_living(self) -> list[tuple[int, Process]]:
        living = self._living()
        return [self._chance.choice(living)] if living else []

    # How it ends

    def _clear_up(self) -> None:
        """From now on nothing goes wrong, and everybody who is needed is there."""
        self.world.tell("weather", "clears up")
        self._is_storm = False
        self._cut(is_cut=False)
        for place, process in enumerate(self._up):
            if process.is_up and process.speed < 0.5:
                process.crash()
            if process.is_stopping or not process.is_up:
                self._start_again(place)
        for _, process in self._living():
            process.expose(FAIR)
        self._signal_at_last()

    def _is_awake(self) -> bool:
        """Is everybody there, and at work?"""
        return all(each.is_up and each.runner is not None and not each.is_held for each in self._up)

    def _catch_up(self) -> None:
        """No tick stays due for long; then there are no more, so that all jobs can come to their end."""
        due_until = self.world.now + _LATEST_TICK
        while not all(entry.next_at > self.world.now for entry in self._witness.store.schedules().entries):
            if self.world.now >= due_until:
                self._witness.fail(f"a tick is due for {_LATEST_TICK} s, and nothing is wrong any more")
            self._run(lambda: False, 0.25)
        entries = self._witness.store.schedules().entries
        if not entries:
            self._witness.fail("nobody has registered the schedule")
        for entry in entries:
            self._witness.store.drop_schedule(entry.name)
        self._raise()

    def _check_ended(self) -> None:
        witness = self._witness
        for id, life in witness.lives.items():
            if life.status not in FINISHED:
                witness.fail(f"{id} is {life.status}, {_AFTERWARDS:g} s after the last fault")
            if life.status is JobStatus.DONE:
                assert life.result is not None
                if self._stage.returned.get(int(life.result)) != (id, life.worker):
                    witness.fail(f"{id} has the result of another run, not of one by {life.worker}")
        for id in self._accepted - witness.lives.keys():
            witness.fail(f"{id} was accepted, and the store never saw it")
        for (worker, id), begun in self._stage.begun.items():
            if begun > witness.claims_by[worker, id]:
                witness.fail(f"{worker} ran {id} more often than it had claimed it")
        if self.weather.is_gentle and witness.rescues:
            witness.fail(
                f"{witness.rescues} jobs were lost by their workers, and nothing was wrong with those"
            )
        self._raise()
        witness.check_store()

    def _stop_all(self) -> None:
        self._is_ending = True
        for _, process in self._living():
            process.stop()
        if not self._run(lambda: not self._living(), GRACE + 5.0):
            self._witness.fail(f"{', '.join(each.name for _, each in self._living())} did not stop")


@contextmanager
def _chance_of(seed: int) -> Iterator[None]:
    """What the code under test leaves to chance is decided by the seed, too."""
    before = random.getstate()
    random.seed(seed)
    try:
        yield
    finally:
        random.setstate(before)


class _WatchThread(logging.Handler):
    def __init__(self, tell: Callable[[str], object]) -> None:
        super().__init__(logging.ERROR)
        self._tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        if hasattr(record, "job_id"):
            return  # a job failed for good, as it was meant to
        cause = record.exc_info[1] if record.exc_info else None
        self._tell(f"an error was logged: {record.getMessage()}" + (f": {cause!r}" if cause else ""))


@contextmanager
def _errors_told_to(tell: Callable[[str], object]) -> Iterator[None]:
    """The code goes on whatever happens, and says so in the log: here it is a fault. What is less is not logged."""
    loggers = [logging.getLogger(name) for name in ("jobpipe", "rate_envelope_queue")]
    before = [(each.level, each.propagate) for each in loggers]
    ear = _WatchThread(tell)
    for each in loggers:
        each.setLevel(logging.ERROR)
        each.propagate = False
        each.addHandler(ear)
    try:
        yield
    finally:
        for each, (level, propagates) in zip(loggers, before, strict=True):
            each.setLevel(level)
            each.propagate = propagates
            each.removeHandler(ear)
