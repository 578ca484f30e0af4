"""Bar: how far something long is, on stderr; only where somebody looks, and nothing at all elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from ...process.logs import escape

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


class Bar:
    """What the work tells: that it has come further, and things worth a line."""

    def __init__(self, shown: tuple[Progress, TaskID] | None = None) -> None:
        self._shown = shown

    def reach(self, amount: float, total: float | None = None) -> None:
        """So much of the total is done; the total may become known with it."""
        if self._shown is not None:
            progress, task = self._shown
            progress.update(task, completed=amount, total=total)

    def say(self, text: str) -> None:
        """A line, above the bar if there is one."""
        if self._shown is not None:
            self._shown[0].console.print(escape(text), markup=False, highlight=False)
        else:
            typer.echo(escape(text), err=True)


@contextmanager
def bar(label: str, total: float | None, *, is_quiet: bool = False, in_bytes: bool = False) -> Iterator[Bar]:
    """A bar for as long as the block lasts; of unknown length without a total."""
    if is_quiet or not sys.stderr.isatty():
        yield Bar()
        return
    from rich import progress as parts  # Why here: it takes longer to load than most commands to run
    from rich.console import Console

    columns = [
        parts.TextColumn("{task.description}"),
        parts.BarColumn(),
        parts.DownloadColumn() if in_bytes else parts.MofNCompleteColumn(),
        parts.TimeRemainingColumn(),
    ]
    # Why transient: what the command prints at the end says more than a full bar.
    with parts.Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield Bar((progress, progress.add_task(label, total=total)))
