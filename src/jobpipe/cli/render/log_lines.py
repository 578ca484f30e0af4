"""What jobs logged, on stdout as it comes: for people `time attempt level logger message`, for programs an object a line.

What a terminal would act on is escaped; a message of several lines is shown as such, indented.
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, tzinfo
from typing import TYPE_CHECKING

import msgspec
import typer

from ...model.text import counted
from ...process.logs import escape

if TYPE_CHECKING:
    from ...model.logs import JobLogs


def print_lines(logs: JobLogs, zone: tzinfo | None = None) -> None:
    """Each line, after a word on stderr about those that were cut."""
    if logs.cut:
        words = counted(logs.cut, "older line", "was cut", "were cut")
        typer.echo(f"{words}: the logs of a job are kept up to a limit", err=True)
    for line in logs.lines:
        when = line.at.astimezone(zone).isoformat(timespec="milliseconds")
        head = f"{when.replace('+00:00', 'Z') if zone is UTC else when} #{line.attempt} {escape(line.level)}"
        first, *others = line.message.splitlines() or [""]
        sys.stdout.write(f"{head} {escape(line.logger)}: {escape(first)}\n")
        for other in others:
            sys.stdout.write(f"    {escape(other)}\n")
    sys.stdout.flush()


def print_json_lines(logs: JobLogs) -> None:
    """An object a line."""
    for line in logs.lines:
        text = json.dumps(msgspec.to_builtins(line)).replace("\x7f", "\\u007f")
        sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
