"""Claims: one statement where no limit is in the way; else a choice, in a transaction that has the gates for itself."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any, NamedTuple

from ..base import Haul
from ..limits import Limit
from .choosing import Choice
from .connection import Connection, Connections, Result, Step, results_of
from .rows import claims_of
from .statements import Statements

_MOST_LOOKED = 100_000


class Order(NamedTuple):
    """What somebody wants to claim."""

    worker: str
    types: list[str]
    limit: int
    lease: float


class Claimer:
    """Claims for one handle on the store."""

    def __init__(self, connections: Connections, statements: Statements) -> None:
        self._connections = connections
        self._sql = statements

    def claim(self, order: Order, now: float | None) -> Haul | None:
        """What can be had without a look at any gate; None if one opens for what is parked before it."""
        token = secrets.token_hex(8)
        look = 2 * order.limit
        while True:
            values = {
                **order._asdict(),
                "token": token,
                "look": look,
                "channel": self._sql.schema,
                "now": now,
            }
            come_due = Step(self._sql("come_due"), {"now": now})
            _, found = self._connections.run(come_due, Step(self._sql("claim"), values))
            *_, looked, due_in, opens_in = found.rows[0]
            rows = found.rows if found.rows[0][0] is not None else []
            # Why again: others had locked what this one looked at, and there may be more behind.
            if rows or looked < look or not look or look >= _MOST_LOOKED:
                break
            look = min(4 * look, _MOST_LOOKED)
        if not rows and opens_in is not None and opens_in <= 0:
            return None
        return Haul(claims_of(rows, order.worker, token), _soonest(due_in, opens_in))

    def claim_limited(self, order: Order, limits: Sequence[Limit], told: float | None) -> Haul:
        """What the gates let in."""
        return self._connections.attempt(lambda connection: self._choose(connection, order, limits, told))

    def _choose(
        self, connection: Connection, order: Order, limits: Sequence[Limit], told: float | None
    ) -> Haul:
        values: dict[str, Any] = {"now": told, "channel": self._sql.schema}

        def ask(name: str, **more: Any) -> Result:
            return results_of(connection, [Step(self._sql(name), {**values, **more})])[0]

        ask("come_due")
        with connection.transaction():
            ask("lock_types", types=order.types)
            # Why now: from here on time stands still.
            values["now"] = now = ask("time").rows[0][0]
            choice = Choice(ask, limits, order.limit, now)
            choice.take(order.types)
            token = secrets.token_hex(8)
            held = [choice.held.get(seq, (None, 0.0)) for seq in choice.seqs]
            chosen = {
                "seqs": choice.seqs,
                "gates": [gate for gate, _ in held],
                "starts_in": [starts_in for _, starts_in in held],
            }
            rows = (
                ask("claim_chosen", **order._asdict(), **chosen, token=token, told=told).rows
                if choice.seqs
                else []
            )
            claims = claims_of(rows, order.worker, token)
            choice.keep_pace(max((each.started_at - each.starts_in - now for each in claims), default=0.0))
            due_in = ask("due", types=order.types).rows[0][0]
        return Haul(claims, _soonest(due_in, choice.due_in))


def _soonest(*seconds: float | None) -> float | None:
    return min((max(each, 0.0) for each in seconds if each is not None), default=None)
