"""Claims: one statement where no limit is in the way; else a choice, in a transaction that has the gates for itself."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Self

from ...errors import StoreError
from ...failpoints import reach
from ...model.gate import Limit
from ...model.lease import ClaimResult, QueueChoice
from .choosing import Choice, put_behind
from .connection import Connection, Connections, Result, Step, results_of
from .rows import claims_of
from .statements import Statements

_MOST_LOOKED = 100_000
_PATIENCE = 2_000
"""Milliseconds that gates are waited for by one who has claimed already."""


class Order(NamedTuple):
    """What somebody wants to claim."""

    worker: str
    types: list[str]
    limit: int
    lease: float
    begin: int | None
    """So many of them begin; None for all."""
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


class Claimer:
    """Claims for one handle on the store."""

    def __init__(self, connections: Connections, statements: Statements) -> None:
        self._connections = connections
        self._sql = statements

    def claim(self, order: Order, now: float | None) -> ClaimResult | None:
        """What can be had without a look at any gate; None if one opens for what is parked before it."""
        token = secrets.token_hex(8)
        found = self._claim_parts(order, token, now)
        rows = [row for part in found for row in part.rows]
        opens_in = _soonest(*(part.opens_in for part in found))
        if opens_in == 0.0:
            if not rows:
                return None
            # Why: before a lane that never runs empty, they would be parked for ever. The next claim finds them in it.
            with suppress(StoreError):  # Why: the claim is made, and the next one tries again
                self._connections.attempt(lambda connection: self._let_out(connection, order, now))
        is_short = any(part.is_short for part in found)
        ask_in = 0.0 if is_short else _soonest(opens_in, *(part.due_in for part in found))
        has_more = ask_in == 0.0 or any(part.looked > len(part.rows) + part.behind for part in found)
        return ClaimResult(claims_of(rows, order.worker, token), ask_in, has_more)

    def _claim_parts(self, order: Order, token: str, now: float | None) -> list[_Found]:
        """Claim for each queue with slots of its own, all in one round trip."""
        come_due = Step(self._sql("come_due"), {"now": now})
        found: list[_Found] = []
        parts = [(part, max(2 * part.limit, 1)) for part in order.parts()]
        while parts:
            steps = [
                Step(
                    self._sql.filled("claim", only_served=_SERVED[_is_only(part.queues)]),
                    {**part.values(), "token": token, "look": look, "now": now},
                    "claim-inside",
                )
                for part, look in parts
            ]
            again = []
            _, *results = self._connections.run(come_due, *steps)
            for (part, look), result in zip(parts, results, strict=True):
                *_, looked, locked, behind, due_in, opens_in = result.rows[0]
                if behind:
                    self._put_behind(behind)
                # Why again: others had locked what this one looked at, and there may be more behind.
                if not locked and looked >= look and part.limit and look < _MOST_LOOKED:
                    again.append((part, min(4 * look, _MOST_LOOKED)))
                    continue
                rows = result.rows if result.rows[0][0] is not None else []
                is_short = looked >= look and locked < part.limit
                found.append(_Found(rows, is_short, looked, len(behind), due_in, opens_in))
            parts = again
        return found

    def claim_limited(self, order: Order, limits: Sequence[Limit], told: float | None) -> ClaimResult:
        """What the gates let in."""
        return self._connections.attempt(lambda connection: self._choose(connection, order, limits, told))

    def _put_behind(self, names: list[str]) -> None:
        """Park those that wait for another of their name. Why not fatal: the next claim comes upon them again."""

        def work(connection: Connection) -> None:
            with connection.transaction():
                put_behind(_Asking(connection, self._sql, None), names)

        with suppress(StoreError):
            self._connections.attempt(work)

    def _let_out(self, connection: Connection, order: Order, told: float | None) -> None:
        """Put what is parked before gates that open back into its lanes."""
        ask = _Asking(connection, self._sql, told)
        with connection.transaction():
            ask("patience", milliseconds=_PATIENCE)
            locked = ask.lock_types(order, ())
            Choice(ask, (), order.limit, ask.now).open_gates(locked)

    def _choose(
        self, connection: Connection, order: Order, limits: Sequence[Limit], told: float | None
    ) -> ClaimResult:
        ask = _Asking(connection, self._sql, told)
        ask("come_due")
        with connection.transaction():
            locked = ask.lock_types(order, limits)
            now = ask.now
            choice = Choice(ask, limits, order.limit, now, order.begin, order.queues)
            choice.take(order.types, locked)
            token = secrets.token_hex(8)
            chosen = {
                "seqs": list(choice.taken),
                "gates": [gate for gate, _ in choice.taken.values()],
                "starts_in": [starts_in for _, starts_in in choice.taken.values()],
                "begins": choice.begins,
            }
            rows = ask.claim_chosen(order, **chosen, token=token, told=told).rows if choice.taken else []
            claims = claims_of(rows, order.worker, token)
            choice.keep_pace(max((each.started_at - each.starts_in - now for each in claims), default=0.0))
            due_in = ask("due", types=order.types).rows[0][0]
            reach("claim-inside")
        ask_in = _soonest(due_in, choice.selection.due_in)
        is_cut = (
            choice.selection.is_cut or len(choice.taken) == order.limit or len(claims) < len(choice.taken)
        )
        return ClaimResult(claims, ask_in, is_cut or ask_in == 0.0)


class _Asking:
    """Runs statements on one connection, by one time."""

    def __init__(self, connection: Connection, statements: Statements, told: float | None) -> None:
        self._connection = connection
        self._sql = statements
        self._values: dict[str, Any] = {"now": told}

    def __call__(self, name: str, **more: Any) -> Result:
        step = Step(self._sql(name), {**self._values, **more})
        return results_of(self._connection, [step])[0]

    def claim_chosen(self, order: Order, **more: Any) -> Result:
        which = "(%(begins)s::boolean[])[place::integer]" if more["begins"] else _FIRST_BEGIN
        query = self._sql.filled("claim_chosen", which_begin=which)
        step = Step(query, {**self._values, **order.values(), **more})
        return results_of(self._connection, [step])[0]

    @property
    def now(self) -> float:
        now: float = self._values["now"]
        return now

    def lock_types(self, order: Order, limits: Sequence[Limit]) -> list[str]:
        """Have the gates for oneself, of no more types than there are to look at; from then on time stands still."""
        # Why such a name for a queue: no type has it.
        limited = [f"/{limit.queue}" if limit.queue else limit.type for limit in limits]
        found = self("lock_types", types=order.types, limited=limited)
        self._values["now"] = self("time").rows[0][0]
        return [type for type, _ in found.rows]


def _is_only(queues: QueueChoice | None) -> bool | None:
    return None if queues is None else queues.only is not None


def _soonest(*seconds: float | None) -> float | None:
    return min((max(each, 0.0) for each in seconds if each is not None), default=None)
