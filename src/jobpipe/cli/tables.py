"""Tables: jobs and schedules for people (rich) and for programs (JSON), on stdout.

Every string of a job is shown as text: no markup, and nothing that a terminal would act on.
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..logs import escape

if TYPE_CHECKING:
    from ..explain import Explanation
    from ..job import Job
    from ..timetable import ScheduleInfo

_COLOURS = {
    "scheduled": "cyan",
    "queued": "blue",
    "running": "yellow",
    "done": "green",
    "failed": "red",
    "cancelled": "magenta",
}
_LONGEST = 2_000
"""Characters of a payload, result or traceback that people are shown."""


def print_json(value: Any, without: tuple[str, ...] = ()) -> None:
    """The value as JSON; a list has one element a line. Control characters are escaped, as JSON does."""
    plain = msgspec.to_builtins(value)
    if isinstance(plain, list):
        lines = [_dump({key: each[key] for key in each if key not in without}) for each in plain]
        text = "[" + ",\n ".join(lines) + "]"
    else:
        text = _dump(plain, indent=2)
    sys.stdout.write(f"{text}\n")


def _dump(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, indent=indent).replace("\x7f", "\\u007f")


def print_jobs(jobs: list[Job]) -> None:
    """A line a job."""
    if not jobs:
        _console().print("no jobs")
        return
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("ID", "TYPE", "QUEUE", "STATUS", "ATTEMPTS", "CREATED", "ERROR"):
        table.add_column(name, no_wrap=name != "ERROR", overflow="fold")
    for job in jobs:
        table.add_row(
            _text(job.id),
            _text(job.type),
            _text(job.queue),
            _status(job.status),
            f"{job.attempts}/{job.max_retries + 1}",
            _when(job.created_at),
            _text(f"{job.error.type}: {job.error.message}"[:200] if job.error else ""),
        )
    _console().print(table)


def print_job(job: Job) -> None:
    """All of a job, a field a line, and its runs below."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    rows: list[tuple[str, Text | str | None]] = [
        ("id", _text(job.id)),
        ("type", _text(job.type)),
        ("queue", _text(job.queue)),
        ("status", _status(job.status)),
        ("attempts", f"{job.attempts} of {job.max_retries + 1}"),
        ("priority", str(job.priority) if job.priority else None),
        ("deadline", f"{job.deadline:g} s" if job.deadline else None),
        ("created", _when(job.created_at)),
        ("run at", _when(job.run_at)),
        ("started", _when(job.started_at) if job.started_at else None),
        ("finished", _when(job.finished_at) if job.finished_at else None),
        ("progress", _text(f"{job.progress.value:.0%} {job.progress.note or ''}") if job.progress else None),
        ("payload", _text(_dump(job.payload))),
        ("result", _text(_dump(job.result)) if job.status == "done" else None),
        ("error", _text(f"{job.error.type}: {job.error.message}") if job.error else None),
    ]
    for name, value in rows:
        if value is not None:
            table.add_row(name, value)
    for run in job.history:
        took = (run.ended_at - run.began_at).total_seconds()
        how = f"{run.error.type}: {run.error.message}" if run.error else "ok"
        table.add_row(f"run {run.number}", _text(f"{_when(run.began_at)}, {took:.3f} s, {run.worker}: {how}"))
    _console().print(table)
    if job.error and job.error.traceback:
        lines = job.error.traceback[-_LONGEST:].splitlines()
        _console().print(Text("\n".join(map(escape, lines)), style="dim"))


def print_explanation(explanation: Explanation) -> None:
    """The reason, in words."""
    _console().print(_text(explanation.text))


def print_schedules(schedules: list[ScheduleInfo]) -> None:
    """A line a schedule."""
    if not schedules:
        _console().print("no schedules")
        return
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("NAME", "TYPE", "TIMING", "NEXT", "", "LAST RUN"):
        table.add_column(name, no_wrap=True, overflow="fold")
    for each in schedules:
        table.add_row(
            _text(each.name),
            _text(each.type),
            _text(_timing(each)),
            _when(each.next_at[0]) if each.next_at else "paused",
            until(each.next_at[0]) if each.next_at else "",
            _when(each.last_at) if each.last_at else "",
        )
    _console().print(table)


def print_schedule(schedule: ScheduleInfo) -> None:
    """All of a schedule, a field a line, and its next ticks."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row("name", _text(schedule.name))
    table.add_row("type", _text(schedule.type))
    table.add_row("queue", _text(schedule.queue))
    table.add_row("payload", _text(_dump(schedule.payload)))
    table.add_row("timing", _text(_timing(schedule)))
    table.add_row("missed", f"{schedule.missed} of the ticks that nobody was there for")
    if schedule.last_at is not None:
        table.add_row("last run", _text(f"{_when(schedule.last_at)}, job {schedule.last_job}"))
    if schedule.paused:
        table.add_row("next", "none while it is paused")
    for number, moment in enumerate(schedule.next_at):
        table.add_row("" if number else "next", f"{_when(moment)} {until(moment)}")
    _console().print(table)


def hold_in_words(schedule: ScheduleInfo) -> str:
    """`ping paused`, or with which tick it goes on."""
    if schedule.paused:
        return f"{schedule.name} paused"
    moment = schedule.next_at[0]
    return f"{schedule.name} goes on: next {_when(moment)} {until(moment)}"


_UNITS = ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min"))


def until(moment: datetime, now: datetime | None = None) -> str:
    """How long that is from now, in words: `in 13 h`."""
    seconds = (moment - (now or datetime.now(UTC))).total_seconds()
    for unit, name in _UNITS:
        if seconds >= 2 * unit:
            return f"in {seconds // unit:.0f} {name}"
    return f"in {max(seconds, 0.0):.0f} s"


def _timing(schedule: ScheduleInfo) -> str:
    """In words: `every 60 s`, `0 3 * * * Europe/Berlin`."""
    if schedule.every is None:
        return f"{schedule.cron} {schedule.tz}"
    return f"every {int(schedule.every) if schedule.every.is_integer() else schedule.every} s"


def _console() -> Console:
    # Why wide where nobody looks: a table that is cut at 80 columns is no use in a pipe.
    return Console(highlight=False, width=None if sys.stdout.isatty() else 240)


def _text(value: str) -> Text:
    shown = value if len(value) <= _LONGEST else f"{value[:_LONGEST]}…"
    return Text(escape(shown))


def _status(status: str) -> Text:
    return Text(str(status), style=_COLOURS.get(str(status), ""))


def _when(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
