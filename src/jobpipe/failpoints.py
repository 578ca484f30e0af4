"""Marks: the points of the program at which a test may kill it, to see what a death there leaves behind.

They do nothing unless JOBPIPE_DIE_AT names a folder. A file there, named after a mark, is used up by the process that
comes by first, which gets the signal whose number is in the file, or SIGKILL if the file is empty. Where they are off, a
mark is a call that looks at a constant: 40 ns, once a batch and never once a job.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Literal, TypeAlias

VARIABLE: Final = "JOBPIPE_DIE_AT"
_FOLDER: Final = os.environ.get(VARIABLE)
ARE_ON: Final = _FOLDER is not None

Mark: TypeAlias = Literal[
    "enqueue-before",
    "enqueue-inside",
    "enqueue-after",
    "claim-before",
    "claim-inside",
    "claim-after",
    "claim-taken",
    "settle-before",
    "settle-inside",
    "settle-after",
    "tick-before",
    "tick-inside",
    "tick-after",
    "rescue-before",
    "rescue-inside",
    "rescue-after",
]

MARKS: Final[Mapping[Mark, str]] = {
    "enqueue-before": "jobs have come, and the store was not asked yet",
    "enqueue-inside": "the jobs are written",
    "enqueue-after": "the jobs are accepted, and the notification was not sent yet",
    "claim-before": "there is room for jobs, and the store was not asked yet",
    "claim-inside": "the leases are written",
    "claim-after": "the leases are given, and the process does not hold them yet",
    "claim-taken": "the process holds the leases, and no job has begun",
    "settle-before": "jobs have ended, and the store was not asked yet",
    "settle-inside": "the outcomes are written",
    "settle-after": "the outcomes are recorded, and the process does not know",
    "tick-before": "a tick is due, and the store was not asked yet",
    "tick-inside": "the job of the tick is written, and the schedule has gone on to the next",
    "tick-after": "the job of the tick is enqueued, and no worker was told",
    "rescue-before": "it is time to look for jobs whose worker is lost, and the store was not asked yet",
    "rescue-inside": "those jobs are put back",
    "rescue-after": "those jobs wait again, and the notification was not sent yet",
}
"""What is so when a mark is reached. Inside is before the commit; Redis has no such mark, since a script is one step."""


def reach(mark: Mark, last: Callable[[], object] | None = None) -> None:
    """Be at the mark; who dies there does `last` before."""
    if _FOLDER is not None:
        _heed(Path(_FOLDER, mark), last)


def _heed(file: Path, last: Callable[[], object] | None) -> None:
    try:
        number = int(file.read_text() or signal.SIGKILL)
        file.unlink()  # of several processes that have read it, one
    except FileNotFoundError:
        return
    if last is not None:
        last()
    os.kill(os.getpid(), number)
