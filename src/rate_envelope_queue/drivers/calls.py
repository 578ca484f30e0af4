"""Calls: which functions a run of one queue calls, in order: the steps of the core, with the queue's stamps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from ..core.run import Call, HookBudget, Run, steps
from ..envelope import PLAIN
from ..stamps import compose

if TYPE_CHECKING:
    from ..context import Context
    from ..envelope import Envelope, Invoker, Stamp


class Calls:
    """Made once for a queue."""

    __slots__ = ("_budget", "_now", "_stamps")

    def __init__(self, stamps: tuple[Stamp, ...], budget: HookBudget, now: Callable[[], float]) -> None:
        self._stamps = stamps
        self._budget = budget
        self._now = now

    def of(self, run: Run, invoke: Invoker) -> Iterator[Call]:
        """The calls of a whole run, with the stamps around the innermost."""
        handling = run.envelope._handling or PLAIN
        stamps = self._stamps + handling.stamps
        if stamps:
            invoke = partial(_call_stamped, stamps, invoke)
        return steps(run, handling, invoke, None, self._budget, self._now)

    def after(self, run: Run, error: BaseException | None) -> Iterator[Call]:
        """The calls that are left after a bare call of `invoke`, which raised the error or none."""
        return steps(run, run.envelope._handling or PLAIN, None, error, self._budget, self._now)


def _call_stamped(stamps: tuple[Stamp, ...], invoke: Invoker, ctx: Context, envelope: Envelope[Any]) -> Any:
    """The call with its stamps, applied within the run, so that what they raise is the run's error."""
    return compose(stamps, invoke)(ctx, envelope)
