"""Parent: the context that a queue was given as `parent=`, if any; it does not keep the queue alive."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakMethod

from ..errors import Cancelled

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..context import Context


class Parent:
    """Calls a method of the queue when the context is cancelled."""

    __slots__ = ("_context", "_on_cancel")

    def __init__(self, context: Context | None, on_cancel: Callable[[], None]) -> None:
        self._context = context
        self._on_cancel = WeakMethod(on_cancel)
        if context is not None:
            context._subscribe(self._cancelled)

    def check(self) -> None:
        """Raise Cancelled if the context is done, so that the queue cannot start."""
        if self._context is not None and self._context.done:
            raise Cancelled("the parent context was cancelled: the queue cannot start")

    def leave(self) -> None:
        """Be told no more."""
        if self._context is not None:
            self._context._unsubscribe(self._cancelled)

    def _cancelled(self) -> None:
        on_cancel = self._on_cancel()
        if on_cancel is not None:
            on_cancel()
