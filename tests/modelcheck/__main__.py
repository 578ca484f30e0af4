"""`python -m tests.modelcheck`: look at every state that two workers and two jobs can come to."""

from __future__ import annotations

import sys
import time

from .model import Rules
from .search import search


def main() -> int:
    began_at = time.perf_counter()
    found = search(Rules())
    print(f"{found.states:,} states, {found.steps:,} steps, {time.perf_counter() - began_at:.1f} s")
    if found.problem is None:
        print("every promise is kept in each of them, and from each there is a way to the end")
        return 0
    print(f"broken: {found.problem}", *found.path, sep="\n  ")
    return 1


if __name__ == "__main__":
    sys.exit(main())
