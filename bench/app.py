"""The programs that `jobpipe worker` runs in `draining` and `joblogs`: one type of job each, a no-op, a wait of 10 ms, or
five lines in the log.

Each process notes when its first job began, and the CPU time that it had used until then, as a file in the folder that
`BENCH_STARTS` names.
"""

from __future__ import annotations

import asyncio
import logging
import os
from pathlib import Path
from time import monotonic, process_time

from jobpipe import Jobpipe

STARTS = "BENCH_STARTS"

noop = Jobpipe(queue_size=0)
waiting = Jobpipe(queue_size=0)
logging_ = Jobpipe(queue_size=0)
_log = logging.getLogger("bench")
_has_begun = False


@noop.job("work")
async def _noop(payload: float) -> None:
    if not _has_begun:
        _note()


@waiting.job("work")
async def _wait(payload: float) -> None:
    if not _has_begun:
        _note()
    await asyncio.sleep(0.01)


@logging_.job("work")
async def _five_lines(payload: float) -> None:
    if not _has_begun:
        _note()
    for number in range(5):
        _log.info("line %d of what a job has to say", number)


def _note() -> None:
    global _has_begun
    _has_begun = True
    if folder := os.environ.get(STARTS):
        Path(folder, str(os.getpid())).write_text(f"{monotonic()!r} {process_time()!r}", encoding="utf-8")
