"""Guardian: a program of its own that kills process groups when its standard input ends, as it does when a worker is killed.

`+123` adds a group, `-123` takes it off, a line each. It runs as a file, without the package, so that it is small and
starts fast. Where the kernel cannot kill children with their parent, nothing else could: a child may be stuck in C, and what
it has started is no child of the worker.
"""

from __future__ import annotations

import os
import signal
import sys


def main() -> None:
    """Wait for the end of the worker."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    groups = set()
    for line in sys.stdin:
        group = int(line[1:])
        if line[0] == "+":
            groups.add(group)
        else:
            groups.discard(group)
    for group in groups:
        try:
            os.killpg(group, signal.SIGKILL)
        except OSError:
            pass  # it has ended


if __name__ == "__main__":
    main()
