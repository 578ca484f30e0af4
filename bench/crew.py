"""Crew: the processes that run jobs (`python -m bench.crew huey redis://…`), while the one that measures puts jobs in.

Each says when it is ready, runs jobs until its input ends, and answers each line of it with how long each job took to be
picked up.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import monotonic, sleep

from .queues import queue_of, run

_ROOT = Path(__file__).parents[1]
_PATIENCE = 5.0

Latencies = list[float]


class Crew:
    """Processes that run the jobs of one queue."""

    def __init__(self, processes: list[subprocess.Popen[str]]) -> None:
        self._processes = processes

    def wait_until_ready(self) -> None:
        for process in self._processes:
            _line_of(process)

    def finish(self, n: int) -> Latencies:
        """What they answer, together. Why it waits for all: huey's jobs are gone from the server before they run."""
        until = monotonic() + _PATIENCE
        while True:
            latencies = [latency for process in self._processes for latency in self._ask(process)]
            if len(latencies) >= n or monotonic() > until:
                return latencies
            sleep(0.05)

    def _ask(self, process: subprocess.Popen[str]) -> Latencies:
        print(file=process.stdin, flush=True)
        answer: Latencies = json.loads(_line_of(process))
        return answer


def _line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise RuntimeError(f"{process.args!r} has ended: this measurement is void")
    return line


@contextmanager
def crew(kind: str, url: str, size: int) -> Iterator[Crew]:
    """So many processes, ready."""
    command = (sys.executable, "-m", "bench.crew", kind, url)
    with ExitStack() as stack:
        processes = []
        for _ in range(size):
            process = subprocess.Popen(
                command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            stack.callback(process.wait)
            stack.callback(process.kill)
            processes.append(process)
        members = Crew(processes)
        members.wait_until_ready()
        yield members


async def _serve(kind: str, url: str) -> None:
    """The whole life of one of the crew."""
    queue = queue_of(kind, url)
    await queue.open()
    latencies: Latencies = []
    async with queue.running(lambda sent_at: latencies.append(monotonic() - sent_at)):
        print("ready", flush=True)
        while await asyncio.to_thread(sys.stdin.readline):
            print(json.dumps(latencies), flush=True)
        os._exit(0)  # Why so abruptly: the figures are in, and some take seconds to stop


if __name__ == "__main__":
    run(_serve(sys.argv[1], sys.argv[2]))
