"""`python -m tests.mutations`: shows that each thing that the promises rest on is held by a test that names it."""

from __future__ import annotations

import argparse
import sys
import time

from .round import copied, failing, survivors
from .table import MUTATIONS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description=__doc__)
    parser.add_argument("--only", default="", help="those whose name has this in it, such as memory or fence")
    chosen = [each for each in MUTATIONS if parser.parse_args().only in each.name]
    if not chosen:
        parser.error("no mutation has that in its name")
    problems = 0
    with copied() as tree:
        tests = sorted({test for each in chosen for test in each.tests})
        for test in sorted(failing(tests, tree)):
            problems += 1
            print(f"FAILS as it is         {test}")
        for mutation in chosen:
            began_at = time.perf_counter()
            unmoved = survivors(mutation, tree)
            problems += len(unmoved)
            seconds = time.perf_counter() - began_at
            print(f"{'SURVIVED' if unmoved else 'noticed '}  {mutation.name}  ({seconds:.1f} s)", flush=True)
            for test in mutation.tests:
                print(f"    {'passes' if test in unmoved else 'fails '}  {test.rpartition('::')[2]}")
    print(f"{len(chosen)} mutations, {problems} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
