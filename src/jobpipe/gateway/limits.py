"""Limits as a program declares them, and as one gets to see them; their arithmetic is in `model/gate.py`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from rate_envelope_queue import BadFieldsError
from rate_envelope_queue import Rate as Rate
from rate_envelope_queue import RateLimited as RateLimited

from ..errors import BadInputError
from ..model.counts import Counts
from ..model.gate import Gate, GateState, Limit, Limits, split_limits
from ..model.ids import check_name
from ..model.job import instant
from ..model.text import clean
from ..stores.base import Store

LONGEST_KEY = 200
_UNITS = ((1.0, "s"), (60.0, "min"), (3_600.0, "h"), (86_400.0, "d"))


def limit_of(
    rate: Rate | str | None, concurrency: int | None, key: Callable[[Any], Any] | None
) -> Limit | None:
    """What `rate=`, `concurrency=` and `key=` come to, of a type to be named; BadInputError naming what is wrong."""
    if concurrency is not None and (
        isinstance(concurrency, bool) or not isinstance(concurrency, int) or concurrency < 1
    ):
        raise BadInputError("concurrency", f"must be a whole number >= 1, got {concurrency!r}")
    if key is not None and not callable(key):
        raise BadInputError("key", f"must be a function of the payload, got {key!r}")
    if rate is None and concurrency is None:
        if key is not None:
            raise BadInputError("key", "limits nothing by itself: give a rate or a concurrency too")
        return None
    try:
        paced = None if rate is None else Rate.of("rate", rate)
    except BadFieldsError as error:
        raise BadInputError("rate", str(error).removeprefix("rate ")) from None
    return Limit(
        type="",
        interval=0.0 if paced is None else paced.interval,
        burst=1 if paced is None else paced.burst,
        concurrency=concurrency or 0,
        is_keyed=key is not None,
    )


class QueueLimits:
    """The limits of queues that a program declares: `pipe.queue("mail", rate="50/s", concurrency=10)`."""

    def __init__(self) -> None:
        self._limits: dict[str, Limit] = {}

    @property
    def limits(self) -> list[Limit]:
        """All of them."""
        return list(self._limits.values())

    def __call__(self, name: str, *, rate: Rate | str | None = None, concurrency: int | None = None) -> None:
        """Limit the jobs of a queue, in all processes together; a job passes this limit and that of its type."""
        queue = check_name("the name of the queue", name)
        limit = limit_of(rate, concurrency, None)
        if limit is None:
            raise BadInputError("rate", f"or concurrency is required: {queue!r} has no other limit")
        if queue in self._limits:
            raise BadInputError("the name of the queue", f"{queue!r} has limits already: declare them once")
        self._limits[queue] = replace(limit, queue=queue)


def key_of(key: Callable[[Any], Any], argument: Any) -> str:
    """What a type's `key=` says of a payload; BadInputError if that is no key."""
    try:
        found = key(argument)
    except Exception as error:
        raise BadInputError(
            "payload", f"has no key for the limits of its type: {error.__class__.__name__}: {error}"
        ) from error
    text = str(found) if isinstance(found, int) and not isinstance(found, bool) else found
    is_short = isinstance(text, str) and 1 <= len(text) <= LONGEST_KEY
    if not is_short or clean(text, LONGEST_KEY) != text:
        raise BadInputError(
            "payload",
            f"has an invalid key for the limits of its type: it must be a whole number or a string of 1 to "
            f"{LONGEST_KEY} characters, got a value of type {found.__class__.__name__}",
        )
    return text


MOST_KEYS = 1_000
"""Keys in use that are told of."""


class LimitInfo(Struct, frozen=True, kw_only=True):
    """A limit and its current use: of a whole type, of one of its keys, or of a queue."""

    type: str | None
    """None for a limit of a queue."""
    queue: str | None = None
    """None for a limit of a type."""
    key: str | None = None
    """None for the type as a whole."""
    is_keyed: bool = False
    """Does each key have it to itself? Then the row of the type tells what each key may."""
    rate: str | None = None
    burst: int = 1
    tokens: float | None = None
    """How many may start at once; None without a rate, and where each key has its own."""
    next_at: datetime | None = None
    """When the next one may start; None if that is now, or nobody knows."""
    concurrency: int | None = None
    running: int = 0
    holders: tuple[str, ...] = ()
    """The ids of the first of those that run."""
    waiting: int | None = None
    """How many jobs of the type, or queue, are queued; None for a key."""
    cools_until: datetime | None = None
    """No job of the type starts before then: another service has limited its rate."""


def look_at_limits(store: Store, own: Iterable[Limit]) -> list[LimitInfo]:
    """The limits that workers know, and of one's own; of keys in use the first MOST_KEYS."""
    limits, of_queues = split_limits([*(each for worker in store.workers() for each in worker.limits), *own])
    found = store.limits(limit=MOST_KEYS, queues=sorted(of_queues))
    seen = {(gate.type, gate.key) for gate in found.gates}
    # Why apart: so many keys of one type may be in use that the gate of another was left off.
    left_off = [
        limit.type for limit in limits.values() if not limit.is_keyed and (limit.type, "") not in seen
    ]
    more = [gate for type in left_off for gate in store.limits(type, "").gates]
    return limit_infos(
        [*limits.values(), *of_queues.values()], replace(found, gates=found.gates + more), store.counts()
    )


def limit_infos(limits: Iterable[Limit], found: Limits, counts: Counts) -> list[LimitInfo]:
    """Those of queues first; then every limit of a type, or every key of it that is in use, and what is cooling."""
    queued, in_queue = Counter[str](), Counter[str]()
    for tally in counts.tallies:
        if tally.status == "queued":
            queued[tally.type] += tally.count
            in_queue[tally.queue] += tally.count
    by_type, by_queue = split_limits(limits)
    idle = (by_type.keys() | found.cooling.keys()) - {gate.type for gate in found.gates if not gate.key}
    gates = [*found.gates, *(GateState(type=type) for type in idle)]
    infos = [
        _info(by_type.get(gate.type), gate, found, None if gate.key else queued[gate.type]) for gate in gates
    ]
    of_queues = [
        _info(by_queue[gate.key], gate, found, in_queue[gate.key])
        for gate in found.queues
        if gate.key in by_queue
    ]
    return [*of_queues, *sorted(infos, key=lambda info: (info.type or "", info.key or ""))]


def _info(limit: Limit | None, state: GateState, found: Limits, waiting: int | None) -> LimitInfo:
    limit = limit or Limit(type=state.type)
    # Why a gate: what it says is what a claim goes by, and what `explain` tells.
    gate = Gate(limit, found.now, state.next_at, state.running)
    starts_at = gate.starts_at(found.now)
    has_tokens = bool(limit.interval) and (bool(state.key) or not limit.is_keyed)
    cools_until = found.cooling.get(state.type)
    return LimitInfo(
        type=state.type or None,
        queue=limit.queue or None,
        key=None if limit.queue else state.key or None,
        is_keyed=limit.is_keyed,
        rate=rate_text(limit.interval),
        burst=limit.burst,
        tokens=round(gate.tokens(found.now), 3) if has_tokens else None,
        next_at=instant(starts_at)
        if has_tokens and starts_at is not None and starts_at > found.now
        else None,
        concurrency=limit.concurrency or None,
        running=state.running,
        holders=state.holders,
        waiting=waiting,
        cools_until=None if cools_until is None else instant(cools_until),
    )


def rate_text(interval: float) -> str | None:
    """A rate as one would write it: "5/s", "100/min"; None if there is none."""
    if not interval:
        return None
    numbers = [(seconds / interval, unit) for seconds, unit in _UNITS if seconds / interval >= 0.999]
    whole = [(number, unit) for number, unit in numbers if abs(number - round(number)) < 1e-6]
    for number, unit in whole or numbers:
        return f"{number:g}/{unit}"
    return f"1 in {interval:g} s"
