"""Gauges: what a process and a store take up, read again and again, and whether it grows.

Growth is the difference between the middle of an early stretch and that of the last one, after a warm-up: what
goes up and down stays out of it, what only goes up does not.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

MIB = 2.0**20
_WARM_UP = 0.4
"""The part of all readings that comes before the first that counts."""
_STRETCH = 1 / 3
"""The part of those that count, at their beginning and at their end, which are compared."""
_FEWEST = 6
"""Readings that count, at least, for a word about them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """By how much a gauge may have grown in the end: so much, and so much of what it was."""

    absolute: float
    relative: float = 0.0

    def of(self, early: float) -> float:
        return self.absolute + self.relative * early


ALLOWANCES = {
    "memory": Allowance(absolute=6 * MIB, relative=0.03),
    "threads": Allowance(absolute=4),
    "files": Allowance(absolute=12),
    "store": Allowance(absolute=1 * MIB, relative=0.3),
    "jobs": Allowance(absolute=500, relative=0.5),
    "objects": Allowance(absolute=1_000),
}
"""By the kind of gauge. Why so much for the store: how much there is to keep depends on when it was last pruned. Why
for threads and files: callers whose process was killed come to the one that is measured."""


@dataclass(slots=True)
class Gauge:
    """Readings of one thing, oldest first."""

    name: str
    kind: str
    readings: list[float] = field(default_factory=list)

    def compared(self) -> tuple[float, float]:
        """The middle of the early stretch, and that of the last one."""
        counted = self.readings[int(len(self.readings) * _WARM_UP) :]
        stretch = max(int(len(counted) * _STRETCH), 1)
        return median(counted[:stretch]), median(counted[-stretch:])

    @property
    def grows(self) -> bool:
        early, late = self.compared()
        return late - early > ALLOWANCES[self.kind].of(early)

    @property
    def is_long_enough(self) -> bool:
        return len(self.readings) * (1 - _WARM_UP) >= _FEWEST


class Gauges:
    """All gauges of a soak, by name; made when they are first read."""

    def __init__(self) -> None:
        self._all: dict[str, Gauge] = {}

    def read(self, name: str, kind: str, value: float) -> None:
        self._all.setdefault(name, Gauge(name, kind)).readings.append(value)

    def read_process(self, name: str, pid: int) -> None:
        """Memory, threads and open files of a process."""
        folder = Path(f"/proc/{pid}")
        resident = int((folder / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        self.read(f"{name}: memory", "memory", resident)
        self.read(f"{name}: threads", "threads", len(list((folder / "task").iterdir())))
        self.read(f"{name}: files", "files", len(list((folder / "fd").iterdir())))

    def now(self) -> str:
        """The last readings, in one line."""
        return ", ".join(f"{each.name} {shown(each.kind, each.readings[-1])}" for each in self._all.values())

    def growing(self) -> list[Gauge]:
        """Those that grow, and those of which nobody can tell."""
        return [gauge for gauge in self._all.values() if gauge.grows or not gauge.is_long_enough]

    def table(self) -> str:
        """All of them: early, late, and the verdict."""
        rows: list[tuple[str, ...]] = [("gauge", "early", "late", "most", "readings", "")]
        for gauge in self._all.values():
            early, late = gauge.compared()
            verdict = "GROWS" if gauge.grows else "flat" if gauge.is_long_enough else "TOO SHORT"
            numbers = (shown(gauge.kind, value) for value in (early, late, max(gauge.readings)))
            rows.append((gauge.name, *numbers, str(len(gauge.readings)), verdict))
        return _aligned(rows)


def shown(kind: str, value: float) -> str:
    """A reading as one would write it."""
    return f"{value / MIB:,.1f} MiB" if kind in ("memory", "store") else f"{value:,.0f}"


def _aligned(rows: Sequence[tuple[str, ...]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if n in (0, 5) else cell.rjust(width)
            for n, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )
