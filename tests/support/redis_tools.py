"""What the tests of the Redis store have in common: a store on a server, and a round of all verbs."""

from __future__ import annotations

import time

from jobpipe import JobStatus
from jobpipe.model.durable import ReceivedKind, SignalAnswer
from jobpipe.model.gate import Limit
from jobpipe.model.job import Move, Progress
from jobpipe.stores.base import (
    Filter,
    JobLogs,
    LeaseState,
    LogChunk,
    Outcome,
    ScheduleEntry,
    Settlement,
    WorkerInfo,
)
from jobpipe.stores.redis import RedisStore
from jobpipe.testing.durable.tools import record, send, step_names
from jobpipe.testing.reading import look, page_ids
from jobpipe.testing.tools import BOOM, finish, new_job, put, take

from .servers_redis import RedisServer


def opened(server: RedisServer, query: str = "") -> RedisStore:
    store = RedisStore(server.url + query)
    store.migrate()
    return store


def one_round(store: RedisStore) -> None:
    """Every verb once."""
    limits = (Limit(type="work", interval=0.001, concurrency=1, is_keyed=True),)
    put(store, *(new_job(f"j{n}", key="k") for n in range(4)), new_job("later", delay=60))
    (claim,) = store.claim("w1", ["work"], 9, 60, limits, begin=0).claims
    assert store.claim("w2", ["work"], 9, 60, limits).claims == []
    assert [gate.key for gate in store.limits().gates] == ["k"]
    assert store.begin([claim.lease], [0.0]) == [LeaseState.HELD]
    assert store.extend([claim.lease], 60) == [LeaseState.HELD]
    store.progress([(claim.lease, Progress(value=0.5))])
    store.write_logs([(claim.lease, LogChunk(start=0, cut=0, count=0, size=2, lines="[]"))])
    assert store.logs(claim.id) == JobLogs([], 0, 0)
    assert record(store, claim, "s") == [True]
    assert send(store, claim.id) is SignalAnswer.ACCEPTED
    assert store.receive(claim.lease, "go").kind is ReceivedKind.SIGNAL
    assert step_names(store, claim.id) == ["s"]
    assert finish(store, claim, Move.FAIL, error=BOOM)
    released, settled = take(store, 2)
    assert store.release([released.lease]) == [True]
    assert store.settle(
        [Settlement(settled.lease, Outcome(move=Move.SUCCEED, result=b'"' + b"x" * 999 + b'"'))]
    )
    assert store.rescue() == []
    assert store.cancel(["later"]) == [JobStatus.SCHEDULED]
    assert store.retry(["j0"]) == [JobStatus.FAILED]
    store.pause("default")
    store.resume("default")
    assert look(store, settled.id).result == "x" * 999
    assert len(page_ids(store, Filter(type="work"))) == 5
    assert store.ahead("j0") >= 1
    assert store.key_of("j0") == "k"
    assert store.running_of("j0") is None
    assert store.failures().failures == []
    assert store.last_event() == store.events(0, 100)[-1].number
    store.beat(WorkerInfo(name="w1", types=("work",), slots=1, running=(), started_at=1.0), 60)
    assert len(store.workers()) == 1
    store.put_schedule(
        ScheduleEntry(name="s", type="work", queue="q", payload=b"null", every=1.0, next_at=1.0)
    )
    assert store.fire_tick("s", 1.0, 2.0, new_job("tick"), capacity=99)
    assert [entry.last_job for entry in store.schedules().entries] == ["tick"]
    assert store.pause_schedule("s")
    assert store.resume_schedule("s", 2.0, 3.0)
    assert store.drop_schedule("s")
    exported = store.export(100)
    store.discard([job.job.id for job in exported])
    assert store.adopt(exported) == len(exported) > 0
    time.sleep(0.001)  # what has just finished is not older than 0 s by the server's clock
    assert store.prune(0) == 2
    assert store.delete(["gone"]) == [None]
    assert store.check()
