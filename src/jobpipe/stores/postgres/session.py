"""Session: how a handle reads and writes, each in one transaction: what came due is queued first, listeners are told after.

It also folds the journal of changes into events and tallies, once there are enough of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...model.newjob import Answer
from .connection import Connection, Connections, Result, Step
from .guest import lead
from .inserting import Conversation
from .statements import Statements

_KEPT_EVENTS = 10_000
_FOLD_AFTER = 50
"""Changes by this handle after which the journal is folded."""


class Session:
    """The reads and writes of one handle on the store."""

    def __init__(
        self, connections: Connections, statements: Statements, clock: Callable[[], float] | None
    ) -> None:
        self.statements = statements
        self._connections = connections
        self._clock = clock
        """For tests alone: otherwise the server says what time it is."""
        self._tell_changes, self._tell_work = Step(statements("tell_changes")), Step(statements("tell_work"))
        self._changes = 0

    def step(self, statement: str, /, **values: Any) -> Step:
        """A statement of `sql/` with its values."""
        return Step(self.statements(statement), {"now": self.now(), **values})

    def now(self) -> float | None:
        """What time statements go by; None for the server's."""
        return None if self._clock is None else self._clock()

    def read(self, *steps: Step) -> list[Result]:
        """Read, after what came due is queued."""
        return self._connections.run(self.step("come_due"), *steps)[1:]

    def write(self, *steps: Step, is_work: bool = False, is_counting: bool = True) -> list[Result]:
        """Write, and tell listeners when it is committed: also those that wait for work, if there may be some.

        One that looks at no other job need not wait until what came due is queued.
        """
        tell = self._tell_work if is_work else self._tell_changes
        due = [self.step("come_due")] if is_counting else []
        results = self._connections.run(*due, *steps, after=tell)[len(due) :]
        self.changed()
        return results

    def converse(self, begin: Callable[[], Conversation]) -> list[Answer]:
        """Lead a conversation in a transaction of its own."""

        def work(connection: Connection) -> list[Answer]:
            with connection.transaction():
                return lead(connection, begin())

        self.read()
        return self._connections.attempt(work)

    def tell_work(self) -> None:
        """Tell listeners that what was committed just now may be work."""
        self._connections.run(self._tell_work)
        self.changed()

    def changed(self) -> None:
        """Count a change; fold the journal when it is time."""
        self._changes += 1
        if self._changes >= _FOLD_AFTER:
            self.fold()

    def fold(self, *after: Step) -> list[Result]:
        """Make events and tallies of the journal, and keep no more events than are wanted."""
        self._changes = 0
        trim = self.step("trim_events", kept=_KEPT_EVENTS)
        return self._connections.run(self.step("lock_journal"), self.step("fold"), trim, *after)[3:]
