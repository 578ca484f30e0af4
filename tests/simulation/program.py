"""Program: what each simulated process runs: job types of every kind, whose payload says what each run comes to.

A program is made once and used for many lives, since declaring job types takes longer than a whole life.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any, NoReturn, cast

from msgspec import Struct

from jobpipe import Cancel, Jobpipe, RateLimited, Retry, Snooze, current_job

from .line import Line
from .loop import ProcessLoop
from .recorded import Recorded
from .saga import Saga, Steps, name_of

if TYPE_CHECKING:
    from jobpipe.stores.base import Store

LEASE = 1.5
TYPES = ("plain", "function", "paced", "few", "keyed", "hasty", "saga", "saga")
RETRIES = 2


class Task(Struct, frozen=True):
    """A payload: how long each run takes, and what the first, the second … and every further one comes to."""

    seconds: float
    fates: list[str]
    key: str = ""


@dataclass(slots=True)
class Stage:
    """What handlers have done, in one life of the world."""

    chance: Random
    recorded: Recorded
    begun: dict[tuple[str, str], int] = field(default_factory=dict)
    """How often each worker began each job."""
    runs: dict[str, int] = field(default_factory=dict)
    """How often each job was begun."""
    returned: dict[int, tuple[str, str]] = field(default_factory=dict)
    """By the number that a run returned: its job and its worker."""
    is_blocking: bool = False
    falter: Callable[[str], object] = lambda worker: None
    """Called by a worker between an effect and its record."""

    def begin(self) -> int:
        """A run begins; how many runs of the job came before."""
        job = current_job()
        before = self.runs.get(job.id, 0)
        self.runs[job.id] = before + 1
        self.begun[job.worker, job.id] = self.begun.get((job.worker, job.id), 0) + 1
        return before

    def end(self) -> int:
        """A run ends well; a number that no other has."""
        number = len(self.returned)
        self.returned[number] = (current_job().id, current_job().worker)
        return number


class Program:
    """A pipe, its line to the store, and the stage on which its handlers act."""

    def __init__(self, queues: Mapping[str, int] | None = None) -> None:
        """With queues, their slots, some types are in a queue of their own, which has a limit."""
        self.queues = queues
        self.line = Line()
        self.stage: Stage
        self.pipe = pipe = Jobpipe(cast("Store", self.line))
        pipe.configure(store=self.line.url, lease=LEASE, queue_size=0, keep=10**9)

        options: dict[str, Any] = {"max_retries": RETRIES, "base": 0.1, "cap": 0.5}
        pipe.job("plain", **options)(self._act)
        pipe.job("function", **options)(self._act_at_once)
        pipe.job("paced", rate="4/s", **options)(self._act)
        mail = {**options, "queue": "default" if queues is None else "mail"}
        if queues is not None:
            pipe.queue("mail", concurrency=2)
        pipe.job("few", concurrency=2, **mail)(self._act)
        pipe.job("keyed", concurrency=1, key=lambda task: task.key, **mail)(self._act)
        pipe.job("hasty", deadline=0.3, **options)(self._act)
        pipe.job("saga", concurrency=2, **options)(self._go_on)
        pipe.every(1.3, name="pulse", **options)(self._pulse)

    async def _act(self, task: Task) -> int:
        stage = self.stage
        fate = task.fates[min(stage.begin(), len(task.fates) - 1)]
        if stage.is_blocking and stage.chance.random() < 0.2:
            loop = asyncio.get_running_loop()
            assert isinstance(loop, ProcessLoop)
            loop.hold(stage.chance.uniform(0.0, 2 * LEASE))
            await asyncio.sleep(0)
        if task.seconds > 0.2:
            current_job().progress(0.5, "half")
        try:
            await asyncio.sleep(task.seconds)
        except asyncio.CancelledError:
            if fate != "deaf":
                raise
            await asyncio.sleep(task.seconds)
        self._come_to(fate)
        return stage.end()

    def _act_at_once(self, task: Task) -> int:
        self._come_to(task.fates[min(self.stage.begin(), len(task.fates) - 1)])
        return self.stage.end()

    async def _go_on(self, saga: Saga) -> int:
        stage = self.stage
        fate = saga.fates[min(stage.begin(), len(saga.fates) - 1)]
        steps = Steps(stage.recorded, stage.chance, stage.falter)
        for number, part in enumerate(saga.parts):
            if number == saga.turn:
                self._come_to(fate)
            await steps.do(part, name_of(number))
        self._come_to(fate)
        return stage.end()

    async def _pulse(self) -> int:
        self.stage.begin()
        return self.stage.end()

    @staticmethod
    def _come_to(fate: str) -> None:
        if fate in _SIGNALS:
            _raise(_SIGNALS[fate])


_SIGNALS: dict[str, Exception] = {
    "boom": ValueError("boom"),
    "retry": Retry(after=0.1),
    "snooze": Snooze(0.2),
    "limited": RateLimited(0.4),
    "cancel": Cancel("enough"),
}


def _raise(signal: Exception) -> NoReturn:
    raise signal.with_traceback(None)


def task_of(chance: Random) -> Task:
    """Any task. Why it ends in what ends a job: every life has to come to its end."""
    fates = [chance.choice(("ok", "boom", "retry", "snooze", "limited", "deaf")) for _ in range(2)]
    seconds = chance.choice((0.0, 0.02, 0.3, 1.0, 2.5)) * chance.random()
    return Task(
        round(seconds, 3), [*fates, chance.choice(("ok", "ok", "boom", "cancel"))], chance.choice("ab")
    )
