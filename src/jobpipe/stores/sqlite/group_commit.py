"""GroupCommit: concurrent inserts share a transaction, and with it one wait for the disk.

The thread that gets the lock inserts what all others have put down meanwhile, and hands them their answers.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path

from ...errors import StoreAwayError
from ...model.admission import Bounds
from ...model.newjob import Answer
from .inserting import Batch

Insert = Callable[[Sequence[tuple[Batch, Bounds]]], list[Answer]]
"""Inserts batches in one transaction; the answers in their order."""


class _Ticket:
    """Batches that wait for a thread with the lock to insert them."""

    __slots__ = ("answers", "batches", "error")

    def __init__(self, batches: list[tuple[Batch, Bounds]]) -> None:
        self.batches = batches
        self.answers: list[Answer] | None = None
        self.error: BaseException | None = None


class GroupCommit:
    """The inserts that wait for the store at `path`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._tickets: deque[_Ticket] = deque()
        self._inserting = threading.Lock()

    def insert(self, batches: Sequence[Batch], bounds: Bounds, insert: Insert) -> list[Answer]:
        """Insert batches, together with those of others; returns when they are on disk."""
        ticket = _Ticket([(batch, bounds) for batch in batches])
        self._tickets.append(ticket)
        with self._inserting:
            if ticket.answers is None and ticket.error is None:
                self._insert_waiting(insert)
        if ticket.error is not None:
            raise ticket.error
        assert ticket.answers is not None
        return ticket.answers

    def _insert_waiting(self, insert: Insert) -> None:
        """Insert what all have put down."""
        tickets = []
        while self._tickets:
            tickets.append(self._tickets.popleft())
        try:
            answers = iter(insert([batch for ticket in tickets for batch in ticket.batches]))
        except BaseException as error:
            for ticket in tickets:
                ticket.error = (
                    error
                    if isinstance(error, Exception)
                    else StoreAwayError(
                        f"the store {self._path} was interrupted: it may have been done, or not; ask again"
                    )
                )
            if not isinstance(error, Exception):
                raise  # it is meant for this thread alone
            return
        for ticket in tickets:
            ticket.answers = list(islice(answers, len(ticket.batches)))
