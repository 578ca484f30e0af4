"""Rows: the panels as lines of a given width, a heading and then a line for each queue, job or worker.

Every string of the service is escaped here, before it is measured: nothing of it can move the cursor or spoil a line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from rich.text import Text

from ...gateway.views import QueueInfo, Worker, queues_text
from ...model.counts import ChildInfo
from ...model.job import Job
from ...process.logs import escape
from . import model
from .glyphs import Glyphs, age, bar, fit, sparkline
from .model import Panel, State

_BAR = 8
_LATELY = 60
"""Samples of the pending jobs of a queue: a minute."""
_WIDE = 110
"""Cells from which on ids are shown whole."""
_NARROWEST = 8
"""Cells that are worth a column of text."""
_LONGEST = 400
"""Characters of an error or a note that can be of use in one line."""


class Column(NamedTuple):
    """A column: its title, its cells (0: what is left), and how soon it gets room where there is not enough for all."""

    title: str
    width: int
    rank: int
    is_right: bool = False
    keeps_end: bool = False


class Row(NamedTuple):
    """The cells of a line, and its style."""

    cells: tuple[str, ...]
    style: str = ""


def panel_lines(
    state: State, panel: Panel, width: int, height: int, now: datetime, glyphs: Glyphs, *, has_keys: bool
) -> list[Text]:
    """Just so many lines: the heading, and rows from around the chosen one, if keys are for this panel."""
    every = _columns(panel, width, has_children=bool(model.children(state)))
    kept = _kept(every, width - 2)
    columns = [every[place] for place in kept]
    rows = [
        row._replace(cells=tuple(row.cells[place] for place in kept))
        for row in _rows(state, panel, _left(columns, width - 2), now, glyphs)
    ]
    choice = state.choices.get(panel) if has_keys else None
    lines = [_heading(state, panel, columns, has_keys, width, glyphs)]
    room = height - 1
    begin = 0 if choice is None else min(max(choice.place - room // 2, 0), max(len(rows) - room, 0))
    for place, row in enumerate(rows[begin : begin + room], begin):
        is_chosen = choice is not None and choice.place == place
        mark = glyphs.mark if is_chosen else " "
        line = Text(f"{mark} {_line(row.cells, columns, width - 2, glyphs)}", row.style)
        if is_chosen:
            line.stylize("reverse")
        lines.append(line)
    if not rows and room > 0:
        nothing = "nothing matches the filter" if state.filter else _NOTHING[panel]
        lines.append(Text(fit(f"  {nothing}", width, glyphs), "dim"))
    lines += [Text("")] * (height - len(lines))
    return lines[:height]


def count(state: State, panel: Panel) -> int:
    """The rows of a panel; one where there is nothing to say so."""
    return max(len(model.names_of(state, panel)), 1)


def _heading(
    state: State, panel: Panel, columns: Sequence[Column], has_keys: bool, width: int, glyphs: Glyphs
) -> Text:
    title = f"{panel.upper()} {_number(state, panel)}"
    cells = (title, *(column.title for column in columns[1:]))
    wide = max(columns[0].width, len(title))
    columns = [columns[0]._replace(title=title, keeps_end=False), *columns[1:]]
    text = _line(cells, columns, width - 2, glyphs)
    if wide > columns[0].width:  # Why: a number that is cut is a wrong one
        text = fit(title + text[columns[0].width :][wide - columns[0].width :], width - 2, glyphs)
    mark = glyphs.mark if has_keys else " "
    return Text(f"{mark} {text}", "bold cyan" if has_keys else "bold dim")


def _number(state: State, panel: Panel) -> str:
    """How many there are: `3`, or `2 of 3` where not all of them are shown."""
    snapshot = state.snapshot
    total = {
        Panel.QUEUES: len(snapshot.queues),
        Panel.RUNNING: snapshot.stats.running,
        Panel.WORKERS: len(snapshot.workers),
        Panel.FAILED: snapshot.stats.failed,
    }[panel]
    shown = len(model.names_of(state, panel))
    return f"{total:,}" if shown >= total else f"{shown:,} of {total:,}"


_NOTHING = {
    Panel.QUEUES: "no queues yet: a queue appears with its first job",
    Panel.RUNNING: "no jobs are running",
    Panel.WORKERS: "no workers: start one with jobpipe worker",
    Panel.FAILED: "no jobs have failed",
}


def _columns(panel: Panel, width: int, *, has_children: bool) -> list[Column]:
    """All columns of a panel, from left to right."""
    name = Column("", 36 if width >= _WIDE else 20, 0, keeps_end=True)
    short = 12 if width >= _WIDE else 10
    return {
        Panel.QUEUES: [
            name,
            Column("SCHEDULED", 9, 4, is_right=True),
            Column("WAITING", 7, 5, is_right=True),
            Column("QUEUED", 8, 2, is_right=True),
            Column("RUNNING", 7, 3, is_right=True),
            Column("STATE", 6, 1),
            Column("PENDING TREND", 0, 6),
        ],
        Panel.RUNNING: [
            name,
            Column("TYPE", short, 3),
            Column("QUEUE", short, 5),
            Column("AGE", 6, 1, is_right=True),
            Column("PROGRESS", _BAR + 5, 2),
            *([Column("PROCESS", 8, 6, is_right=True)] if has_children else []),
            *([Column("MEMORY", 8, 6, is_right=True)] if has_children else []),
            *([Column("CPU", 7, 6, is_right=True)] if has_children else []),
            Column("NOTE", 0, 4),
        ],
        Panel.WORKERS: [
            name,
            Column("BUSY", 7, 1, is_right=True),
            Column("UP", 6, 4, is_right=True),
            Column("SEEN", 6, 2, is_right=True),
            Column("RUNS", 0, 3),
        ],
        Panel.FAILED: [
            name,
            Column("TYPE", short, 3),
            Column("QUEUE", short, 5),
            Column("AGO", 6, 1, is_right=True),
            Column("TRIES", 5, 4, is_right=True),
            Column("ERROR", 0, 2),
        ],
    }[panel]


def _kept(columns: Sequence[Column], width: int) -> list[int]:
    """The places of the columns that there is room for, the most important first to be given it: none is cut."""
    kept: list[int] = []
    for place in sorted(range(len(columns)), key=lambda place: columns[place].rank):
        column = columns[place]
        least = column.width or max(_NARROWEST, len(column.title))
        if least <= width:
            kept.append(place)
            width -= least + 1
    return sorted(kept)


def _rows(state: State, panel: Panel, left: int, now: datetime, glyphs: Glyphs) -> list[Row]:
    """What is in the lines; `left` are the cells of the column that takes what is left."""
    if panel is Panel.QUEUES:
        return [_queue(queue, state, left, glyphs) for queue in model.queues(state)]
    if panel is Panel.WORKERS:
        return [_worker(worker, now) for worker in model.workers(state)]
    if panel is Panel.RUNNING:
        children = model.children(state)
        return [_running(job, children, now, glyphs) for job in model.running(state)]
    return [_failed(job, now) for job in model.failed(state)]


def _queue(queue: QueueInfo, state: State, left: int, glyphs: Glyphs) -> Row:
    trend = state.trend.pending.get(queue.name, ())
    return Row(
        (
            escape(queue.name),
            f"{queue.scheduled:,}",
            f"{queue.waiting:,}",
            f"{queue.queued:,}",
            f"{queue.running:,}",
            "paused" if queue.paused else "open",
            sparkline(trend, min(len(trend), _LATELY, left), glyphs) if len(trend) > 1 else "",
        ),
        "yellow" if queue.paused else "",
    )


def _running(job: Job, children: Mapping[str, ChildInfo], now: datetime, glyphs: Glyphs) -> Row:
    progress = job.progress
    shown = "" if progress is None else f"{bar(progress.value, _BAR, glyphs)} {progress.value:4.0%}"
    note = "" if progress is None else _short(progress.note or "")
    began = _since(job.started_at, now)
    process = _process(children.get(job.id)) if children else ()
    return Row((escape(job.id), escape(job.type), escape(job.queue), began, shown, *process, note))


def _process(child: ChildInfo | None) -> tuple[str, ...]:
    """The child that an isolated job runs in, its memory, and the CPU time of the run."""
    if child is None:
        return "", "", ""
    return str(child.pid), f"{child.memory / 2**20:,.0f} MB", f"{child.cpu:,.1f} s"


def _worker(worker: Worker, now: datetime) -> Row:
    busy = f"{len(worker.running)}/{worker.slots}"
    runs = ", ".join(map(escape, worker.running)) or f"(knows {', '.join(map(escape, worker.types))})"
    if worker.queues is not None or worker.except_queues:
        runs = f"[{escape(queues_text(worker))}] {runs}"
    since = _since(worker.started_at, now), _since(worker.seen_at, now)
    return Row((escape(worker.name), busy, *since, runs[:_LONGEST]))


def _failed(job: Job, now: datetime) -> Row:
    error = "" if job.error is None else _short(f"{job.error.type}: {job.error.message}")
    tries = f"{job.attempts}/{job.max_retries + 1}"
    cells = escape(job.id), escape(job.type), escape(job.queue), _since(job.finished_at, now), tries, error
    return Row(cells, "red")


def _short(text: str) -> str:
    return escape(text[:_LONGEST])


def _since(moment: datetime | None, now: datetime) -> str:
    return "" if moment is None else age((now - moment).total_seconds())


def _line(cells: Sequence[str], columns: Sequence[Column], width: int, glyphs: Glyphs) -> str:
    """The cells side by side, in just so many cells of the terminal."""
    left = _left(columns, width)
    fitted = [
        fit(cell, column.width or left, glyphs, is_right=column.is_right, keeps_end=column.keeps_end)
        for cell, column in zip(cells, columns, strict=True)
    ]
    return fit(" ".join(fitted), width, glyphs)


def _left(columns: Sequence[Column], width: int) -> int:
    """The cells that are left for the column without a width of its own, if there is one."""
    return width - sum(column.width for column in columns) - (len(columns) - 1)
