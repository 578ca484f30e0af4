"""Every store decides as the rules of `model/` say, also where SQL and Lua have a copy of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from jobpipe.model.admission import Bounds, Lane, Plan, admit
from jobpipe.model.gate import Gate, Limit
from jobpipe.model.job import JobStatus, Move, OnDuplicate
from jobpipe.model.lease import Lease, Outcome, Settlement
from jobpipe.model.newjob import Answer, NewJob, Receipt
from jobpipe.model.unique import Named, Waiting
from jobpipe.stores.base import Store
from jobpipe.stores.memory import MemoryStore
from jobpipe.stores.redis import RedisStore
from jobpipe.stores.sqlite import SqliteStore
from jobpipe.testing import ManualTime, new_job

from ...support.servers_redis import with_own_keys


class Kept(NamedTuple):
    """A store, and the clock that it goes by; every example finds the same."""

    store: Store
    time: ManualTime


@pytest.fixture(params=["memory", "sqlite", "postgres", "redis"])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Kept]:
    time, stack = ManualTime(), ExitStack()
    store: Store
    match request.param:
        case "memory":
            store = MemoryStore(clock=time)
        case "sqlite":
            store = SqliteStore(tmp_path / "jobs.db", clock=time)
        case "postgres":
            store = stack.enter_context(request.getfixturevalue("postgres_stores").one())(clock=time)
        case _:
            store = RedisStore(with_own_keys(request.getfixturevalue("redis_url")), clock=time)
    with stack, closing(store):
        store.migrate()
        yield Kept(store, time)


rule = settings(
    max_examples=40,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

# Admission

IDS = [f"j{n}" for n in range(6)]
names = st.one_of(
    st.just(dict[str, Any]()),
    st.fixed_dictionaries(
        {"unique": st.sampled_from(["u0", "u1"]), "on_duplicate": st.sampled_from(OnDuplicate)},
        optional={"max_wait": st.just(4.0)},
    ),
)
jobs = st.builds(
    lambda name, payload, more, **fields: new_job(name, payload, **fields, **more),
    st.sampled_from(IDS),
    st.sampled_from([None, 1]),
    names,
    type=st.sampled_from(["t0", "t1"]),
    queue=st.sampled_from(["q0", "q1"]),
    delay=st.sampled_from([0.0, 0.0, 10.0]),
    run_at=st.sampled_from([None, None, 5.0]),
    max_retries=st.sampled_from([3, 3, 1]),
    former_retries=st.sampled_from([(), (1,)]),
)
batches = st.lists(st.lists(jobs, max_size=4), min_size=1, max_size=3)
some_bounds = st.builds(
    Bounds, *(st.sampled_from([0, 1, 2, 3]), st.sampled_from([0, 1, 2]), st.sampled_from([0, 1, 2, 3]))
)


class Admitted:
    """Jobs that `admit` lets in, as the plainest `Occupancy`."""

    def __init__(self, now: float) -> None:
        self._now = now
        self._jobs: dict[str, NewJob] = {}

    def insert(self, batch: Sequence[NewJob], bounds: Bounds) -> Answer:
        plan = admit(batch, self._fingerprint, bounds, self, self._now, self._named)
        if not isinstance(plan, Plan):
            return plan
        self._jobs |= {job.id: job for job in plan.new}
        for id, new in plan.replaced.items():
            self._jobs[id] = replace(new, id=id, fingerprint=self._jobs[id].fingerprint)
        return [Receipt(id, self._status(self._jobs[id]), is_new) for id, is_new in plan.receipts]

    def _named(self, name: str) -> Named:
        """Nothing has begun here."""
        waiting = [Waiting(job.id, job.type, job.queue) for job in self._jobs.values() if job.unique == name]
        return Named(waiting[0]) if waiting else Named()

    def _fingerprint(self, id: str) -> str | None:
        return self._jobs[id].fingerprint if id in self._jobs else None

    def _status(self, job: NewJob) -> JobStatus:
        return JobStatus.QUEUED if job.due_at(self._now) <= self._now else JobStatus.SCHEDULED

    def ready(self, queue: str) -> int:
        queued = [job for job in self._jobs.values() if self._status(job) is JobStatus.QUEUED]
        return sum(job.queue == queue for job in queued)

    def scheduled(self) -> int:
        return sum(self._status(job) is JobStatus.SCHEDULED for job in self._jobs.values())

    def has_lane(self, lane: Lane) -> bool:
        return lane in self._lanes()

    def lanes(self) -> int:
        return len(self._lanes())

    def _lanes(self) -> set[Lane]:
        return {(job.queue, job.type) for job in self._jobs.values()}


def shown(answers: Sequence[Answer]) -> list[Any]:
    return [each if isinstance(each, list) else (type(each), vars(each)) for each in answers]


@rule
@given(before=batches, batches=batches, bounds=some_bounds)
def test_batches_are_admitted_as_the_rule_says(
    kept: Kept, before: list[list[NewJob]], batches: list[list[NewJob]], bounds: Bounds
) -> None:
    store = kept.store
    store.discard(IDS)
    store.prune(0)  # forgets the names
    expected = Admitted(kept.time())
    assert shown(store.insert(before)) == shown([expected.insert(batch, Bounds()) for batch in before])
    answers = store.insert(batches, capacity=bounds.ready, scheduled=bounds.scheduled, names=bounds.names)
    assert shown(answers) == shown([expected.insert(batch, bounds) for batch in batches])


# Gates

numbers = count()
# Why such fractions: all clocks keep them, and none comes so near to the lead that a closed gate may be asked too early.
limits = st.builds(
    Limit,
    type=st.just(""),
    interval=st.sampled_from([0.0, 1 / 32, 0.5, 3.0]),
    burst=st.integers(1, 3),
    concurrency=st.integers(0, 3),
).filter(lambda limit: limit.interval or limit.concurrency)


class Turn(NamedTuple):
    """What happens to a gate: time passes, runs end, and a claim asks for jobs."""

    seconds: float
    ending: int
    wanted: int


turns = st.lists(
    st.builds(Turn, st.sampled_from([0.0, 1 / 8, 0.5, 4.0]), st.integers(0, 2), st.integers(1, 4)),
    min_size=2,
    max_size=6,
)


@rule
@given(limit=limits, turns=turns)
def test_gates_let_jobs_in_as_the_arithmetic_says(kept: Kept, limit: Limit, turns: list[Turn]) -> None:
    store, time = kept
    limit = replace(limit, type=f"t{next(numbers)}")
    ids = [f"{limit.type}.{n}" for n in range(24)]
    store.insert([[new_job(id, type=limit.type) for id in ids]])
    next_at, held = 0.0, list[Lease]()
    for turn in turns:
        time.elapse(turn.seconds)
        ended, held = held[: turn.ending], held[turn.ending :]
        assert all(store.settle([Settlement(lease, Outcome(move=Move.SUCCEED)) for lease in ended]))
        gate = Gate(limit, time(), next_at, len(held))
        expected = [gate.enter(time()) for _ in range(turn.wanted)]
        claims = store.claim("w", [limit.type], turn.wanted, 1_000.0, [limit]).claims
        assert [claim.starts_in for claim in claims] == [each for each in expected if each is not None]
        next_at = gate.next_at
        held += [claim.lease for claim in claims]
    store.cancel(ids)


@rule
@given(whole=limits, own=st.one_of(st.none(), limits), turns=turns)
def test_jobs_pass_the_gates_of_their_queue_and_of_their_type(
    kept: Kept, whole: Limit, own: Limit | None, turns: list[Turn]
) -> None:
    store, time = kept
    name = f"t{next(numbers)}"
    told = [replace(whole, queue=name), *([] if own is None else [replace(own, type=name)])]
    ids = [f"{name}.{n}" for n in range(24)]
    store.insert([[new_job(id, type=name, queue=name) for id in ids]])
    paces, held = [0.0, 0.0], list[Lease]()
    for turn in turns:
        time.elapse(turn.seconds)
        ended, held = held[: turn.ending], held[turn.ending :]
        assert all(store.settle([Settlement(lease, Outcome(move=Move.SUCCEED)) for lease in ended]))
        gates = [Gate(limit, time(), at, len(held)) for limit, at in zip(told, paces, strict=False)]
        expected = [gates[-1].enter(time(), *gates[:-1]) for _ in range(turn.wanted)]
        claims = store.claim("w", [name], turn.wanted, 1_000.0, told).claims
        assert [claim.starts_in for claim in claims] == [each for each in expected if each is not None]
        paces = [gate.next_at for gate in gates]
        held += [claim.lease for claim in claims]
        (state,) = store.limits(queues=[name]).queues
        assert (state.running, state.next_at) == (len(held), paces[0] if paces[0] > time() else 0.0)
    store.release(held)
    store.cancel(ids)
