"""What a signal handler may ask of the thread queue: its request is done later, by a thread that may wait for the lock.

A handler runs in the main thread, in the middle of whatever that was doing. If it was in a call of this queue, the lock
may be held, and waiting for it would never end.
"""

from __future__ import annotations

import sys
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType


def code_of(*methods: object) -> frozenset[CodeType]:
    """The code of these methods and properties."""
    return frozenset(getattr(method, "fget", method).__code__ for method in methods)  # type: ignore[attr-defined]


def is_within(codes: frozenset[CodeType], *owners: object) -> bool:
    """Is this called, at any depth, from one of these methods of one of these objects?"""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code in codes and any(frame.f_locals.get("self") is owner for owner in owners):
            return True
        frame = frame.f_back
    return False


class Requests:
    """What signal handlers have asked for."""

    __slots__ = ("_requests",)

    def __init__(self) -> None:
        self._requests: deque[Callable[[], object]] = deque()

    def add(self, request: Callable[[], object]) -> None:
        self._requests.append(request)

    def do_all(self) -> None:
        """Do them; more than one thread may be in here."""
        while True:
            try:
                request = self._requests.popleft()
            except IndexError:
                return  # Why not asked before: the timer of the start before may be in here, too
            request()
