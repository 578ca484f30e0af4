"""`python -m tests.simulation`: live one life after the other for a while, or one again, step by step."""

from __future__ import annotations

import argparse
import sys
import time
from itertools import count

from .life import Life, Summary
from .program import Program
from .stores import STORES, opened
from .world import Violation

_SHOWN = 60
"""Lines of a trace that a failure shows."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0, help="how long (default: 10)")
    parser.add_argument("--seed", type=int, help="live only this one, and show what happens")
    parser.add_argument("--first", type=int, default=0, help="the seed to begin with (default: 0)")
    parser.add_argument("--store", choices=STORES, default="memory")
    given = parser.parse_args()
    programs = [Program() for _ in range(3)]
    if given.seed is not None:
        return _replay(given.seed, programs, given.store)
    ends_at = time.monotonic() + given.seconds
    done: list[Summary] = []
    for seed in count(given.first):
        if time.monotonic() >= ends_at:
            break
        try:
            with opened(given.store) as store:
                done.append(Life(seed, programs, store).live())
        except Violation:
            return _replay(seed, programs, given.store)
    print(
        f"{len(done):,} lives, seeds {given.first} to {given.first + len(done) - 1}, on {given.store}: "
        f"{sum(each.jobs for each in done):,} jobs, {sum(each.runs for each in done):,} runs, "
        f"{sum(each.rescues for each in done):,} rescues, {sum(each.ticks for each in done):,} ticks, "
        f"{sum(each.recorded for each in done):,} steps recorded, {sum(each.suspensions for each in done):,} suspensions, "
        f"{sum(each.signals for each in done):,} signals accepted, "
        f"{sum(each.steps for each in done):,} turns; every promise was kept"
    )
    return 0


def _replay(seed: int, programs: list[Program], name: str) -> int:
    """Once more, with all that happens."""
    with opened(name) as store:
        life = Life(seed, programs, store, keeps_trace=True)
        try:
            summary = life.live()
        except Violation as violation:
            print(*life.world.trace[-_SHOWN:], sep="\n")
            print(f"\nA promise was broken: {violation}")
            print(f"Again: python -m tests.simulation --store {name} --seed {seed}")
            return 1
    print(*summary.trace, sep="\n")
    print(f"\nseed {seed}: every promise was kept ({summary.digest})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
