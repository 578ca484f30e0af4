"""What random steps are made of: jobs, outcomes, limits, schedules and filters, few enough to meet each other often."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from msgspec.structs import replace

from ...model.counts import Filter
from ...model.durable import NO_TIMEOUT
from ...model.gate import Limit
from ...model.job import JobError, JobStatus, Move, OnDuplicate, Progress
from ...model.lease import Outcome, QueueChoice, Room
from ...model.schedule import Missed, ScheduleEntry
from ..tools import new_job

IDS = [f"j{n}" for n in range(6)]
QUEUES = ["q0", "q1"]
TYPES = ["t0", "t1"]
WORKERS = ["w0", "w1"]
SECONDS = [0.0, 0.5, 1.0, 3.0, 10.0]

errors = st.sampled_from(
    [None, JobError(type="Boom", message="it broke"), JobError(type="E", message="", traceback="x")]
)
_delays = st.sampled_from(SECONDS)
_progress = st.sampled_from([None, Progress(value=0.75)])
outcomes = st.one_of(
    st.builds(
        Outcome,
        move=st.just(Move.SUCCEED),
        result=st.sampled_from([None, b"null", b'{"x":[1]}']),
        progress=_progress,
    ),
    st.builds(Outcome, move=st.sampled_from([Move.FAIL, Move.CANCEL]), error=errors, progress=_progress),
    st.builds(Outcome, move=st.just(Move.RETRY), error=errors, delay=_delays, progress=_progress),
    st.builds(
        Outcome,
        move=st.just(Move.SNOOZE),
        delay=_delays,
        progress=_progress,
        cools=st.sampled_from([0.0, 0.0, 1.0, 3.0]),
    ),
)
suspensions = st.builds(
    Outcome,
    move=st.sampled_from([Move.SLEEP, Move.WAIT]),
    name=st.sampled_from(["go", "stop"]),
    delay=st.sampled_from([*SECONDS, NO_TIMEOUT]),
    progress=_progress,
)
SIGNALS = ["go", "stop"]
UNIQUE = ["u0", "u1"]
_unnamed = st.just(dict[str, Any]())
_named = st.fixed_dictionaries(
    {"unique": st.sampled_from(UNIQUE), "on_duplicate": st.sampled_from(OnDuplicate)},
    optional={"max_wait": st.sampled_from([1.0, 3.0])},
)
jobs = st.builds(
    lambda name, payload, more, **fields: new_job(name, payload, **fields, **more),
    st.sampled_from(IDS),
    st.sampled_from([None, {"x": 1}]),
    st.one_of(_unnamed, _named),
    type=st.sampled_from(TYPES),
    queue=st.sampled_from(QUEUES),
    max_retries=st.integers(0, 2),
    priority=st.integers(-1, 1),
    delay=st.sampled_from(SECONDS),
    key=st.sampled_from([None, "k0", "k1"]),
    former_retries=st.sampled_from([(), (), (0,), (1, 2)]),
    expires_in=st.sampled_from([None, None, None, *SECONDS]),
    tags=st.sampled_from([(), (), ("a",), ("a", "b")]),
)
first_jobs = st.lists(
    jobs.map(lambda job: replace(job, delay=0.0, expires_in=None)),
    min_size=1,
    max_size=3,
    unique_by=(lambda job: job.id, lambda job: job.unique or job.id),
)
"""Those that a run of the machine begins with: they are due, and none is in the way of another."""
LIMITS: list[tuple[Limit, ...]] = [
    (),
    (Limit(type="t0", concurrency=1),),
    (Limit(type="t0", interval=1.0), Limit(type="t1", concurrency=2)),
    (Limit(type="t0", concurrency=1, is_keyed=True), Limit(type="t1", interval=2.0, burst=2)),
    (Limit(type="t0", interval=3.0, concurrency=1, is_keyed=True),),
    (Limit(queue="q0", concurrency=1),),
    (
        Limit(queue="q0", interval=1.0, burst=2),
        Limit(queue="q1", concurrency=2),
        Limit(type="t0", interval=1.0),
    ),
    (Limit(queue="q0", interval=2.0, concurrency=2), Limit(type="t0", concurrency=1, is_keyed=True)),
]
"""What holds in a run of the machine. Why in all of it: a limit that was lifted may hold for a while yet."""
rooms = st.builds(Room, st.integers(0, 3), st.integers(0, 2))
choices = st.one_of(
    st.none(),
    st.builds(QueueChoice, only=st.frozensets(st.sampled_from([*QUEUES, "unknown"]))),
    st.builds(QueueChoice, excluded=st.frozensets(st.sampled_from([*QUEUES, "unknown"]))),
    st.builds(QueueChoice, rooms=st.dictionaries(st.sampled_from(QUEUES), rooms, min_size=1)),
)
NAMES = ["s0", "s1"]
ticks = st.sampled_from([1.5, 2.0, 3.5])
some_tick = st.one_of(st.none(), ticks)
"""None is the one that is next."""
entries = st.builds(
    lambda timing, **fields: ScheduleEntry(**fields, every=timing[0], cron=timing[1], tz=timing[2]),
    timing=st.sampled_from(
        [(1.0, None, None), (2.0, None, None), (None, "* * * * *", "UTC"), (None, "* * * * *", "Asia/Tokyo")]
    ),
    name=st.sampled_from(NAMES),
    type=st.sampled_from(TYPES),
    queue=st.sampled_from(QUEUES),
    payload=st.sampled_from([b"null", b'{"x":1}']),
    missed=st.sampled_from(Missed),
    anchor_at=st.sampled_from([0.0, 0.5]),
    next_at=ticks,
    last_at=st.sampled_from([None, 0.5]),
    last_job=st.sampled_from([None, "before"]),
    is_paused=st.sampled_from([False, False, True]),
)
some_ids = st.lists(st.sampled_from([*IDS, "unknown"]), max_size=3)
picks = st.lists(st.integers(0, 30), min_size=1, max_size=3)
FILTERS = [
    Filter(),
    Filter(type="t0"),
    Filter(queue="q1"),
    *(Filter(status=status) for status in JobStatus),
    Filter(status=JobStatus.QUEUED, type="t1", queue="q0"),
    Filter(tag="a"),
    Filter(tag="b", status=JobStatus.QUEUED),
]
