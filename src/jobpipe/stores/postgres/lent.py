"""Lent: the connections of handlers through which something was recorded, and what their open transactions hold up.

A step locks the row of its job shared, an outcome locks it for itself. Others wait for the end of the transaction, but not
for long; the handler itself is refused at once, since only it can end what it would wait for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakSet

import psycopg
from psycopg.pq import TransactionStatus

from ...errors import StoreError
from ..guests import calling_handler, lent_connections, unwrapped

_OPEN = (TransactionStatus.ACTIVE, TransactionStatus.INTRANS, TransactionStatus.INERROR)


class Lent:
    """Those of one handle on the store."""

    def __init__(self) -> None:
        self._settled: WeakSet[Any] = WeakSet()
        """Connections through which an outcome was written, in a transaction that may be open."""

    def begin(self, connection: Any) -> None:
        """Something is about to be written through a connection of psycopg."""
        if not _is_open(connection):
            self._settled.discard(connection)

    def settled(self, connection: Any) -> None:
        """An outcome was."""
        self._settled.add(bare_of(connection))

    def refuse_own(self, ids: Sequence[str]) -> None:
        """StoreError if one of the jobs is that of the calling handler, which has it locked."""
        handler = calling_handler()
        if handler is not None and handler.id in ids and any(map(_is_open, handler.connections)):
            raise _held_up("its own job cannot be changed")

    def refuse_settled(self) -> None:
        """StoreError if the calling handler has written its outcome, and that is not committed yet."""
        if any(bare_of(each) in self._settled and _is_open(each) for each in lent_connections()):
            raise _held_up("nothing more can be recorded")


def bare_of(connection: Any) -> Any:
    """The connection of psycopg in what was wrapped around it; None if there is none."""
    return unwrapped(connection, psycopg.Connection) or unwrapped(connection, psycopg.AsyncConnection)


def _is_open(connection: Any) -> bool:
    """Is it within a transaction? May be asked in any thread."""
    bare = bare_of(connection)
    return bare is not None and bare.info.transaction_status in _OPEN


def _held_up(what: str) -> StoreError:
    return StoreError(
        f"{what} while the handler has its own transaction open, in which it has recorded a step or called `finish`: "
        "commit first"
    )
