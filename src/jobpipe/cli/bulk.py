"""Bulk: many jobs put in, chunk by chunk, and an exact account of how far it got."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..errors import (
    BadInputError,
    ForbiddenError,
    JobConflictError,
    JobpipeError,
    QueueFullError,
    SettingsError,
    StoreRefusedError,
    UnauthorizedError,
    UnreachableError,
)
from .interrupts import held
from .lines import BadLineError, Line
from .target import Target

if TYPE_CHECKING:
    from collections.abc import Sequence

_PLACE = re.compile(r"jobs\[(\d+)\]\.?")
_NOTHING_DONE = (
    BadInputError,
    ForbiddenError,
    JobConflictError,
    QueueFullError,
    SettingsError,
    StoreRefusedError,
    UnauthorizedError,
)
"""Errors after which one knows that nothing of the call was done."""


class Bulk:
    """Lines of a file on their way into a target."""

    def __init__(self, target: Target, name: str, *, keeps_ids: bool = False) -> None:
        self._target = target
        self._name = name
        self._keeps_ids = keeps_ids
        self.ids: list[str] = []
        """Of the jobs that are in, if they are to be kept."""
        self.new = self.known = 0
        self.warnings: set[str] = set()
        self._last = 0
        """The number of the last line that is in: all before it are, too."""
        self._doubtful = 0
        """The last line of those of which nobody knows."""

    def put(self, lines: Sequence[Line]) -> None:
        """Put a chunk in: whole, or not at all; only where there is no room for it, as many as there is room for."""
        try:
            with held():
                self._insert(lines)
        except QueueFullError as error:
            if len(lines) == 1:
                raise self._placed(error, lines) from None
            middle = len(lines) // 2
            self.put(lines[:middle])
            self.put(lines[middle:])
        except (BadInputError, JobConflictError) as error:
            raise self._placed(error, lines) from None

    def _insert(self, lines: Sequence[Line]) -> None:
        self._doubtful = lines[-1].number
        try:
            receipts = self._target.enqueue_many([line.request for line in lines])
        except JobpipeError as error:
            is_lost = isinstance(error, UnreachableError) and not error.may_have_arrived
            if is_lost or isinstance(error, _NOTHING_DONE):
                self._doubtful = 0
            raise
        self._doubtful = 0
        self._last = lines[-1].number
        new = sum(receipt.is_new for receipt in receipts)
        self.new += new
        self.known += len(receipts) - new
        self.warnings |= {receipt.warning for receipt in receipts if receipt.warning is not None}
        if self._keeps_ids:
            self.ids += [receipt.id for receipt in receipts]

    def _placed(self, error: JobpipeError, lines: Sequence[Line]) -> JobpipeError:
        """The error with the line that it is about, if it is about one."""
        text = str(error)
        if isinstance(error, BadInputError) and (place := _PLACE.match(text)):
            return BadLineError(self._name, lines[int(place[1])].number, text[place.end() :])
        for line in lines:
            if f"the id {line.request.id!r} " in text:
                return JobpipeError(f"{self._name}:{line.number}: {text}")
        return error

    def how_far(self) -> str:
        """What one needs to know to go on."""
        done = "nothing was enqueued"
        if self._last:
            done = f"{_lines(1, self._last)} {'is' if self._last == 1 else 'are'} enqueued"
        if self._doubtful:
            return (
                f"{done}, {_lines(self._last + 1, self._doubtful)} may be enqueued or not: "
                "it is safe to enqueue lines with an id again"
            )
        return f"{done}: continue with line {self._last + 1:,}" if self._last else done


def _lines(first: int, last: int) -> str:
    return f"line {first:,}" if first == last else f"lines {first:,} to {last:,}"
