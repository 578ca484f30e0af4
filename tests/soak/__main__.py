"""`python -m tests.soak`: hours, or minutes, of load and restarts, and nothing grows; `make soak MINUTES=10`."""

from __future__ import annotations

import argparse
import random
import sys
import time

from . import library, service


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10, help="for each store")
    parser.add_argument("--store", choices=sorted(service.SIZES), help="one only")
    parser.add_argument("--sends", type=int, default=10_000_000, help="through the library; 0 for none")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    options = parser.parse_args()
    code = 0
    if options.minutes:
        for store in [options.store] if options.store else list(service.SIZES):
            code |= _soak_service(store, options.minutes * 60, options.seed)
    if options.sends:
        print(f"library: {options.sends:,} sends", flush=True)
        code |= library.soak_in_own_process(options.sends)
    print("something grows, or went wrong" if code else "nothing grows", flush=True)
    return code


def _soak_service(store: str, seconds: float, seed: int) -> int:
    print(f"{store}: {seconds / 60:g} min, seed {seed}, {time.strftime('%H:%M:%S')}", flush=True)
    gauges, problems = service.soak(store, seconds, seed, lambda text: print(f"  {text}", flush=True))
    print(gauges.table(), flush=True)
    for problem in problems:
        print(f"WRONG: {problem}", flush=True)
    return int(bool(problems or gauges.growing()))


if __name__ == "__main__":
    sys.exit(main())
