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
from ...model.durable import timeout_at
from ...model.text import counted
from ...process.logs import escape
from ..top.glyphs import age
from .columns import Cell, print_columns

if TYPE_CHECKING:
    from ...gateway.explain import Explanation
    from ...gateway.limits import LimitInfo
    from ...gateway.timetable import ScheduleInfo
    from ...gateway.views import QueueInfo, Stats, Worker
    from ...model.counts import Failures
    from ...model.durable import SignalReceipt
    from ...model.job import Attempt, Job, JobError, StepInfo
    from ...model.logs import JobLogs

_COLOURS = {
    "scheduled": "cyan",
    "waiting": "bright_blue",
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
_PAUSED = Cell("paused", "yellow")
_LONGEST = 2_000
"""Characters of a payload, result or traceback that people are shown."""
_LONGEST_RESULT = 200
"""Characters of the result of a step that people are shown with its job."""

Value = Cell | datetime | int | str | None
"""What is in a cell."""


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
    rows = [
        (
            *(job.id, job.type, job.queue, _status(job.status), f"{job.attempts}/{job.max_retries + 1}"),
            *(job.created_at, _error(job.error)[:200]),
        )
        for job in jobs
    ]
    _print_table("jobs", ("ID", "TYPE", "QUEUE", "STATUS", "ATTEMPTS", "CREATED", "ERROR"), rows, zone)


def print_failures(found: Failures, zone: tzinfo | None = None) -> None:
    """A line a group."""
    rows = [
        (group.type, group.error, group.count, group.first_at, group.last_at, group.last_id)
        for group in found.failures
    ]
    _print_table("failed jobs", ("TYPE", "ERROR", "COUNT", "FIRST", "LAST", "LAST ID"), rows, zone)
    if not found.is_complete:
        typer.echo(f"only the {found.counted:,} jobs that failed last are counted")


def print_job(job: Job, zone: tzinfo | None = None, suspended: str | None = None) -> None:
    """All of a job, a field a line, its steps and runs below; `suspended` says what it waits for."""
    rows: list[tuple[str, Value]] = [
        ("id", job.id),
        ("type", job.type),
        ("queue", job.queue),
        ("status", _status(job.status)),
        ("suspended", suspended),
        ("attempts", f"{job.attempts} of {job.max_retries + 1}"),
        ("priority", str(job.priority) if job.priority else None),
        ("deadline", f"{job.deadline:g} s" if job.deadline else None),
        ("unique", job.unique or None),
        ("tags", ", ".join(job.tags) or None),
        ("created", job.created_at),
        _due(job),
        ("expires", job.expires_at),
        ("started", job.started_at),
        ("finished", job.finished_at),
        ("progress", f"{job.progress.value:.0%} {job.progress.note or ''}" if job.progress else None),
        ("payload", _dump(job.payload)),
        ("result", _dump(job.result) if job.status == "done" else None),
        ("error", _error(job.error) or None),
    ]
    for step in job.steps:
        result = _result_of(step)
        shown = result if len(result) <= _LONGEST_RESULT else f"{result[:_LONGEST_RESULT]}…"
        rows.append(("step", f"{step.name}, {_when(step.began_at, zone)}, {_took(step):.3f} s: {shown}"))
    for run in job.history:
        words = f"{_when(run.began_at, zone)}, {_took(run):.3f} s, {run.worker}: {_end_of(run, job)}"
        rows.append((f"run {run.number}", words))
    _print_fields(rows, zone)
    if job.error and job.error.traceback:
        lines = job.error.traceback[-_LONGEST:].splitlines()
        print_columns([[Cell(escape(line).rstrip(), "dim")] for line in lines])


def print_steps(steps: list[StepInfo], zone: tzinfo | None = None) -> None:
    """A line a step."""
    rows = [(step.name, step.began_at, f"{_took(step):.3f}", _result_of(step)) for step in steps]
    _print_table("steps", ("STEP", "BEGAN", "SECONDS", "RESULT"), rows, zone)


def print_signal(receipt: SignalReceipt) -> None:
    """`order-17: signal 'approved' sent`, and whether the same was sent before."""
    before = "" if receipt.is_new else " (the same was sent before)"
    typer.echo(f"{receipt.id}: signal {receipt.name!r} sent{before}")


def _due(job: Job) -> tuple[str, datetime | None]:
    """When it is to run; of one that waits for a signal, until when, if there is a timeout."""
    if job.status == "waiting":
        return "until", timeout_at(job.run_at.timestamp())
    return "run at", job.run_at


def _took(ended: Attempt | StepInfo) -> float:
    return (ended.ended_at - ended.began_at).total_seconds()


def _result_of(step: StepInfo) -> str:
    """As JSON; of one that was cut, what there is."""
    return f"{step.result}…" if step.cut else _dump(step.result)


def _end_of(run: Attempt, job: Job) -> str:
    """Why no other: what ends without an error has done the job, which then is over, or was cancelled."""
    if run.error:
        return _error(run.error)
    return "ok" if job.status == "done" and run is job.history[-1] else "cancelled"


def _error(error: JobError | None) -> str:
    return f"{error.type}: {error.message}" if error else ""


def print_explanation(explanation: Explanation) -> None:
    """The reason, in words."""
    typer.echo(escape(explanation.text))


def print_logs(logs: JobLogs, zone: tzinfo | None = None) -> None:
    """`time attempt level logger message` a line, the rest of a message indented; on stderr, how many were cut."""
    if logs.cut:
        words = counted(logs.cut, "older line", "was cut", "were cut")
        typer.echo(f"{words}: the logs of a job are kept up to a limit", err=True)
    for line in logs.lines:
        head = f"{_when(line.at, zone, 'milliseconds')} #{line.attempt} {escape(line.level)}"
        first, *others = line.message.splitlines() or [""]
        sys.stdout.write(f"{head} {escape(line.logger)}: {escape(first)}\n")
        for other in others:
            sys.stdout.write(f"    {escape(other)}\n")
    sys.stdout.flush()


def print_json_lines(logs: JobLogs) -> None:
    """An object a line."""
    for line in logs.lines:
        sys.stdout.write(f"{_dump(msgspec.to_builtins(line))}\n")
    sys.stdout.flush()


def print_schedules(schedules: list[ScheduleInfo], zone: tzinfo | None = None) -> None:
    """A line a schedule."""
    rows = [
        (
            *(each.name, each.type, _timing(each)),
            *((each.next_at[0], until(each.next_at[0])) if each.next_at else (_PAUSED, None)),
            each.last_at,
        )
        for each in schedules
    ]
    _print_table("schedules", ("NAME", "TYPE", "TIMING", "NEXT", "", "LAST RUN"), rows, zone)


def print_schedule(schedule: ScheduleInfo, zone: tzinfo | None = None) -> None:
    """All of a schedule, a field a line, and its next ticks."""
    ticks = [f"{_when(moment, zone)} {until(moment)}" for moment in schedule.next_at]
    last = schedule.last_at and f"{_when(schedule.last_at, zone)}, job {schedule.last_job}"
    rows = [
        ("name", schedule.name),
        ("type", schedule.type),
        ("queue", schedule.queue),
        ("payload", _dump(schedule.payload)),
        ("timing", _timing(schedule)),
        ("missed", _MISSED[schedule.missed]),
        ("last run", last),
        ("next", "none while paused" if schedule.paused else ticks[0]),
    ]
    _print_fields([*rows, *(("", tick) for tick in ticks[1:])], zone)


def print_schedule_state(schedule: ScheduleInfo, zone: tzinfo | None = None) -> None:
    """`ping paused`, or with which tick it goes on."""
    state = "paused"
    if not schedule.paused:
        state = f"resumed: next {_when(schedule.next_at[0], zone)} {until(schedule.next_at[0])}"
    typer.echo(f"{escape(schedule.name)} {state}")


def print_queues(queues: list[QueueInfo]) -> None:
    """A line a queue."""
    rows = [
        (
            *(each.name, _PAUSED if each.paused else "running"),
            *(each.scheduled, each.waiting, each.queued, each.running),
        )
        for each in queues
    ]
    _print_table("queues", ("QUEUE", "STATE", "SCHEDULED", "WAITING", "QUEUED", "RUNNING"), rows)


def print_queue_state(queue: QueueInfo) -> None:
    """`mail paused`, and the jobs that it holds."""
    state = "paused" if queue.paused else "running"
    held = f"{queue.queued:,} queued, {queue.scheduled:,} scheduled, {queue.waiting:,} waiting"
    typer.echo(f"{escape(queue.name)} {state}: {held}, {queue.running:,} running")


def print_workers(workers: list[Worker], zone: tzinfo | None = None) -> None:
    """A line a worker."""
    rows = [
        (
            *(each.name, each.slots, len(each.running), queues_text(each)),
            *(each.started_at, each.seen_at, ", ".join(each.types)),
        )
        for each in workers
    ]
    names = ("WORKER", "SLOTS", "RUNNING", "QUEUES", "STARTED", "SEEN", "TYPES")
    _print_table("workers", names, rows, zone)


def print_limits(limits: list[LimitInfo], zone: tzinfo | None = None) -> None:
    """A line a limit: of a queue, of a type, or of a key of its payloads."""
    rows = [
        (
            *(each.queue, each.type, "(each)" if each.is_keyed and each.key is None else each.key, each.rate),
            *(each.concurrency, each.running, each.waiting),
            f"cools until {_when(each.cools_until, zone)}" if each.cools_until else each.next_at,
        )
        for each in limits
    ]
    names = ("QUEUE", "TYPE", "KEY", "RATE", "CONCURRENCY", "RUNNING", "QUEUED", "NEXT")
    _print_table("limits", names, rows, zone)


def print_stats(stats: Stats) -> None:
    """A line a status; rates where they are known."""
    rates = stats.per_second
    rows = [
        (_status(name), count, f"{rates[name]:g}" if name in rates else None)
        for name, count in msgspec.structs.asdict(stats).items()
        if name != "per_second"
    ]
    _print_table("jobs", ("STATUS", "JOBS", "PER SECOND" if rates else ""), rows)


def _print_table(
    what: str, names: Sequence[str], rows: Sequence[Sequence[Value]], zone: tzinfo | None = None
) -> None:
    if not rows:
        typer.echo(f"no {what}")
        return
    header = [Cell(name, "bold") for name in names]
    print_columns([header, *([_cell(value, zone) for value in row] for row in rows)])


def _print_fields(fields: Sequence[tuple[str, Value]], zone: tzinfo | None) -> None:
    """A field a line; those that are None are left out."""
    print_columns([(Cell(name, "bold"), _cell(value, zone)) for name, value in fields if value is not None])


def _cell(value: Value, zone: tzinfo | None) -> Cell:
    """Text is cut and escaped; None is empty."""
    if isinstance(value, Cell):
        return value
    if isinstance(value, datetime):
        return Cell(_when(value, zone))
    if isinstance(value, int):
        return Cell(f"{value:,}")
    text = value or ""
    return Cell(escape(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…").rstrip())


def until(moment: datetime, now: datetime | None = None) -> str:
    """How long that is from now, in words: `in 13 h`."""
    return f"in {age((moment - (now or datetime.now(UTC))).total_seconds())}"


def _timing(schedule: ScheduleInfo) -> str:
    """In words: `every 60 s`, `0 3 * * * Europe/Berlin`."""
    if schedule.every is None:
        return f"{schedule.cron} {schedule.tz}"
    return f"every {int(schedule.every) if schedule.every.is_integer() else schedule.every} s"


def _status(status: str) -> Cell:
    return Cell(str(status), _COLOURS.get(str(status), ""))


def _when(moment: datetime, zone: tzinfo | None, precision: str = "seconds") -> str:
    """In the zone, or else in local time: with its offset, so that it can be pasted back as `--run-at`."""
    text = moment.astimezone(zone).isoformat(timespec=precision)
    return text.replace("+00:00", "Z") if zone is UTC else text
