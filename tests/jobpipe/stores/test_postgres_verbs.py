"""The verbs of the PostgreSQL store, driven through a connection that is awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from typing import Any, TypeVar

import psycopg
import pytest

from jobpipe import JobStatus, Progress
from jobpipe.model.counts import Filter
from jobpipe.model.durable import SignalAnswer
from jobpipe.model.gate import Limit
from jobpipe.model.lease import LeaseState
from jobpipe.model.logs import LogChunk
from jobpipe.stores.driving import drive_awaited
from jobpipe.stores.postgres import PostgresStore
from jobpipe.stores.postgres.address import Address
from jobpipe.stores.postgres.connection import Connections
from jobpipe.stores.postgres.verb import Result, Step, Unit, Verb
from jobpipe.testing import new_job
from jobpipe.testing.durable.tools import record, send, sleep, step_names
from jobpipe.testing.scheduling import ENTRY
from jobpipe.testing.tools import finish, put, take_one
from jobpipe.testing.watching import worker

T = TypeVar("T")
VERBS = {name for name, value in vars(PostgresStore).items() if hasattr(value, "__wrapped__")}


class AwaitedConnection(Connections):
    """Drives verbs through one connection that is awaited."""

    def __init__(self, address: Address, loop: asyncio.Runner) -> None:
        super().__init__(address)
        self._loop = loop
        self._connection = loop.run(psycopg.AsyncConnection.connect(**address.parameters, autocommit=True))
        self.driven: set[str] = set()

    def drive(self, verb: Verb[T]) -> T:
        self.driven.add(getattr(verb, "__name__", ""))
        return self._loop.run(drive_awaited(verb, self._do))

    async def _do(self, unit: Unit) -> Any:
        with self.mapped_errors():
            try:
                if callable(unit):
                    async with self._connection.transaction():
                        return await drive_awaited(unit(), self._ask)
                async with self._connection.pipeline():
                    cursors = [await self._connection.execute(*step[:2]) for step in unit]
                return [await _result(cursor) for cursor in cursors]
            except psycopg.Error:
                await self._connection.rollback()
                raise

    async def _ask(self, step: Step) -> Result:
        return await _result(await self._connection.execute(*step[:2]))

    def close(self) -> None:
        self._loop.run(self._connection.close())


async def _result(cursor: psycopg.AsyncCursor[Any]) -> Result:
    return Result(await cursor.fetchall() if cursor.description else [], cursor.rowcount)


@pytest.fixture
def store(postgres_url: str) -> Iterator[PostgresStore]:
    with asyncio.Runner() as loop, closing(PostgresStore(postgres_url)) as store:
        store.migrate()
        store._connections = AwaitedConnection(Address.parse(postgres_url), loop)
        yield store


def test_every_verb_can_be_driven_through_a_connection_that_is_awaited(store: PostgresStore) -> None:
    assert len(VERBS) > 30, "it sees them"
    put(store, new_job("a", priority=1), new_job("b", unique="b"), new_job("c", key="k"))
    put(store, new_job("a", priority=1))  # Why again: what is known is looked at in a conversation
    claim = take_one(store)
    assert store.begin([claim.lease], [claim.started_at]) == [LeaseState.HELD]
    assert store.extend([claim.lease], 60) == [LeaseState.HELD]
    store.progress([(claim.lease, Progress(value=0.5))])
    store.write_logs([(claim.lease, LogChunk(start=0, cut=0, count=0, size=2, lines="[]"))])
    assert record(store, claim, "s") == [True]
    assert send(store) is SignalAnswer.ACCEPTED
    assert store.receive(claim.lease, "go").payload == b"null"
    assert sleep(store, claim, seconds=0)
    claim = take_one(store)
    assert step_names(store) == ["s"]
    finish(store, claim)
    found = store.get("a")
    assert found is not None
    assert found.status is JobStatus.DONE
    assert store.logs("a") is not None
    assert store.retry(["a"]) == [JobStatus.DONE]
    limited = store.claim("w", ["work"], 1, 60, [Limit(type="work", concurrency=1)])
    assert store.running_of("b") == "b"
    assert store.release([each.lease for each in limited.claims]) == [True]
    assert store.cancel(["a"]) == store.delete(["a"]) == [JobStatus.DONE]
    store.pause("default")
    store.resume("default")
    assert store.rescue() == []
    assert [job.id for job in store.page(Filter(), 10).jobs] == ["c", "b"]
    assert store.counts().tallies
    assert store.failures().counted == 0
    assert (store.ahead("c"), store.key_of("c")) == (1, "k")
    assert store.limits().gates == []
    assert len(store.events(0, 100)) <= store.last_event()
    tick_at = store.put_schedule(ENTRY).next_at
    assert store.fire_tick(ENTRY.name, tick_at, tick_at + 60, new_job("d"))
    assert store.pause_schedule(ENTRY.name)
    assert store.resume_schedule(ENTRY.name, tick_at + 60, tick_at + 120)
    assert len(store.schedules().entries) == 1
    assert store.drop_schedule(ENTRY.name)
    exported = store.export(10)
    assert store.discard([each.job.id for each in exported]) == len(exported) == 3
    assert store.adopt(exported) == 3
    assert store.prune(0.0) == 0
    store.beat(worker("w"), 60)
    assert [each.name for each in store.workers()] == ["w"]
    assert isinstance(store._connections, AwaitedConnection)
    assert VERBS - store._connections.driven == set()
