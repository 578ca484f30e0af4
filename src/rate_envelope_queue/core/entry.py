"""Entry: what a send asks of the queue, for one envelope."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ..envelope import Envelope
    from ..schedule import Beat


class Entry(NamedTuple):
    """An envelope to admit, and when it is to run: as a newcomer, or one that is in the queue already."""

    envelope: Envelope[Any]
    first_due: float | None = None
    due: float | None = None
    beat: Beat = None
