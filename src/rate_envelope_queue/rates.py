"""Rate: how fast envelopes may start."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import isfinite

from ._checks import Seconds, duration
from .errors import BadFieldsError

_UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Rate:
    """At most `limit` starts in `per` seconds, evenly paced, and up to `burst` at once after a rest."""

    limit: float
    per: float
    burst: int

    def __init__(self, limit: float, per: Seconds = 1, burst: int = 1) -> None:
        if isinstance(limit, bool) or not isinstance(limit, int | float) or not isfinite(limit) or limit <= 0:
            raise BadFieldsError(f"limit must be a finite number > 0, got {limit!r}")
        if type(burst) is not int or burst < 1:
            raise BadFieldsError(f"burst must be an integer >= 1, got {burst!r}")
        object.__setattr__(self, "limit", float(limit))
        object.__setattr__(self, "per", duration("per", per, positive=True))
        object.__setattr__(self, "burst", burst)

    @property
    def interval(self) -> float:
        """The seconds between two starts of an even pace."""
        return self.per / self.limit

    @classmethod
    def of(cls, field: str, value: Rate | str) -> Rate:
        """A rate, or a text such as "5/s" or "100/min"; BadFieldsError naming the field."""
        if isinstance(value, Rate):
            return value
        found = (
            re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*/\s*(s|min|h|d)\s*", value)
            if isinstance(value, str)
            else None
        )
        if found is None or float(found[1]) == 0:
            raise BadFieldsError(
                f"{field} must be a Rate or a text such as '5/s' or '100/min', with s, min, h or d, got {value!r}"
            )
        return cls(float(found[1]), _UNITS[found[2]])

    def __repr__(self) -> str:
        burst = f", burst={self.burst}" if self.burst != 1 else ""
        return f"Rate({self.limit:g}, per={self.per:g}{burst})"
