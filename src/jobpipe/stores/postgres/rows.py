"""Rows as jobs and claims, and values as parameters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from ...model.job import KEPT_HISTORY, PENDING, TRANSITIONS, Attempt, Job, JobStatus
from ...model.lease import UNCOUNTED, Claim, Lease, Settlement
from ..sql_rows import COLUMNS, SQL_READERS, text_of
from ..stored import Ended, attempt_of, read_job, read_values


class _Ended(Ended, array_like=True, forbid_unknown_fields=True):
    """An entry of the history as it is stored."""


_read_ended = msgspec.json.Decoder(_Ended).decode


def optional_text_of(value: Any) -> str | None:
    """A value as JSON text, if there is one."""
    return None if value is None else text_of(value)


# Why not psycopg's own array literals: these take a sixth of its time, and there are many.


def texts(values: Iterable[str | None]) -> str:
    """A literal of type text[]."""
    return "{" + ",".join(map(_quoted, values)) + "}"


def numbers(values: Iterable[float | None]) -> str:
    """A literal of type integer[] or float8[]."""
    return "{" + ",".join(["NULL" if value is None else repr(value) for value in values]) + "}"


def _quoted(value: str | None) -> str:
    if value is None:
        return "NULL"
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def settle_values(settlements: Sequence[Settlement]) -> dict[str, Any]:
    """The parameters of settle.sql; a delay only where the job is to run again.

    By id: all who change several running jobs do so in this order, so that none waits for another in a circle.
    """
    told = sorted(settlements, key=lambda each: each.lease.id)
    outcomes = [each.outcome for each in told]
    statuses = [TRANSITIONS[JobStatus.RUNNING][outcome.move] for outcome in outcomes]
    delays = [
        outcome.delay if status in PENDING else None
        for outcome, status in zip(outcomes, statuses, strict=True)
    ]
    return {
        "ids": texts([each.lease.id for each in told]),
        "tokens": texts([each.lease.token for each in told]),
        "statuses": texts([status.value for status in statuses]),
        "given_back": numbers([int(outcome.move in UNCOUNTED) for outcome in outcomes]),
        "delays": numbers(delays),
        "errors": texts([optional_text_of(outcome.error) for outcome in outcomes]),
        "progress": texts([optional_text_of(outcome.progress) for outcome in outcomes]),
        "results": texts(
            [None if outcome.result is None else outcome.result.decode() for outcome in outcomes]
        ),
        "started_at": numbers([each.started_at for each in told]),
        "kept": KEPT_HISTORY,
    }


def claims_of(rows: Sequence[Sequence[Any]], worker: str, token: str) -> list[Claim]:
    """The rows of claim.sql and claim_chosen.sql, best first."""
    return [_claim_of(row, worker, token) for row in sorted(rows, key=_precedence)]


_STARTED_AT, _TRACE = 3, 5
"""Places in a past; after the trace comes the history."""


def _claim_of(row: Sequence[Any], worker: str, token: str) -> Claim:
    (
        rank,
        run_at,
        _,
        id,
        type,
        queue,
        attempts,
        max_retries,
        deadline,
        created_at,
        started_at,
        payload,
        *rest,
    ) = row
    past = rest[3]
    trace = None if past is None else past[_TRACE]
    return Claim(
        lease=Lease(id, attempts, worker, token),
        type=type,
        queue=queue,
        payload=payload.encode(),
        attempts=attempts,
        max_retries=max_retries,
        priority=-rank,
        deadline=deadline,
        run_at=run_at,
        created_at=created_at,
        started_at=started_at,
        starts_in=rest[1],
        key=rest[0],
        has_begun=rest[2],
        expires_at=rest[4],
        trace=trace,
        has_run=trace is not None and (past[_STARTED_AT] is not None or len(past) > _TRACE + 1),
        problem=_problem_of(run_at, deadline, created_at, past),
    )


def _precedence(row: Sequence[Any]) -> tuple[Any, ...]:
    return row[0], row[1], row[2]


def job_of(row: Sequence[Any]) -> Job:
    """A row of page.sql, or of get.sql, which has some columns more."""
    return read_job(dict(zip(COLUMNS, row[1:], strict=False)), _READERS).job


def _problem_of(
    run_at: float, deadline: float | None, created_at: float, past: Sequence[Any] | None
) -> str | None:
    """What is wrong with a job that was claimed; its past as it was before, if it had any."""
    if (
        past is None
        and all(-6e10 < each < 2e11 for each in (run_at, created_at))
        and 0 <= (deadline or 0) < 2e11
    ):
        return None
    values: dict[str, Any] = {"run_at": run_at, "deadline": deadline, "created_at": created_at}
    if past is not None:
        error, progress, result, started_at, finished_at, _, *history = past
        values |= {"error": error, "progress": progress, "result": result, "history": history}
        values |= {
            "started_at": started_at and float(started_at),
            "finished_at": finished_at and float(finished_at),
        }
    return read_values(values, _READERS)[1]


def history_of(entries: Sequence[str]) -> tuple[Attempt, ...]:
    """The value of a column `history`."""
    return tuple(attempt_of(_read_ended(entry)) for entry in entries)


_READERS = {**SQL_READERS, "history": history_of}
