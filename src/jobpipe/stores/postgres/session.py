"""Session: how the verbs of a handle read and write, each in one transaction: what came due is queued first, listeners
are told after.

It also folds the journal of changes into events and tallies, once there are enough of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from .lent import Lent
from .statements import Statements
from .verb import Conversation, Result, Step, Verb, run, transact

T = TypeVar("T")

_KEPT_EVENTS = 10_000
_FOLD_AFTER = 50
"""Changes by this handle after which the journal is folded."""
_PATIENCE = 5_000
"""Milliseconds for which a verb waits for jobs that others have locked: a handler may take its time with its own transaction."""
_NOTHING: Mapping[str, str] = {}


class Session:
    """The reads and writes of one handle on the store."""

    def __init__(self, statements: Statements, clock: Callable[[], float] | None) -> None:
        self.statements = statements
        self._clock = clock
        """For tests alone: otherwise the server says what time it is."""
        self._tell_changes, self._tell_work = Step(statements("tell_changes")), Step(statements("tell_work"))
        self._changes = 0
        self.lent = Lent()

    def step(self, statement: str, parts: Mapping[str, str] = _NOTHING, /, **values: Any) -> Step:
        """A statement of `sql/`, with parts of its text filled in, and its values."""
        return Step(self.statements(statement, **parts), {"now": self.now(), **values})

    def now(self) -> float | None:
        """What time statements go by; None for the server's."""
        return None if self._clock is None else self._clock()

    def read(self, *steps: Step) -> Verb[list[Result]]:
        """Read, after what came due is queued."""
        results = yield from run(self.step("come_due"), *steps)
        return results[1:]

    def patience(self) -> Step:
        """Let what follows in the transaction wait for locked jobs no longer than that."""
        return self.step("patience", milliseconds=_PATIENCE)

    def write(self, *steps: Step, is_work: bool = False, is_counting: bool = True) -> Verb[list[Result]]:
        """Write, and tell listeners when it is committed: also those that wait for work, if there may be some.

        One that looks at no other job need not wait until what came due is queued.
        """
        tell = self._tell_work if is_work else self._tell_changes
        due = [self.step("come_due")] if is_counting else []
        results = yield from run(*due, *steps, after=tell)
        yield from self.changed()
        return results[len(due) :]

    def converse(self, begin: Callable[[], Conversation[T]]) -> Verb[T]:
        """Hold a conversation, after what came due is queued."""
        yield from self.read()
        return (yield from transact(begin))

    def tell_work(self) -> Verb[None]:
        """Tell listeners that what was committed just now may be work."""
        yield from run(self._tell_work)
        yield from self.changed()

    def changed(self) -> Verb[None]:
        """Count a change; fold the journal when it is time."""
        self._changes += 1
        if self._changes >= _FOLD_AFTER:
            yield from self.fold()

    def fold(self, *after: Step) -> Verb[list[Result]]:
        """Make events and tallies of the journal, and keep no more events than are wanted."""
        self._changes = 0
        trim = self.step("trim_events", kept=_KEPT_EVENTS)
        results = yield from run(self.step("lock_journal"), self.step("fold"), trim, *after)
        return results[3:]
