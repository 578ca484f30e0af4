"""What a send asks of the core: its arguments, checked and with their instants."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from ..core.entry import Entry
from ..envelope import PLAIN, Envelope, identity_of, is_coroutine_function
from ..errors import BadFieldsError

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from ..clock import Clock
    from ..envelope import Listener


_CALLED = ("invoke", "before_hook", "after_hook", "success_hook", "failure_hook")


def check_envelope(envelope: object) -> None:
    """BadFieldsError unless it is an Envelope."""
    if not isinstance(envelope, Envelope):
        hint = "; give them one by one, not as a list" if isinstance(envelope, list | tuple) else ""
        raise BadFieldsError(f"envelope must be an Envelope, got {envelope!r}{hint}")


def check_sync(envelope: Envelope[Any]) -> None:
    """BadFieldsError if it has a coroutine function, which nothing awaits in a thread."""
    if envelope.is_async:
        parts = {part: getattr(envelope, part) for part in _CALLED}
        wrong = ", ".join(
            f"{part}={call!r}"
            for part, call in parts.items()
            if call is not None and is_coroutine_function(part, call)
        )
        raise BadFieldsError(
            f"invoke and hooks must be plain functions here, coroutine functions need "
            f"AsyncRateEnvelopeQueue, got {envelope!r} with {wrong}"
        )


class Entries:
    """Makes the entries of one queue's sends."""

    __slots__ = ("_clock", "_on_send", "_places")

    def __init__(
        self, clock: Clock, places: Mapping[Hashable, object], on_send: tuple[Listener, ...]
    ) -> None:
        self._clock = clock
        self._places = places
        self._on_send = on_send

    def of(self, envelopes: tuple[Envelope[Any], ...], delay: float) -> list[Entry]:
        """When each of them is to run, all counted from the same instant."""
        now = self._clock.now()
        due = now + delay if delay else None
        return [self._entry(envelope, now, due) for envelope in envelopes]

    def _entry(self, envelope: Envelope[Any], now: float, due: float | None) -> Entry:
        handling = envelope._handling or PLAIN
        if (self._on_send or handling.on_send) and not self._is_ready(envelope):
            for listener in (*self._on_send, *handling.on_send):
                listener(envelope)
        schedule = handling.schedule
        if schedule is None:
            return Entry(envelope, due, due)
        wall = self._clock.wall()
        if due is not None:
            now, wall = due, wall + timedelta(seconds=due - now)
        first, beat = schedule.first_due(now, wall)
        return Entry(envelope, first, due, beat)

    def _is_ready(self, envelope: Envelope[Any]) -> bool:
        """Does it wait already, so that sending it changes nothing?"""
        return self._places.get(identity_of(envelope)).__class__ is float
