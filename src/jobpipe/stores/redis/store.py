"""RedisStore: the verbs, each one script in `lua/` that runs on the server as one atomic step.

The server's clock decides. A verb whose reply was lost may be asked again; only a claim is not asked twice, since a
second one would take other jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from ...errors import BadInputError, StoreRefusedError
from ...model.durable import Step
from ...model.lease import Lease, Settlement
from ...model.newjob import Answer, NewJob
from ..base import Capabilities, News, Watch
from ..driving import drive
from . import verbs
from .address import Address, address_of
from .checking import refuse_unfit, remarks
from .records import pack
from .scripts import script
from .server import Server
from .verbs import Call, Verb
from .watch import RedisWatch

P = ParamSpec("P")
T = TypeVar("T")

STEPS = (
    "0001_jobs",
    "0002_claimed_ahead",
    "0003_admission",
    "0004_unique_expiry_tags",
    "0005_logs",
    "0006_durable",
)
"""Of the schema. The second and the fourth rewrite no record: who reads one of the first sees that it is not claimed ahead,
and one that ends early has no expiry, unique name or tags. An older program than the fifth would leave logs behind,
one older than the sixth steps and signals, and would not know jobs that wait for these."""
_SCHEMA = len(STEPS)


def open_redis(url: str) -> RedisStore:
    """The store at `redis://…`, `rediss://…` or `unix://…`."""
    return RedisStore(url)


def _driven(verb: Callable[P, Verb[T]]) -> Callable[Concatenate[RedisStore, P], T]:
    """A verb as a method that blocks."""

    @wraps(verb)
    def method(store: RedisStore, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return drive(verb(*args, **kwargs), store._run)

    return method


class RedisStore:
    """Jobs on a Redis server."""

    capabilities = Capabilities(durable=True, shared=True, transactional=False, push=True, blocking=True)

    def __init__(self, url: str | Address, *, clock: Callable[[], float] | None = None) -> None:
        """A clock is for tests, which cannot wait; all handles must have the same."""
        self._address = address_of(url) if isinstance(url, str) else url
        self.url = self._address.url
        self._clock = clock
        self._server = Server(self._address)

    def _run(self, call: Call) -> Any:
        now = "" if self._clock is None else repr(self._clock())
        return self._server.run(script(call.script), now, pack(call.told), may_repeat=call.may_repeat)

    # Lifecycle

    def migrate(self) -> list[str]:
        refuse_unfit(self._server)
        version = self._run(Call("migrate", _SCHEMA))
        if version > _SCHEMA:
            raise StoreRefusedError(
                f"the store {self.url} has the schema {version}, this program knows {_SCHEMA} at most: "
                "use a newer program"
            )
        return list(STEPS[version:])

    def check(self) -> list[str]:
        return remarks(self._server)

    def sibling(self) -> Self:
        return type(self)(self._address, clock=self._clock)

    def close(self) -> None:
        self._server.close()

    # Enqueue

    insert = _driven(verbs.insert)

    def insert_in(self, connection: Any, batch: Sequence[NewJob], *, capacity: int = 0) -> Answer:
        raise self._no_transactions()

    def _no_transactions(self) -> BadInputError:
        return BadInputError("connection", f"cannot be used with {self.url}, which has no transactions")

    # Run

    claim = _driven(verbs.claim)
    begin = _driven(verbs.begin)
    extend = _driven(verbs.extend)
    progress = _driven(verbs.progress)
    write_logs = _driven(verbs.write_logs)
    settle = _driven(verbs.settle)
    release = _driven(verbs.release)
    rescue = _driven(verbs.rescue)

    # Steps and signals

    write_steps = _driven(verbs.write_steps)
    receive = _driven(verbs.receive)
    signal = _driven(verbs.signal)
    durable = _driven(verbs.durable)

    def write_step_in(self, connection: Any, lease: Lease, step: Step) -> None:
        raise self._no_transactions()

    def settle_in(self, connection: Any, settlement: Settlement) -> None:
        raise self._no_transactions()

    # Manage

    cancel = _driven(verbs.cancel)
    retry = _driven(verbs.retry)
    delete = _driven(verbs.delete)
    pause = _driven(verbs.pause)
    resume = _driven(verbs.resume)

    # Inspect

    get = _driven(verbs.get)
    logs = _driven(verbs.logs)
    page = _driven(verbs.page)
    counts = _driven(verbs.counts)
    failures = _driven(verbs.failures)
    ahead = _driven(verbs.ahead)
    key_of = _driven(verbs.key_of)
    running_of = _driven(verbs.running_of)
    limits = _driven(verbs.limits)
    events = _driven(verbs.events)
    last_event = _driven(verbs.last_event)

    def watch(self, news: News) -> Watch:
        return RedisWatch(self._server, news)

    # Workers

    beat = _driven(verbs.beat)
    workers = _driven(verbs.workers)

    # Schedules

    put_schedule = _driven(verbs.put_schedule)
    drop_schedule = _driven(verbs.drop_schedule)
    pause_schedule = _driven(verbs.pause_schedule)
    resume_schedule = _driven(verbs.resume_schedule)
    schedules = _driven(verbs.schedules)
    fire_tick = _driven(verbs.fire_tick)

    # Moving to another store

    export = _driven(verbs.export)
    adopt = _driven(verbs.adopt)
    discard = _driven(verbs.discard)

    # Maintain

    prune = _driven(verbs.prune)
