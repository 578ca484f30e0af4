"""Glyphs: the few characters that pictures are made of, also for terminals that know ASCII only, and the pictures themselves."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size


class Glyphs(NamedTuple):
    """What to draw with."""

    levels: str
    """Of a sparkline, from none to the most."""
    full: str
    empty: str
    mark: str
    cut: str
    arrows: str


UNICODE = Glyphs("▁▂▃▄▅▆▇█", "█", "░", "▸", "…", "↑↓")
ASCII = Glyphs("_.:-=+*#", "#", ".", ">", "~", "Up/Down")


def glyphs_for(encoding: str) -> Glyphs:
    """Those that can be written in the encoding."""
    try:
        "".join(UNICODE).encode(encoding)
    except (LookupError, UnicodeEncodeError):
        return ASCII
    return UNICODE


def sparkline(values: Sequence[float], width: int, glyphs: Glyphs) -> str:
    """The last values, one a cell, the newest at the right end; the highest of them reaches the top."""
    shown = values[-width:] if width > 0 else ()
    most = max(shown, default=0.0)
    steps = len(glyphs.levels) - 1
    line = "".join(glyphs.levels[ceil(max(value, 0.0) / most * steps) if most > 0 else 0] for value in shown)
    return line.rjust(max(width, 0))


def bar(part: float, width: int, glyphs: Glyphs) -> str:
    """A bar that is full to a part between 0 and 1."""
    cells = round(min(max(part, 0.0), 1.0) * width)
    return glyphs.full * cells + glyphs.empty * (width - cells)


def fit(text: str, width: int, glyphs: Glyphs, *, is_right: bool = False, keeps_end: bool = False) -> str:
    """The text in just so many cells: padded, or cut at its end or, where the end tells most, in the middle."""
    length = cell_len(text)
    if length <= width:
        return " " * (width - length) + text if is_right else text + " " * (width - length)
    if width < 2:
        return set_cell_size(text, max(width, 0))
    if not keeps_end:
        return set_cell_size(text, width - 1) + glyphs.cut
    tail = min(2 * width // 3, width - 1)
    head = set_cell_size(text, width - 1 - tail) + glyphs.cut
    reverse = set_cell_size(text[::-1], tail)
    return head + reverse[::-1]


def age(seconds: float) -> str:
    """How long that is, in few characters: `45 s`, `12 min`, `3 h`."""
    for unit, name in ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min")):
        if seconds >= 2 * unit:
            return f"{seconds // unit:.0f} {name}"
    return f"{max(seconds, 0.0):.0f} s"
