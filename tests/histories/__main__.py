"""`python -m tests.histories`: a longer play on each store; `make histories SECONDS=60`."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from .checker import check
from .play import play
from .record import Record
from .stages import STAGES

_SHOWN = 20


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.histories", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="of faults, for each store")
    parser.add_argument("--store", choices=sorted(STAGES), help="one only")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--quiet", action="store_true", help="do not tell of each fault")
    options = parser.parse_args()
    names = [options.store] if options.store else list(STAGES)
    return max(_play(name, options.seconds, options.seed, options.quiet) for name in names)


def _play(name: str, seconds: float, seed: int, is_quiet: bool) -> int:
    folder = Path(tempfile.mkdtemp(prefix=f"history-{name}-"))
    again = f"make histories SECONDS={seconds:g} STORE={name} SEED={seed}"
    print(f"{name}: {seconds:g} s of faults, seed {seed}, in {folder}", flush=True)
    began_at = time.monotonic()
    try:
        record = play(name, folder, seconds, seed, say=lambda text: is_quiet or print(text, flush=True))
    except BaseException:
        print(f"{name}: broken off; the files are in {folder}; {again}", flush=True)
        raise
    violations = check(record)
    print(f"{name}: {_summary(record)}, {time.monotonic() - began_at:.0f} s")
    for violation in violations[:_SHOWN]:
        print(f"  {violation}")
    if violations:
        print(f"{name}: {len(violations)} violations; the files are in {folder}; {again}", flush=True)
    return int(bool(violations))


def _summary(record: Record) -> str:
    statuses = Counter(job.status for job in record.jobs.values())
    lost = sum(run.error == "WorkerLost" for job in record.jobs.values() for run in job.runs)
    return (
        f"{len(record.accepted)} jobs accepted, {', '.join(f'{n} {status}' for status, n in statuses.items())}, "
        f"{len(record.runs)} runs begun, {lost} lost by their workers, {len(record.events)} events, "
        f"{len(record.effects)} effects of steps, "
        f"{sum(run.how == 'suspended' for run in record.runs)} runs suspended, "
        f"{sum(each.how == 'accepted' for each in record.signals)} signals accepted"
    )


if __name__ == "__main__":
    sys.exit(main())
