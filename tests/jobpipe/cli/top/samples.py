"""A service as `top` may see it, made up."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from jobpipe.cli.top.model import Snapshot, State, begin
from jobpipe.gateway.history import Past
from jobpipe.gateway.views import QueueInfo, Stats, Worker
from jobpipe.model.job import Job, JobError, JobStatus, Progress

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def running(id: str, age: float = 5.0, progress: Progress | None = None, **fields: Any) -> Job:
    return _job(id, JobStatus.RUNNING, started_at=ago(age), progress=progress, **fields)


def failed(id: str, age: float = 5.0, message: str = "no luck", **fields: Any) -> Job:
    error = JobError(type="ValueError", message=message)
    return _job(id, JobStatus.FAILED, finished_at=ago(age), error=error, **fields)


def _job(id: str, status: JobStatus, **fields: Any) -> Job:
    return Job(
        **{"type": "mail", "queue": "default", "attempts": 1, **fields},
        id=id,
        status=status,
        run_at=ago(60),
        created_at=ago(60),
    )


def queue(name: str, **fields: Any) -> QueueInfo:
    return QueueInfo(**{"paused": False, **fields}, name=name)


def worker(name: str, *running: str, **fields: Any) -> Worker:
    given = {"types": ("mail",), "slots": 4, "started_at": ago(7_200), "seen_at": ago(1), **fields}
    return Worker(**given, name=name, running=running)


def snapshot(**fields: Any) -> Snapshot:
    """A look that found these; the numbers of the service agree with it."""
    found: dict[str, Any] = {"queues": [], "running": [], "failed": [], "workers": [], **fields}
    pace = found.pop("per_second", {})
    numbers = {
        "scheduled": sum(each.scheduled for each in found["queues"]),
        "waiting": sum(each.waiting for each in found["queues"]),
        "queued": sum(each.queued for each in found["queues"]),
        "running": len(found["running"]),
        "done": 0,
        "failed": len(found["failed"]),
        "cancelled": 0,
        "expired": 0,
        **found.pop("numbers", {}),
    }
    return Snapshot(url="http://127.0.0.1:8080", at=NOW, stats=Stats(**numbers, per_second=pace), **found)


def state(**fields: Any) -> State:
    """What is known after a first look that found these."""
    return begin(snapshot(**fields), Past(moments=[], queues=[]))
