"""Bytes an envelope takes in the queue: itself and all bookkeeping, without a payload.

Counted by tracemalloc, in an interpreter of its own (`python -m bench.memory ready 200000`), where nothing
else is allocated meanwhile and nobody else holds the envelopes.
"""

from __future__ import annotations

import gc
import subprocess
import sys
import tracemalloc
from functools import partial
from pathlib import Path

from rate_envelope_queue import Envelope, RateEnvelopeQueue

from .harness import Case, Goal, expect
from .threads import noop

_ROOT = Path(__file__).parents[1]
_N = 200_000


def cases(*, quick: bool) -> list[Case]:
    # Why as many in a quick run: tables grow in steps, so the figure depends on the number.
    return [
        _memory("ready", "an envelope that waits for a worker", Goal("<=", 280, on="ours")),
        _memory(
            "delayed",
            "an envelope that waits for its time, each for one of its own",
            Goal("<=", 250, on="ours"),
        ),
    ]


def _memory(row: str, what: str, goal: Goal) -> Case:
    return Case(
        name="memory",
        row=row,
        shows=f"bytes of {what}, of {_N:,}, beyond its payload",
        unit="B",
        ours=partial(_in_own_interpreter, row),
        goals=(goal,),
    )


def _in_own_interpreter(row: str) -> float:
    command = (sys.executable, "-m", "bench.memory", row, str(_N))
    return float(subprocess.run(command, cwd=_ROOT, check=True, capture_output=True, text=True).stdout)


def _bytes_each(row: str, n: int) -> float:
    """Bytes an envelope, with so many in the queue."""
    tracemalloc.start()
    queue = RateEnvelopeQueue("bench", workers=1)
    before = _traced()
    if row == "ready":
        for _ in range(n):
            queue.send(Envelope(noop))
    else:
        for number in range(n):
            queue.send(Envelope(noop), delay=3600 + number / 1000)
    took = _traced() - before
    expect(getattr(queue.stats(), row), n, f"envelopes {row}")
    return took / n


def _traced() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


if __name__ == "__main__":
    print(_bytes_each(sys.argv[1], int(sys.argv[2])))
