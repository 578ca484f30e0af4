"""Tables: jobs and schedules for people (in columns, with local times) and for programs (JSON, in UTC), on stdout.

Every string of a job is shown as text: no markup, and nothing that a terminal would act on.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING, Any

import msgspec
import typer

from ...gateway.views import queues_text
from ...process.logs import escape
from .columns import Cell, Row, print_columns

if TYPE_CHECKING:
    from ...gateway.explain import Explanation
    from ...gateway.limits import LimitInfo
    from ...gateway.timetable import ScheduleInfo
    from ...gateway.views import QueueInfo, Stats, Worker
    from ...model.counts import Failures
    from ...model.job import Attempt, Job

_COLOURS = {
    "scheduled": "cyan",
    "queued": "blue",
    "running": "yellow",
    "done": "green",
    "failed": "red",
    "cancelled": "magenta",
    "expired": "dim",
}
_MISSED = {
    "one": "ticks missed while nothing runs are made up for by one job",
    "none": "ticks missed while nothing runs are skipped",
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


def print_jobs(jobs: list[Job], zone: tzinfo | None = None) -> None:
    """A line a job."""
    if not jobs:
        typer.echo("no jobs")
        return
    rows = [
        (
            _text(job.id),
            _text(job.type),
            _text(job.queue),
            _status(job.status),
            Cell(f"{job.attempts}/{job.max_retries + 1}"),
            Cell(_when(job.created_at, zone)),
            _text(f"{job.error.type}: {job.error.message}"[:200] if job.error else ""),
        )
        for job in jobs
    ]
    print_columns([_header("ID", "TYPE", "QUEUE", "STATUS", "ATTEMPTS", "CREATED", "ERROR"), *rows])


def print_failures(found: Failures, zone: tzinfo | None = None) -> None:
    """A line a group."""
    rows = [
        (
            _text(group.type),
            _text(group.error or ""),
            *_numbers(group.count),
            Cell(_when(group.first_at, zone)),
            Cell(_when(group.last_at, zone)),
            _text(group.last_id),
        )
        for group in found.failures
    ]
    _print_table("failed jobs", ("TYPE", "ERROR", "COUNT", "FIRST", "LAST", "LAST ID"), rows)
    if not found.is_complete:
        typer.echo(f"only the {found.counted:,} jobs that failed last are counted")


def print_job(job: Job, zone: tzinfo | None = None) -> None:
    """All of a job, a field a line, and its runs below."""
    rows: list[tuple[str, Cell | str | None]] = [
        ("id", _text(job.id)),
        ("type", _text(job.type)),
        ("queue", _text(job.queue)),
        ("status", _status(job.status)),
        ("attempts", f"{job.attempts} of {job.max_retries + 1}"),
        ("priority", str(job.priority) if job.priority else None),
        ("deadline", f"{job.deadline:g} s" if job.deadline else None),
        ("unique", _text(job.unique) if job.unique else None),
        ("tags", _text(", ".join(job.tags)) if job.tags else None),
        ("created", _when(job.created_at, zone)),
        ("run at", _when(job.run_at, zone)),
        ("expires", _when(job.expires_at, zone) if job.expires_at else None),
        ("started", _when(job.started_at, zone) if job.started_at else None),
        ("finished", _when(job.finished_at, zone) if job.finished_at else None),
        ("progress", _text(f"{job.progress.value:.0%} {job.progress.note or ''}") if job.progress else None),
        ("payload", _text(_dump(job.payload))),
        ("result", _text(_dump(job.result)) if job.status == "done" else None),
        ("error", _text(f"{job.error.type}: {job.error.message}") if job.error else None),
    ]
    for run in job.history:
        took = (run.ended_at - run.began_at).total_seconds()
        words = f"{_when(run.began_at, zone)}, {took:.3f} s, {run.worker}: {_end_of(run, job)}"
        rows.append((f"run {run.number}", _text(words)))
    _print_fields(rows)
    if job.error and job.error.traceback:
        lines = job.error.traceback[-_LONGEST:].splitlines()
        print_columns([[Cell(escape(line).rstrip(), "dim")] for line in lines])


def _end_of(run: Attempt, job: Job) -> str:
    """Why no other: what ends without an error has done the job, which then is over, or was cancelled."""
    if run.error:
        return f"{run.error.type}: {run.error.message}"
    return "ok" if job.status == "done" and run is job.history[-1] else "cancelled"


def print_explanation(explanation: Explanation) -> None:
    """The reason, in words."""
    typer.echo(escape(explanation.text))


def print_schedules(schedules: list[ScheduleInfo], zone: tzinfo | None = None) -> None:
    """A line a schedule."""
    if not schedules:
        typer.echo("no schedules")
        return
    rows = [
        (
            _text(each.name),
            _text(each.type),
            _text(_timing(each)),
            Cell(_when(each.next_at[0], zone)) if each.next_at else Cell("paused", "yellow"),
            Cell(until(each.next_at[0]) if each.next_at else ""),
            Cell(_when(each.last_at, zone) if each.last_at else ""),
        )
        for each in schedules
    ]
    print_columns([_header("NAME", "TYPE", "TIMING", "NEXT", "", "LAST RUN"), *rows])


def print_schedule(schedule: ScheduleInfo, zone: tzinfo | None = None) -> None:
    """All of a schedule, a field a line, and its next ticks."""
    ticks = [f"{_when(moment, zone)} {until(moment)}" for moment in schedule.next_at]
    last = None
    if schedule.last_at is not None:
        last = _text(f"{_when(schedule.last_at, zone)}, job {schedule.last_job}")
    _print_fields(
        [
            ("name", _text(schedule.name)),
            ("type", _text(schedule.type)),
            ("queue", _text(schedule.queue)),
            ("payload", _text(_dump(schedule.payload))),
            ("timing", _text(_timing(schedule))),
            ("missed", _MISSED[schedule.missed]),
            ("last run", last),
            ("next", "none while paused" if schedule.paused else ticks[0]),
            *(("", tick) for tick in ticks[1:]),
        ]
    )


def print_queues(queues: list[QueueInfo]) -> None:
    """A line a queue."""
    _print_table(
        "queues",
        ("QUEUE", "STATE", "SCHEDULED", "QUEUED", "RUNNING"),
        [
            (
                _text(each.name),
                Cell("paused", "yellow") if each.paused else Cell("running"),
                *_numbers(each.scheduled, each.queued, each.running),
            )
            for each in queues
        ],
    )


def print_workers(workers: list[Worker], zone: tzinfo | None = None) -> None:
    """A line a worker."""
    _print_table(
        "workers",
        ("WORKER", "SLOTS", "RUNNING", "QUEUES", "STARTED", "SEEN", "TYPES"),
        [
            (
                _text(each.name),
                *_numbers(each.slots, len(each.running)),
                _text(queues_text(each)),
                Cell(_when(each.started_at, zone)),
                Cell(_when(each.seen_at, zone)),
                _text(", ".join(each.types)),
            )
            for each in workers
        ],
    )


def print_limits(limits: list[LimitInfo], zone: tzinfo | None = None) -> None:
    """A line a limit: of a queue, of a type, or of a key of its payloads."""
    _print_table(
        "limits",
        ("QUEUE", "TYPE", "KEY", "RATE", "CONCURRENCY", "RUNNING", "QUEUED", "NEXT"),
        [
            (
                _text(each.queue or ""),
                _text(each.type or ""),
                _text("(each)" if each.is_keyed and each.key is None else each.key or ""),
                _text(each.rate or ""),
                *_numbers(each.concurrency, each.running, each.waiting),
                Cell(_next(each, zone)),
            )
            for each in limits
        ],
    )


def _next(limit: LimitInfo, zone: tzinfo | None) -> str:
    if limit.cools_until is not None:
        return f"cools until {_when(limit.cools_until, zone)}"
    return _when(limit.next_at, zone) if limit.next_at else ""


def print_stats(stats: Stats) -> None:
    """A line a status; rates where they are known."""
    rates = stats.per_second
    names = [name for name in msgspec.structs.asdict(stats) if name != "per_second"]
    rows = [
        (_status(name), *_numbers(getattr(stats, name)), Cell(f"{rates[name]:g}" if name in rates else ""))
        for name in names
    ]
    _print_table("jobs", ("STATUS", "JOBS", "PER SECOND" if rates else ""), rows)


def _print_table(what: str, names: Sequence[str], rows: Sequence[Row]) -> None:
    if rows:
        print_columns([_header(*names), *rows])
    else:
        typer.echo(f"no {what}")


def _numbers(*numbers: int | None) -> list[Cell]:
    return [Cell("" if number is None else f"{number:,}") for number in numbers]


def _print_fields(fields: Sequence[tuple[str, Cell | str | None]]) -> None:
    """A field a line; those that are None are left out."""
    given = [
        (name, Cell(value) if isinstance(value, str) else value)
        for name, value in fields
        if value is not None
    ]
    print_columns([(Cell(name, "bold"), value) for name, value in given])


def _header(*names: str) -> list[Cell]:
    return [Cell(name, "bold") for name in names]


def hold_in_words(schedule: ScheduleInfo, zone: tzinfo | None = None) -> str:
    """`ping paused`, or with which tick it goes on."""
    if schedule.paused:
        return f"{escape(schedule.name)} paused"
    moment = schedule.next_at[0]
    return f"{escape(schedule.name)} resumed: next {_when(moment, zone)} {until(moment)}"


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


def _text(value: str) -> Cell:
    shown = value if len(value) <= _LONGEST else f"{value[:_LONGEST]}…"
    return Cell(escape(shown).rstrip())


def _status(status: str) -> Cell:
    return Cell(str(status), _COLOURS.get(str(status), ""))


def _when(moment: datetime, zone: tzinfo | None) -> str:
    """In the zone, or else in local time: with its offset, so that it can be pasted back as `--run-at`."""
    text = moment.astimezone(zone).isoformat(timespec="seconds")
    return text.replace("+00:00", "Z") if zone is UTC else text
