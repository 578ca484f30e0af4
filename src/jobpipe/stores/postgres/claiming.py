"""Claims: one statement where no limit is in the way; else a choice, in a transaction that has the gates for itself."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from ...errors import StoreError
from ...failpoints import reach
from ...model.gate import Limit
from ...model.lease import ClaimResult
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


class Claimer:
    """Claims for one handle on the store."""

    def __init__(self, connections: Connections, statements: Statements) -> None:
        self._connections = connections
        self._sql = statements

    def claim(self, order: Order, now: float | None) -> ClaimResult | None:
        """What can be had without a look at any gate; None if one opens for what is parked before it."""
        token = secrets.token_hex(8)
        look = max(2 * order.limit, 1)
        while True:
            values = {
                **order._asdict(),
                "token": token,
                "look": look,
                "now": now,
            }
            come_due = Step(self._sql("come_due"), {"now": now})
            _, found = self._connections.run(come_due, Step(self._sql("claim"), values, "claim-inside"))
            *_, looked, locked, behind, due_in, opens_in = found.rows[0]
            rows = found.rows if found.rows[0][0] is not None else []
            if behind:
                self._put_behind(behind)
            # Why again: others had locked what this one looked at, and there may be more behind.
            if locked or looked < look or not order.limit or look >= _MOST_LOOKED:
                break
            look = min(4 * look, _MOST_LOOKED)
        if opens_in is not None and opens_in <= 0:
            if not rows:
                return None
            # Why: before a lane that never runs empty, they would be parked for ever. The next claim finds them in it.
            with suppress(StoreError):  # Why: the claim is made, and the next one tries again
                self._connections.attempt(lambda connection: self._let_out(connection, order, now))
        # Why: others were taking what this one looked at, and there is more behind.
        is_short = looked >= look and locked < order.limit
        ask_in = 0.0 if is_short else _soonest(due_in, opens_in)
        has_more = looked > len(rows) + len(behind) or ask_in == 0.0
        return ClaimResult(claims_of(rows, order.worker, token), ask_in, has_more)

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
            choice = Choice(ask, limits, order.limit, now, order.begin)
            choice.take(order.types, locked)
            token = secrets.token_hex(8)
            chosen = {
                "seqs": list(choice.taken),
                "gates": [gate for gate, _ in choice.taken.values()],
                "starts_in": [starts_in for _, starts_in in choice.taken.values()],
            }
            rows = (
                ask("claim_chosen", **order._asdict(), **chosen, token=token, told=told).rows
                if choice.taken
                else []
            )
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

    @property
    def now(self) -> float:
        now: float = self._values["now"]
        return now

    def lock_types(self, order: Order, limits: Sequence[Limit]) -> list[str]:
        """Have the gates for oneself, of no more types than there are to look at; from then on time stands still."""
        found = self("lock_types", types=order.types, limited=[limit.type for limit in limits])
        self._values["now"] = self("time").rows[0][0]
        return [type for type, _ in found.rows]


def _soonest(*seconds: float | None) -> float | None:
    return min((max(each, 0.0) for each in seconds if each is not None), default=None)
