"""What a benchmark is, and how it is measured.

A case is data: what it shows, how to measure our figure and the peer's once, and its goals. `measure` takes
the two in turn, as often as asked, so that a busy moment of the machine hits both. It judges medians.
"""

from __future__ import annotations

import gc
import operator
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from statistics import median
from typing import Generic, Literal, TypeVar

Measure = Callable[[], float]
"""Performs one measurement and returns its figure, in the unit of its case."""
Progress = Callable[[str], None]
T = TypeVar("T")

_OPERATORS = {"<=": operator.le, ">=": operator.ge}
_SIGNS = {"<=": "≤", ">=": "≥"}


@dataclass(frozen=True, slots=True)
class Goal:
    """What the median of our figure, or of the ratio, has to be."""

    op: Literal["<=", ">="]
    number: float
    on: Literal["ratio", "ours"] = "ratio"

    def is_met_by(self, figure: float) -> bool:
        return bool(_OPERATORS[self.op](figure, self.number))


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One row of the table. Cases that share a name are run together."""

    name: str
    row: str = ""
    """What sets it apart from the others of its name."""
    shows: str
    unit: str
    ours: Measure
    peer: Measure | None = None
    peer_name: str = ""
    ratio_of: Literal["peer/ours", "ours/peer"] = "peer/ours"
    goals: tuple[Goal, ...] = ()

    @property
    def title(self) -> str:
        return f"{self.name}, {self.row}" if self.row else self.name

    def describe(self, goal: Goal) -> str:
        """The goal in words, such as `peer/ours ≥ 8`."""
        if goal.on == "ratio":
            return f"{self.ratio_of} {_SIGNS[goal.op]} {goal.number:g}"
        return f"ours {_SIGNS[goal.op]} {goal.number:g} {self.unit}"


class Shared(Generic[T]):
    """A measurement of which several rows show a figure each: made once a repeat, by the row that comes first."""

    def __init__(self, observe: Callable[[], T]) -> None:
        self._observe = observe
        self._observed: list[T] = []

    def figure(self, of: Callable[[T], float]) -> Measure:
        """What one row shows: in its n-th repeat, that of the n-th measurement."""
        repeats = count()
        return lambda: of(self._repeat(next(repeats)))

    def _repeat(self, number: int) -> T:
        if number == len(self._observed):
            self._observed.append(self._observe())
        return self._observed[number]


@dataclass(frozen=True, slots=True)
class Series:
    """The figures of all repeats, in the order in which they were measured."""

    samples: tuple[float, ...]

    @property
    def median(self) -> float:
        return median(self.samples)

    @property
    def low(self) -> float:
        return min(self.samples)

    @property
    def high(self) -> float:
        return max(self.samples)


@dataclass(frozen=True, slots=True)
class Result:
    """A case and what was measured."""

    case: Case
    ours: Series
    peer: Series | None

    @property
    def ratio(self) -> Series | None:
        """That of each pair: the two were measured side by side, so it varies less than they do."""
        if self.peer is None:
            return None
        pairs = zip(self.ours.samples, self.peer.samples, strict=True)
        if self.case.ratio_of == "peer/ours":
            return Series(tuple(peer / ours for ours, peer in pairs))
        return Series(tuple(ours / peer for ours, peer in pairs))

    def is_met(self, goal: Goal) -> bool:
        judged = self.ours if goal.on == "ours" else self.ratio
        if judged is None:
            raise ValueError(f"{self.case.title} has a goal on the ratio, and no peer")
        return goal.is_met_by(judged.median)


def measure(case: Case, repeats: int, progress: Progress) -> Result:
    """Measure ours and the peer in turn; who is first changes with each repeat."""
    measures: dict[str, Measure] = {"ours": case.ours}
    if case.peer is not None:
        measures["peer"] = case.peer
    samples: dict[str, list[float]] = {who: [] for who in measures}
    for repeat in range(repeats):
        for who in sorted(measures, reverse=bool(repeat % 2)):
            progress(f"{case.title}: {who}, {repeat + 1} of {repeats}")
            gc.collect()
            samples[who].append(measures[who]())
    peer = Series(tuple(samples["peer"])) if "peer" in samples else None
    return Result(case, Series(tuple(samples["ours"])), peer)


def micros_each(seconds: float, n: int) -> float:
    """Microseconds an item."""
    return seconds / n * 1e6


def expect(found: int, expected: int, what: str) -> None:
    """A figure counts only if all the work behind it was done."""
    if found != expected:
        raise RuntimeError(f"{found} of {expected} {what}: this measurement is void")
