"""`python -m tests.race`: hunts races for a while; `make test_race SECONDS=60`.

The stress, contract and history tests, in random order and with fresh seeds, in Python's development mode and with threads
that are switched a thousand times as often as else. What fails is shown with the line that runs it again.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from .histories.stages import STAGES

ROOT = Path(__file__).parent.parent
FOLDERS = {
    "tests": ["test_stress.py"],
    "tests/contract": ["test_*.py"],
    "tests/core": ["test_model.py"],
    "tests/jobpipe/stores": ["test_*_store.py"],
}
_SWITCH_INTERVAL = "0.000005"
"""Seconds; see `conftest.py`."""
_PLAY = "5"
"""Seconds of faults in one play of a history."""


def files() -> list[str]:
    """The files of tests that take part."""
    found = [
        path for folder, names in FOLDERS.items() for name in names for path in (ROOT / folder).glob(name)
    ]
    return sorted(str(path.relative_to(ROOT)) for path in found)


def steps(rng: random.Random) -> Iterator[tuple[str, list[str]]]:
    """Seeds and arguments of Python, without end: every file and a play on every store, then again."""
    while True:
        commands = [["-m", "pytest", "-q", "-p", "no:cacheprovider", file] for file in files()]
        commands += [
            ["-m", "tests.histories", "--quiet", "--seconds", _PLAY, "--store", name] for name in STAGES
        ]
        rng.shuffle(commands)
        for command in commands:
            seed = str(rng.randrange(10**6))
            yield seed, [*command, "--hypothesis-seed" if "pytest" in command else "--seed", seed]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.race", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="after which no further step begins")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    options = parser.parse_args()
    print(f"{options.seconds:g} s, seed {options.seed}", flush=True)
    until = time.monotonic() + options.seconds
    for count, (seed, command) in enumerate(steps(random.Random(options.seed))):
        if count and time.monotonic() >= until:
            print(f"no race found in {count} steps")
            return 0
        env = {"PYTHONDEVMODE": "1", "SWITCH_INTERVAL": _SWITCH_INTERVAL, "SEED": seed}
        again = " ".join([*(f"{name}={value}" for name, value in env.items()), "python", *command])
        print(again, flush=True)
        done = subprocess.run([sys.executable, *command], cwd=ROOT, env={**os.environ, **env}, check=False)
        if done.returncode:
            print(f"failed: {again}", flush=True)
            return 1
    raise AssertionError("there are always further steps")


if __name__ == "__main__":
    sys.exit(main())
