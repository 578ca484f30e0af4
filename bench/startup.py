"""What `import rate_envelope_queue` adds to the start of an interpreter, from compiled files."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from statistics import median
from time import perf_counter

from .harness import Case, Goal


def cases(*, quick: bool) -> list[Case]:
    return [
        Case(
            name="import",
            shows="a fresh interpreter that imports the package, less one that does not",
            unit="ms",
            ours=partial(_import, 3 if quick else 7),
            goals=(Goal("<=", 30, on="ours"),),
        )
    ]


def _import(pairs: int) -> float:
    """Milliseconds: the median difference of so many pairs."""
    with_it, without = "import rate_envelope_queue", "pass"
    _seconds(with_it)  # Why: whatever is not compiled yet is compiled now
    return median(_seconds(with_it) - _seconds(without) for _ in range(pairs)) * 1000


def _seconds(code: str) -> float:
    began = perf_counter()
    subprocess.run((sys.executable, "-c", code), check=True)
    return perf_counter() - began
