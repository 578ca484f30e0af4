"""Model: what `top` knows of the service and of its user, as frozen values, and how news of the service change it.

Nothing here looks at a clock, a terminal or the network. What is chosen is kept by name, so that it stays chosen while rows come and go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct

from ...gateway.history import Past
from ...gateway.views import QueueInfo, Stats, Worker
from ...model.counts import ChildInfo
from ...model.job import Job

KEPT = 300
"""Samples of a rate that are kept: five minutes."""
_NOTICE = timedelta(seconds=6)
_EPOCH = datetime.fromtimestamp(0, UTC)


class Panel(StrEnum):
    """The lists of things, in their order on the screen."""

    QUEUES = "queues"
    RUNNING = "running"
    WORKERS = "workers"
    FAILED = "failed"


class Mode(StrEnum):
    """What keys are for at the moment."""

    LOOK = "look"
    FILTER = "filter"
    ASK = "ask"
    HELP = "help"


class Snapshot(Struct, frozen=True, kw_only=True):
    """The service as it was at a moment."""

    url: str
    at: datetime
    stats: Stats
    queues: list[QueueInfo]
    running: list[Job]
    failed: list[Job]
    workers: list[Worker]


class Order(NamedTuple):
    """What the user wants done: `pause` or `resume` a queue, `cancel` or `retry` a job, or `quit`."""

    verb: str
    name: str = ""


class Choice(NamedTuple):
    """The chosen row of a panel, and where it was last: the row that is there now takes its place when it is gone."""

    name: str
    place: int


class Notice(NamedTuple):
    """A line that is shown for a while."""

    text: str
    is_error: bool
    until: datetime


@dataclass(frozen=True, slots=True)
class Trend:
    """How the numbers went, the newest last."""

    done: tuple[float, ...] = ()
    failed: tuple[float, ...] = ()
    pending: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Scheduled, waiting and queued jobs, by queue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """All that the screen is made from."""

    snapshot: Snapshot
    trend: Trend
    lost: str | None = None
    """Why the service cannot be reached, while it cannot."""
    panel: Panel = Panel.QUEUES
    """The one that keys are for."""
    choices: Mapping[Panel, Choice] = field(default_factory=dict)
    mode: Mode = Mode.LOOK
    filter: str = ""
    order: Order | None = None
    """What is done if the answer is yes; only in the mode ASK."""
    notice: Notice | None = None


def begin(snapshot: Snapshot, past: Past) -> State:
    """What is known after the first look."""
    return seen(State(snapshot=snapshot, trend=Trend()), snapshot, past)


def seen(state: State, snapshot: Snapshot, past: Past | None = None) -> State:
    """The service was looked at; `past` replaces what was remembered, after a time of which nothing is known."""
    trend = state.trend if past is None else _remembered(past)
    return settled(replace(state, snapshot=snapshot, trend=_longer(trend, snapshot), lost=None))


def lost(state: State, reason: str) -> State:
    """The service cannot be reached."""
    return replace(state, lost=reason)


def told(state: State, text: str, now: datetime, *, is_error: bool = False) -> State:
    """There is something to say."""
    return replace(state, notice=Notice(text, is_error, now + _NOTICE))


def ticked(state: State, now: datetime) -> State:
    """Time went by."""
    is_over = state.notice is not None and state.notice.until <= now
    return replace(state, notice=None) if is_over else state


def settled(state: State) -> State:
    """The same with a row chosen in the panel that keys are for, if it has rows."""
    names = names_of(state, state.panel)
    others = {panel: choice for panel, choice in state.choices.items() if panel is not state.panel}
    if not names:
        return replace(state, choices=others)
    before = state.choices.get(state.panel, Choice(names[0], 0))
    place = names.index(before.name) if before.name in names else min(before.place, len(names) - 1)
    return replace(state, choices=others | {state.panel: Choice(names[place], place)})


def chosen(state: State) -> str | None:
    """The name of the chosen row of the panel that keys are for."""
    choice = state.choices.get(state.panel)
    return None if choice is None else choice.name


def names_of(state: State, panel: Panel) -> list[str]:
    """What the rows of a panel are about, in order: names of queues and workers, ids of jobs."""
    if panel is Panel.QUEUES:
        return [queue.name for queue in queues(state)]
    if panel is Panel.WORKERS:
        return [worker.name for worker in workers(state)]
    return [job.id for job in (running(state) if panel is Panel.RUNNING else failed(state))]


def queues(state: State) -> list[QueueInfo]:
    """The queues that the filter lets through, by name."""
    return [queue for queue in state.snapshot.queues if _passes(state, queue.name)]


def running(state: State) -> list[Job]:
    """The running jobs that the filter lets through, the oldest run first."""
    return sorted(_jobs(state, state.snapshot.running), key=lambda job: (job.started_at or _EPOCH, job.id))


def failed(state: State) -> list[Job]:
    """The failed jobs that the filter lets through, the latest failure first."""
    found = _jobs(state, state.snapshot.failed)
    return sorted(found, key=lambda job: (job.finished_at or _EPOCH, job.id), reverse=True)


def children(state: State) -> dict[str, ChildInfo]:
    """The child processes of isolated jobs, by the id of the job."""
    return {id: child for worker in state.snapshot.workers for id, child in worker.children.items()}


def workers(state: State) -> list[Worker]:
    """The workers that the filter lets through, by name."""
    return [
        worker
        for worker in state.snapshot.workers
        if _passes(state, worker.name, *worker.types, *worker.running)
    ]


def _jobs(state: State, jobs: list[Job]) -> list[Job]:
    return [job for job in jobs if _passes(state, job.id, job.type, job.queue)]


def _passes(state: State, *texts: str) -> bool:
    wanted = state.filter.casefold()
    return any(wanted in text.casefold() for text in texts)


def _remembered(past: Past) -> Trend:
    return Trend(
        done=tuple(moment.done for moment in past.moments),
        failed=tuple(moment.failed for moment in past.moments),
        pending={queue.name: tuple(queue.pending) for queue in past.queues},
    )


def _longer(trend: Trend, snapshot: Snapshot) -> Trend:
    pace = snapshot.stats.per_second
    return Trend(
        done=(*trend.done, pace.get("done", 0.0))[-KEPT:],
        failed=(*trend.failed, pace.get("failed", 0.0))[-KEPT:],
        pending={
            each.name: (*trend.pending.get(each.name, ()), each.scheduled + each.waiting + each.queued)[
                -KEPT:
            ]
            for each in snapshot.queues
        },
    )
