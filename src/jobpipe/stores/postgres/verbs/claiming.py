"""Claims: one statement where no limit is in the way; else a choice, in a transaction that has the gates for itself."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, Self

from psycopg import errors as pg

from ....errors import StoreAwayError, StoreError
from ....failpoints import reach
from ....model.gate import Limit
from ....model.lease import ClaimResult, QueueChoice
from ..rows import claims_of
from ..session import Session
from ..verb import Conversation, Verb, transact
from .choosing import Choice, put_behind

_MOST_LOOKED = 100_000
_PATIENCE = 2_000
"""Milliseconds that gates are waited for by one who has claimed already."""
_GATE_PATIENCE = 500
"""By one who claims: who claims, too, is through with them sooner, but a handler may end its job in its own transaction."""
_AGAIN = 1.0
"""Seconds after which types that were left out are looked at again; when the handler commits, workers are told."""


class Order(NamedTuple):
    """What a worker wants to claim."""

    worker: str
    types: list[str]
    limit: int
    lease: float
    begin: int | None
    """The number of those that begin; None for all."""
    queues: QueueChoice | None = None

    def parts(self) -> list[Self]:
        """One for each queue that has slots of its own; else the order itself."""
        if self.queues is None or not self.queues.rooms:
            return [self]
        return [
            self._replace(limit=room.most, begin=room.begin, queues=QueueChoice(only=frozenset({queue})))
            for queue, room in self.queues.rooms.items()
        ]

    def values(self) -> dict[str, Any]:
        """For the statements."""
        chosen = self.queues and (self.queues.excluded if self.queues.only is None else self.queues.only)
        return {**self._asdict(), "queues": list(chosen or ())}


class _Found(NamedTuple):
    """What claim.sql brought."""

    rows: list[Any]
    is_short: bool
    """Were others taking what it looked at, and there is more behind?"""
    looked: int
    behind: int
    """Jobs that wait for another of their unique name."""
    due_in: float | None
    opens_in: float | None


_FIRST_BEGIN = "%(begin)s::integer IS NULL OR row_number() OVER (ORDER BY place) <= %(begin)s::integer"
_SERVED = {
    None: "",
    True: "AND lanes.queue = ANY(%(queues)s::text[])",
    False: "AND lanes.queue <> ALL(%(queues)s::text[])",
}
"""By whether the queues of an order are the only ones."""


def claim(
    session: Session,
    worker: str,
    types: Sequence[str],
    limit: int,
    lease: float,
    limits: Sequence[Limit] = (),
    begin: int | None = None,
    queues: QueueChoice | None = None,
) -> Verb[ClaimResult]:
    order = Order(worker, sorted(set(types)), limit, lease, begin, queues)
    bound = [each for each in limits if each.queue or each.type in order.types]
    result = None if bound else (yield from _claim_free(session, order))
    if result is None:
        result = yield from _claim_through_gates(session, order, bound)
    if result.claims:
        yield from session.changed()
    return result


def _claim_free(session: Session, order: Order) -> Verb[ClaimResult | None]:
    """What can be had without a look at any gate; None if one opens for what is parked before it."""
    token = secrets.token_hex(8)
    found = yield from _claim_parts(session, order, token)
    rows = [row for part in found for row in part.rows]
    opens_in = _soonest(*(part.opens_in for part in found))
    if opens_in == 0.0:
        if not rows:
            return None
        # Why: before a lane that never runs empty, they would be parked for ever. The next claim finds them in it.
        with suppress(StoreError):  # Why: the claim is made, and the next one tries again
            yield from transact(partial(_let_out, session, order))
    is_short = any(part.is_short for part in found)
    ask_in = 0.0 if is_short else _soonest(opens_in, *(part.due_in for part in found))
    has_more = ask_in == 0.0 or any(part.looked > len(part.rows) + part.behind for part in found)
    return ClaimResult(claims_of(rows, order.worker, token), ask_in, has_more)


def _claim_parts(session: Session, order: Order, token: str) -> Verb[list[_Found]]:
    """Claim for each queue with slots of its own, all in one round trip."""
    found: list[_Found] = []
    parts = [(part, max(2 * part.limit, 1)) for part in order.parts()]
    while parts:
        steps = [
            session.step(
                "claim",
                {"only_served": _SERVED[_is_only(part.queues)]},
                **part.values(),
                token=token,
                look=look,
            )._replace(mark="claim-inside")
            for part, look in parts
        ]
        again = []
        results = yield from session.read(*steps)
        for (part, look), result in zip(parts, results, strict=True):
            *_, looked, locked, behind, due_in, opens_in = result.rows[0]
            if behind:
                with suppress(StoreError):  # Why: the next claim comes upon them again
                    yield from transact(partial(put_behind, session.step, behind))
            # Why again: others had locked what this one looked at, and there may be more behind.
            if not locked and looked >= look and part.limit and look < _MOST_LOOKED:
                again.append((part, min(4 * look, _MOST_LOOKED)))
                continue
            rows = result.rows if result.rows[0][0] is not None else []
            is_short = looked >= look and locked < part.limit
            found.append(_Found(rows, is_short, looked, len(behind), due_in, opens_in))
        parts = again
    return found


def _let_out(session: Session, order: Order) -> Conversation[None]:
    """Put what is parked before gates that open back into its lanes."""
    yield session.step("patience", milliseconds=_PATIENCE)
    locked, now = yield from _lock_types(session, order, ())
    yield from Choice(partial(session.step, now=now), (), order.limit, now).open_gates(locked)


def _claim_through_gates(session: Session, order: Order, limits: Sequence[Limit]) -> Verb[ClaimResult]:
    """What the gates let in; without the types whose gates are held up for long."""
    try:
        return (yield from session.converse(partial(_claim_patiently, session, order, limits)))
    except StoreAwayError as error:
        if not isinstance(error.__cause__, pg.LockNotAvailable):
            raise
    return (yield from transact(partial(_claim_the_rest, session, order, limits)))


def _claim_patiently(session: Session, order: Order, limits: Sequence[Limit]) -> Conversation[ClaimResult]:
    yield session.step("patience", milliseconds=_GATE_PATIENCE)
    locked, now = yield from _lock_types(session, order, limits)
    return (yield from _claim_limited(session, order, limits, locked, now))


def _claim_the_rest(session: Session, order: Order, limits: Sequence[Limit]) -> Conversation[ClaimResult]:
    """Without those whose gates somebody has now."""
    yield session.step("patience", milliseconds=_GATE_PATIENCE)
    locked, now = yield from _lock_types(session, order, limits, waits=False)
    held_up = [limit for limit in limits if _gates_of(limit) not in locked]
    if any(limit.queue for limit in held_up):
        return ClaimResult([], _AGAIN, True)
    left_out = {limit.type for limit in held_up}
    order = order._replace(types=[type for type in order.types if type not in left_out])
    free = [limit for limit in limits if limit not in held_up]
    result = yield from _claim_limited(session, order, free, locked, now)
    return ClaimResult(result.claims, _soonest(result.due_in, _AGAIN), result.has_more)


def _claim_limited(
    session: Session, order: Order, limits: Sequence[Limit], locked: Sequence[str], now: float
) -> Conversation[ClaimResult]:
    step = partial(session.step, now=now)
    choice = Choice(step, limits, order.limit, now, order.begin, order.queues)
    yield from choice.take(order.types, locked)
    token = secrets.token_hex(8)
    rows = []
    if choice.taken:
        which = "(%(begins)s::boolean[])[place::integer]" if choice.begins else _FIRST_BEGIN
        chosen = {
            "seqs": list(choice.taken),
            "gates": [gate for gate, _ in choice.taken.values()],
            "starts_in": [starts_in for _, starts_in in choice.taken.values()],
            "begins": choice.begins,
        }
        values = {**order.values(), **chosen, "token": token, "told": session.now()}
        rows = (yield step("claim_chosen", {"which_begin": which}, **values)).rows
    claims = claims_of(rows, order.worker, token)
    late = max((each.started_at - each.starts_in - now for each in claims), default=0.0)
    yield from choice.keep_pace(late)
    due_in = (yield step("due", types=order.types)).rows[0][0]
    reach("claim-inside")
    ask_in = _soonest(due_in, choice.selection.due_in)
    is_cut = choice.selection.is_cut or len(choice.taken) == order.limit or len(claims) < len(choice.taken)
    return ClaimResult(claims, ask_in, is_cut or ask_in == 0.0)


def _lock_types(
    session: Session, order: Order, limits: Sequence[Limit], *, waits: bool = True
) -> Conversation[tuple[list[str], float]]:
    """Have the gates for oneself, of no more types than there are to look at: those types, and what time it is then."""
    parts = {} if waits else {"pg_advisory_xact_lock": "pg_try_advisory_xact_lock"}
    limited = [_gates_of(limit) for limit in limits]
    found = yield session.step("lock_types", parts, types=order.types, limited=limited)
    now: float = (yield session.step("time")).rows[0][0]
    return [type for type, is_locked in found.rows if is_locked is not False], now


def _gates_of(limit: Limit) -> str:
    """The name by which they are locked. Why such a one for a queue: no type has it."""
    return f"/{limit.queue}" if limit.queue else limit.type


def _is_only(queues: QueueChoice | None) -> bool | None:
    return None if queues is None else queues.only is not None


def _soonest(*seconds: float | None) -> float | None:
    return min((max(each, 0.0) for each in seconds if each is not None), default=None)
