"""What `import rate_envelope_queue` adds to the start of an interpreter.

From compiled files, as where it is installed: they are in a cache of the benchmark's own, since the environment
may forbid Python to write any, and then every import would compile the package anew.
"""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

from .harness import Case, Goal


def cases(*, quick: bool) -> list[Case]:
    return [
        Case(
            name="import",
            shows="a fresh interpreter that imports the package, less one that does not",
            unit="ms",
            ours=partial(_import, 5 if quick else 11),
            goals=(Goal("<=", 30, on="ours"),),
        )
    ]


def _import(pairs: int) -> float:
    """Milliseconds: the median difference of so many pairs."""
    with_it, without = "import rate_envelope_queue", "pass"
    with TemporaryDirectory() as cache:
        _seconds(with_it, cache)  # fills the cache
        return median(_seconds(with_it, cache) - _seconds(without, cache) for _ in range(pairs)) * 1000


def _seconds(code: str, cache: str) -> float:
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": cache, "PYTHONDONTWRITEBYTECODE": ""}
    began = perf_counter()
    subprocess.run((sys.executable, "-c", code), env=environment, check=True)
    return perf_counter() - began
