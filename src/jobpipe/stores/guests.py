"""Guests: what stores need to know that write in the transaction of a caller, through the caller's own connection.

A handler is known here by the connections that it has lent: where all who write share one lock, a store must not wait for a
transaction that only the waiting handler can end.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar

from ..errors import BadInputError

T = TypeVar("T")

_DEEPEST = 4
"""A connection, and the wrappers around it."""
_WRAPPED = ("driver_connection", "sync_connection", "connection")
"""Where SQLAlchemy and Django keep what they have wrapped."""


class Handler(Protocol):
    """The job that a handler runs."""

    @property
    def connections(self) -> Sequence[Any]:
        """Those on which it has recorded something in a transaction of its own, which may be open."""


current_handler: ContextVar[Any] = ContextVar("jobpipe.current_job")


def lent_connections() -> Sequence[Any]:
    """Those of the calling handler; none outside of one."""
    handler: Handler | None = current_handler.get(None)
    return () if handler is None else handler.connections


def no_transaction() -> BadInputError:
    """What is told who would record a step beside what it wrote, and not with it."""
    return BadInputError(
        "connection", "must be in a transaction, got one that commits each statement: begin one"
    )


def unwrapped(connection: Any, kind: type[T]) -> T | None:
    """The driver's connection of that kind in what SQLAlchemy or Django has wrapped around it; None if it was closed."""
    for _ in range(_DEEPEST):
        if isinstance(connection, kind):
            return connection
        connection = next((each for name in _WRAPPED if (each := _inner(connection, name)) is not None), None)
    return None


def _inner(connection: Any, name: str) -> Any:
    try:
        return getattr(connection, name, None)
    except Exception:  # each wrapper has an error of its own to say that it was closed
        return None
