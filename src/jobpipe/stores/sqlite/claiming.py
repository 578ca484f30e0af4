"""What a claim makes of the jobs that were chosen: leases, and jobs as the runner gets them."""

from __future__ import annotations

import secrets
import sqlite3
from typing import NamedTuple

import msgspec
from msgspec import Raw, Struct

from ...model.lease import Claim, Lease
from ..sql_rows import text_of
from ..stored import Stored
from .choosing import Choice
from .rows import stored_of
from .statements import sql


class _StoredJob(NamedTuple):
    """What is to be known of a job that is not plain."""

    problem: str | None
    has_run: bool
    """Did it begin before?"""
    expires_at: float | None
    trace: str | None


class _Claimed(Struct, array_like=True):
    """What claimed.sql tells of a job."""

    id: str
    type: str
    queue: str
    attempts: int
    max_retries: int
    priority: int
    deadline: float | None
    run_at: int
    created_at: int
    payload: list[Raw]
    seq: int
    key: str | None
    is_plain: int

    @property
    def may_be_odd(self) -> bool:
        """Has it a past, or values that another program may have written? Then all its columns are read with care."""
        return not (self.is_plain and self.payload)

    def claim(
        self,
        worker: str,
        token: str,
        now: float,
        starts_in: float,
        *,
        has_begun: bool,
        stored: _StoredJob | None,
    ) -> Claim:
        return Claim(
            lease=Lease(self.id, self.attempts, worker, token),
            type=self.type,
            queue=self.queue,
            payload=bytes(self.payload[0]) if self.payload else b"",
            attempts=self.attempts,
            max_retries=self.max_retries,
            priority=self.priority,
            deadline=self.deadline,
            run_at=self.run_at / 1e6,
            created_at=self.created_at / 1e6,
            started_at=now + starts_in,
            starts_in=starts_in,
            key=self.key,
            has_begun=has_begun,
            expires_at=None if has_begun or stored is None or stored.has_run else stored.expires_at,
            trace=None if stored is None else stored.trace,
            has_run=stored is not None and stored.trace is not None and stored.has_run,
            problem=None if stored is None else stored.problem,
        )


_read_claimed = msgspec.json.Decoder(list[_Claimed]).decode


def _claimed_of(text: str) -> dict[int, _Claimed]:
    """The one value of claimed.sql, by seq."""
    return {each.seq: each for each in _read_claimed(text)}


def claim_chosen(
    cursor: sqlite3.Cursor, choice: Choice, worker: str, lease: float, now: float
) -> list[Claim]:
    """Give the worker leases on them; those for which it has slots begin."""
    if not choice.taken:
        return []
    token = secrets.token_hex(8)
    claimed = _claimed_of(*cursor.execute(sql("claimed"), (text_of(list(choice.taken)),)).fetchone())
    stored = _stored(cursor, [seq for seq, each in claimed.items() if each.may_be_odd])
    begun, ahead = choice.claims()
    values = {"now": now, "worker": worker, "token": token, "until": now + lease}
    if begun:
        cursor.execute(sql("claim"), {**values, "jobs": text_of(begun)})
    if ahead:
        cursor.execute(sql("claim_ahead"), {**values, "seqs": text_of(ahead)})
    has_begun = {seq for seq, _, _, begins in begun if begins}
    return [
        claimed[seq].claim(worker, token, now, starts_in, has_begun=seq in has_begun, stored=stored.get(seq))
        for seq, (_, starts_in) in choice.taken.items()
    ]


def _stored(cursor: sqlite3.Cursor, seqs: list[int]) -> dict[int, _StoredJob]:
    """Some jobs with what all their values say, by seq."""
    rows = cursor.execute(sql("odd"), (text_of(seqs),)).fetchall() if seqs else ()
    return {row[0]: _stored_job(stored_of(row), row[-1]) for row in rows}


def _stored_job(stored: Stored, trace: object) -> _StoredJob:
    job = stored.job
    return _StoredJob(
        stored.problem,
        job.started_at is not None or bool(job.history),
        None if job.expires_at is None else job.expires_at.timestamp(),
        trace if isinstance(trace, str) else None,
    )
