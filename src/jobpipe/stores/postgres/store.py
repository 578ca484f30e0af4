"""PostgresStore: the verbs, each one transaction, and mostly one round trip, of the statements in `sql/`.

The server's clock decides. Claims and signs of life are not waited for to be on disk: what a crash takes back of
them, happens again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from ...model.durable import Step
from ...model.lease import Lease, Settlement
from ...model.newjob import Answer, NewJob
from ..base import Capabilities, News, Watch
from .address import Address
from .checking import remarks
from .connection import Connections
from .guest import Guests
from .migrate import migrate
from .session import Session
from .statements import Statements
from .verb import Verb
from .verbs import claiming, durable, inserting, inspecting, logs, managing, running, scheduling, transfer
from .watch import PostgresWatch

P = ParamSpec("P")
T = TypeVar("T")


def open_postgres(url: str) -> PostgresStore:
    """The store at `postgresql://user:password@host:port/database?schema=jobpipe`."""
    return PostgresStore(url)


def _driven(
    verb: Callable[Concatenate[Session, P], Verb[T]],
) -> Callable[Concatenate[PostgresStore, P], T]:
    """A verb as a method that blocks."""

    @wraps(verb)
    def method(store: PostgresStore, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return store._connections.drive(verb(store._session, *args, **kwargs))

    return method


class PostgresStore:
    """Jobs in a PostgreSQL database."""

    capabilities = Capabilities(durable=True, shared=True, transactional=True, push=True, blocking=True)

    def __init__(self, url: str, *, clock: Callable[[], float] | None = None) -> None:
        self._address = Address.parse(url)
        self._clock = clock
        self.url = self._address.url
        self._full_url = url
        self._connections = Connections(self._address)
        self._sql = Statements(self._address.schema)
        self._session = Session(self._sql, clock)
        self._guests = Guests(self._session, self._connections)

    # Lifecycle

    def migrate(self) -> list[str]:
        connection = self._connections.open()
        try:
            with self._connections.mapped_errors():
                return migrate(connection, self._sql, self.url)
        finally:
            connection.close()

    def check(self) -> list[str]:
        return self._connections.attempt(lambda connection: remarks(connection, self._sql, self.url))

    def sibling(self) -> Self:
        return type(self)(self._full_url, clock=self._clock)

    def close(self) -> None:
        self._connections.close()

    # Enqueue

    insert = _driven(inserting.insert)

    def insert_in(
        self, connection: Any, batch: Sequence[NewJob], *, capacity: int = 0
    ) -> Answer | Awaitable[Answer]:
        return self._guests.insert(connection, batch, capacity)

    # Run

    claim = _driven(claiming.claim)
    begin = _driven(running.begin)
    extend = _driven(running.extend)
    progress = _driven(running.progress)
    write_logs = _driven(logs.write_logs)
    settle = _driven(running.settle)
    release = _driven(running.release)
    rescue = _driven(running.rescue)

    # Manage

    cancel = _driven(managing.cancel)
    retry = _driven(managing.retry)
    delete = _driven(managing.delete)
    pause = _driven(managing.pause)
    resume = _driven(managing.resume)

    # Steps and signals

    write_steps = _driven(durable.write_steps)
    receive = _driven(durable.receive)
    signal = _driven(durable.signal)
    durable = _driven(durable.durable)

    def write_step_in(self, connection: Any, lease: Lease, step: Step) -> Awaitable[None] | None:
        return self._guests.write_step(connection, lease, step)

    def settle_in(self, connection: Any, settlement: Settlement) -> Awaitable[None] | None:
        return self._guests.settle(connection, settlement)

    # Inspect

    get = _driven(inspecting.get)
    logs = _driven(logs.logs)
    page = _driven(inspecting.page)
    counts = _driven(inspecting.counts)
    failures = _driven(inspecting.failures)
    ahead = _driven(inspecting.ahead)
    key_of = _driven(inspecting.key_of)
    running_of = _driven(inspecting.running_of)
    limits = _driven(inspecting.limits)
    events = _driven(inspecting.events)
    last_event = _driven(inspecting.last_event)

    def watch(self, news: News) -> Watch:
        return PostgresWatch(self._connections, self._sql, news)

    # Workers

    beat = _driven(running.beat)
    workers = _driven(inspecting.workers)

    # Schedules

    put_schedule = _driven(scheduling.put_schedule)
    drop_schedule = _driven(scheduling.drop_schedule)
    pause_schedule = _driven(scheduling.pause_schedule)
    resume_schedule = _driven(scheduling.resume_schedule)
    schedules = _driven(scheduling.schedules)
    fire_tick = _driven(scheduling.fire_tick)

    # Moving to another store

    export = _driven(transfer.export)
    adopt = _driven(transfer.adopt)
    discard = _driven(transfer.discard)

    # Maintain

    prune = _driven(managing.prune)
