"""`python -m tests.modelcheck`: look at every state that two workers can come to, with two jobs, or with one of steps."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from .durable import DurableRules
from .model import Rules
from .search import Found, search


def main() -> int:
    return max(
        _tell("two jobs", lambda: search(Rules())), _tell("one of steps", lambda: search(DurableRules()))
    )


def _tell(name: str, look: Callable[[], Found]) -> int:
    began_at = time.perf_counter()
    found = look()
    print(f"{name}: {found.states:,} states, {found.steps:,} steps, {time.perf_counter() - began_at:.1f} s")
    if found.problem is None:
        print("every promise is kept in each of them, and from each there is a way to the end")
        return 0
    print(f"broken: {found.problem}", *found.path, sep="\n  ")
    return 1


if __name__ == "__main__":
    sys.exit(main())
