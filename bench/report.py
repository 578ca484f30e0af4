"""Results as text, as Markdown and as JSON."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from .harness import Result, Series

BEGIN, END = "<!-- bench:begin -->", "<!-- bench:end -->"
_DASH, _TIMES = "\N{EN DASH}", "\N{MULTIPLICATION SIGN}"
_HEADINGS = ("case", "ours", "peer", "ratio", "goal", "met")


@dataclass(frozen=True, slots=True)
class Session:
    """A whole run: its results, and what they were measured on."""

    results: tuple[Result, ...]
    repeats: int
    is_quick: bool
    at: datetime
    load: tuple[float, float, float]
    """The machine's load averages before the run."""

    @property
    def caption(self) -> str:
        kind = "Quick run (small, not for claims)" if self.is_quick else "Run"
        return (
            f"{kind} of {self.at:%Y-%m-%d %H:%M} UTC: {platform.python_implementation()} "
            f"{platform.python_version()}, {platform.system()} {platform.machine()}, {os.cpu_count()} CPUs, "
            f"load {self.load[0]:.1f} before; median of {self.repeats} repeats (least{_DASH}most)."
        )


def begin_session() -> tuple[datetime, tuple[float, float, float]]:
    """When a run begins, and how busy the machine is."""
    return datetime.now(UTC), os.getloadavg()


def as_text(session: Session) -> str:
    """The table for a terminal."""
    rows = [_HEADINGS, *map(_cells, session.results)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
    return "\n".join((*lines, "", session.caption))


def as_markdown(session: Session) -> str:
    """The table for the docs."""
    rows = (_HEADINGS, ("---",) * len(_HEADINGS), *map(_cells, session.results))
    return "\n".join((*("| " + " | ".join(row) + " |" for row in rows), "", session.caption))


def write_markdown(path: Path, session: Session) -> None:
    """Put the table between the markers of a page, or into a new file."""
    page = path.read_text(encoding="utf-8") if path.exists() else f"{BEGIN}\n{END}\n"
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{path} has no lines {BEGIN} and {END} to put the table between")
    path.write_text(f"{before}{begin}\n{as_markdown(session)}\n{end}{after}", encoding="utf-8")


def write_json(path: Path, session: Session) -> None:
    """Everything that was measured, with every sample."""
    document = {
        "at": session.at.isoformat(timespec="seconds"),
        "quick": session.is_quick,
        "repeats": session.repeats,
        "version": version("rate-envelope-queue"),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpus": os.cpu_count(),
        "load_before": session.load,
        "results": [_as_data(result) for result in session.results],
    }
    path.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _cells(result: Result) -> Sequence[str]:
    case, ratio = result.case, result.ratio
    return (
        case.title,
        _figure(result.ours, case.unit),
        _DASH if result.peer is None else f"{_figure(result.peer, case.unit)} {case.peer_name}",
        _DASH if ratio is None else _figure(ratio, _TIMES),
        _joined(case.describe(goal) for goal in case.goals),
        _joined("met" if result.is_met(goal) else "MISSED" for goal in case.goals),
    )


def _joined(parts: Iterable[str]) -> str:
    return "; ".join(parts) or _DASH


def _figure(series: Series, unit: str) -> str:
    return f"{_short(series.median)} {unit} ({_short(series.low)}{_DASH}{_short(series.high)})"


def _short(number: float) -> str:
    """Three significant digits, without an exponent."""
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:#.3g}"


def _as_data(result: Result) -> dict[str, Any]:
    case = result.case
    return {
        "name": case.name,
        "row": case.row,
        "shows": case.shows,
        "unit": case.unit,
        "ours": _series(result.ours),
        "peer": _series(result.peer),
        "peer_name": case.peer_name or None,
        "ratio_of": case.ratio_of if result.ratio is not None else None,
        "ratio": _series(result.ratio),
        "goals": [
            {"op": goal.op, "number": goal.number, "on": goal.on, "met": result.is_met(goal)}
            for goal in case.goals
        ],
    }


def _series(series: Series | None) -> dict[str, Any] | None:
    if series is None:
        return None
    return {
        "median": series.median,
        "min": series.low,
        "max": series.high,
        "samples": series.samples,
    }
