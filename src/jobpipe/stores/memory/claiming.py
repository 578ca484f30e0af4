"""A claim: the best of the queued jobs, in order, as far as pauses and limits let them through."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from heapq import heapify, heappop, heapreplace
from secrets import token_hex
from typing import NamedTuple

from ...model.gate import MOST_PASSED_OVER, Limit
from ...model.job import JobStatus
from ...model.lease import Claim, ClaimResult, Lease, QueueChoice
from ...model.selection import Shares
from .gates import Selection
from .ledger import Ledger
from .record import Record
from .runs import begin_run


class Order(NamedTuple):
    """What a claim asks for."""

    worker: str
    types: Sequence[str]
    limit: int
    lease: float
    limits: Sequence[Limit]
    begin: int | None
    queues: QueueChoice | None


def claim(ledger: Ledger, paused: Collection[str], order: Order, now: float) -> ClaimResult:
    worker, types, limit, lease, limits, begin, queues = order
    shares = Shares(queues.rooms) if queues is not None and queues.rooms else None
    token = token_hex(16)
    claims: list[Claim] = []
    passed_over = 0
    selection = Selection(ledger.gates, limits, now)
    lanes = [
        lane
        for type in set(types)
        for queue, lane in ledger.lanes.get(type, {}).items()
        if lane.counts[JobStatus.QUEUED] and queue not in paused
    ]
    if queues is not None:
        # Why all queues of such a type: what its gates let out is for every worker.
        served = {lane.type for lane in lanes if lane.queue in queues}
        lanes = [lane for lane in lanes if lane.type in served]
    heads = [
        (record.precedence(), lane, record)
        for lane in selection.opened(lanes, limit)
        if (queues is None or lane.queue in queues) and (record := lane.ready.first())
    ]
    heapify(heads)  # Why no tie ever reaches the lanes: the precedence ends in a unique number.
    while heads and len(claims) < limit and passed_over < MOST_PASSED_OVER:
        _, lane, record = heads[0]
        is_alone = record.is_suspect or record.new.unique is not None
        if shares is not None:
            if not shares.has_room(lane.queue, is_alone=is_alone):
                heappop(heads)
                continue
            begins = True
        else:
            begins = begin is None or len(claims) < begin
            if is_alone and not begins:
                break
        starts_in = selection.enter(record)
        if starts_in is not None:
            if shares is not None:
                begins = shares.take(lane.queue)
            held = Lease(record.new.id, record.attempts + 1, worker, token)
            has_run = record.new.trace is not None and (record.has_begun or bool(record.history))
            ledger.lease(record, held, now + lease)
            if begins:
                begin_run(ledger, record, now + starts_in, now)
            claims.append(claim_of(record, held, now, starts_in, begins, has_run))
            following = lane.ready.first()
        elif record.heap is lane.ready:  # it is not parked: its whole type, or queue, has to wait
            following = None
        else:
            passed_over += 1
            following = lane.ready.first()
        if following:
            heapreplace(heads, (following.precedence(), lane, following))
        else:
            heappop(heads)
    selection.end()
    if passed_over == MOST_PASSED_OVER:
        selection.wait(0.0)
    upcoming = ledger.scheduled.first()
    if upcoming:
        selection.wait(upcoming.run_at - now)
    is_cut = shares is not None and bool(shares.full)
    return ClaimResult(claims, selection.due_in, has_more=bool(heads) or is_cut)


def claim_of(
    record: Record, lease: Lease, now: float, starts_in: float, begins: bool, has_run: bool
) -> Claim:
    """What the worker is told of a job that it has leased."""
    new = record.new
    return Claim(
        lease=lease,
        type=new.type,
        queue=new.queue,
        payload=new.payload,
        attempts=lease.attempt,
        max_retries=new.max_retries,
        priority=new.priority,
        deadline=new.deadline,
        run_at=record.run_at,
        created_at=record.created_at,
        started_at=now + starts_in,
        starts_in=starts_in,
        key=record.key,
        has_begun=begins,
        expires_at=record.expires_at if not begins and record.may_expire else None,
        trace=new.trace,
        has_run=has_run,
    )
