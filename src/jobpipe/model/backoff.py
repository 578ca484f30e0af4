"""Backoff: how long a job waits before its next retry (exponential, with full jitter)."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from ..errors import BadInputError, seconds_of

_LARGEST_EXPONENT = 60
"""2 to this, times any base, is above any cap."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """The delay before retry k = 1, 2, … is uniform between 0 and min(cap, base * 2^(k-1)).

    Without jitter it is that bound itself.
    """

    base: float = 1.0
    cap: float = 600.0
    jitter: bool = True

    def __post_init__(self) -> None:
        for field in ("base", "cap"):
            object.__setattr__(self, field, seconds_of(field, getattr(self, field)))
        if not isinstance(self.jitter, bool):
            raise BadInputError("jitter", f"must be True or False, got {self.jitter!r}")

    def bound(self, retry: int) -> float:
        """The longest delay before the given retry; the first is 1."""
        return min(self.cap, self.base * 2.0 ** min(retry - 1, _LARGEST_EXPONENT))

    def delay(self, retry: int, uniform: Callable[[float, float], float] = random.uniform) -> float:
        """The delay before the given retry; the first is 1."""
        return uniform(0.0, self.bound(retry)) if self.jitter else self.bound(retry)
