"""Columns: rows of cells for people, aligned, a line each, with no blanks at its end.

Where somebody looks there are colours, and a last cell that is too long is folded within its column. Elsewhere every row
is one line, however long. Why not the tables of rich: thousands of rows take them seconds.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import typer
from rich.cells import cell_len

if TYPE_CHECKING:
    from rich.console import Console

_GAP = 2
_NARROWEST = 20
"""Columns of the terminal that are worth folding for; in less, it may break the line as it does."""


class Cell(NamedTuple):
    """Printable text, and how it looks where there are colours."""

    text: str
    style: str = ""


Row = Sequence[Cell]


def print_columns(rows: Sequence[Row]) -> None:
    """All rows, of as many cells each, on stdout."""
    widths = [max(cell_len(cell.text) for cell in column) for column in zip(*rows, strict=True)]
    if sys.stdout.isatty():
        _print_in_colour(rows, widths)
    else:
        lines = ("".join(cell.text for cell in _aligned(row, widths)) for row in rows)
        typer.echo("\n".join(lines))


def _aligned(row: Row, widths: Sequence[int]) -> Iterator[Cell]:
    """The cells up to the last that says something, with what stands between them."""
    count = max((number for number, cell in enumerate(row, 1) if cell.text), default=0)
    for number in range(count - 1):
        yield row[number]
        yield Cell(" " * (widths[number] - cell_len(row[number].text) + _GAP))
    yield from row[count - 1 : count]


def _print_in_colour(rows: Sequence[Row], widths: Sequence[int]) -> None:
    from rich.console import Console  # Why here: only then it is needed
    from rich.segment import Segment, Segments
    from rich.style import Style

    console = Console(highlight=False)
    room = console.width - sum(widths[:-1]) - _GAP * (len(widths) - 1)
    segments: list[Segment] = []
    for row in rows:
        for line in _folded(console, row, room):
            segments += [Segment(text, Style.parse(style)) for text, style in _aligned(line, widths)]
            segments.append(Segment.line())
    console.print(Segments(segments), soft_wrap=True, end="")


def _folded(console: Console, row: Row, room: int) -> list[Row]:
    """The row, or several of them where its last cell is longer than there is room."""
    from rich.text import Text

    last = row[-1]
    if room < _NARROWEST or cell_len(last.text) <= room:
        return [row]
    texts = [line.plain.rstrip() for line in Text(last.text).wrap(console, room, overflow="fold")]
    nothing = [Cell("")] * (len(row) - 1)
    return [[*(nothing if number else row[:-1]), Cell(text, last.style)] for number, text in enumerate(texts)]
