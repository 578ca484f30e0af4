"""10,000 periodic envelopes at a fixed rate, on threads: how many of the firings come, how late, and at what cost.

All are sent to a queue that has not been started, each with a delay of its own, so that their beats are spread evenly
over the interval: a perfect clock fires one every 10 µs. They run for a while before the window opens.

The k-th beat of an envelope is k intervals after its first start was *due*, not after it came, which may itself have
been late. A firing is late by the time since the last beat, so a tick that was skipped is a firing that is missing,
and no lateness. CPU is that of the whole process; to note a start, about 0.2 µs, is counted too.

One worker: the work is all Python, so that a second one adds no throughput, but switches. All this is in an
interpreter of its own (`python -m bench.periodic 10`): one that has measured other things before has its memory in pieces.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import quantiles
from time import monotonic, process_time, sleep
from typing import Any

from rate_envelope_queue import Context, Envelope, Every, RateEnvelopeQueue

from .harness import Case, Goal, Shared, expect, micros_each

_ROOT = Path(__file__).parents[1]
_N = 10_000
_INTERVAL = 0.1  # seconds
_WORKERS = 1
_SEND_TIME = 0.5  # seconds that are enough to send all and start the queue
_WARM_UP = 0.5  # seconds of firing before the window opens


@dataclass(frozen=True, slots=True)
class _Window:
    """What was seen in one window of time."""

    seconds: float
    cpu: float
    latenesses: list[float]  # of each firing, in seconds

    @property
    def share(self) -> float:
        """Percent of a perfect clock's firings."""
        return len(self.latenesses) / (_N * self.seconds / _INTERVAL) * 100

    @property
    def cpu_each(self) -> float:
        """Microseconds of CPU a firing."""
        return micros_each(self.cpu, len(self.latenesses))

    def lateness(self, percent: int) -> float:
        """Milliseconds by which so many percent were late at most."""
        return quantiles(self.latenesses, n=100)[percent - 1] * 1000


def cases(*, quick: bool) -> list[Case]:
    seconds = 3.0 if quick else 10.0
    window = Shared(partial(_in_own_interpreter, seconds))
    case = partial(Case, name="periodic")
    of_all = f"of {_N:,} at {_INTERVAL * 1000:g} ms, fixed rate, in {seconds:g} s"
    return [
        case(
            row="firings",
            shows=f"firings {of_all}, next to a perfect clock's",
            unit="%",
            ours=window.figure(lambda window: window.share),
            goals=(Goal(">=", 99, on="ours"),),
        ),
        case(
            row="lateness p50",
            shows=f"median lateness {of_all}",
            unit="ms",
            ours=window.figure(lambda window: window.lateness(50)),
        ),
        case(
            row="lateness p99",
            shows=f"lateness {of_all}, that one in a hundred firings exceeds",
            unit="ms",
            ours=window.figure(lambda window: window.lateness(99)),
            goals=(Goal("<=", 10, on="ours"),),
        ),
        case(
            row="CPU",
            shows=f"CPU a firing {of_all}",
            unit="µs",
            ours=window.figure(lambda window: window.cpu_each),
            goals=(Goal("<=", 5, on="ours"),),
        ),
    ]


def _in_own_interpreter(seconds: float) -> _Window:
    command = (sys.executable, "-m", "bench.periodic", str(seconds))
    printed = subprocess.run(command, cwd=_ROOT, check=True, capture_output=True).stdout
    return _Window(**json.loads(printed))


def _observe(seconds: float) -> _Window:
    """Let all of them run, and watch for so long."""
    schedule = Every(_INTERVAL, fixed_rate=True)
    starts: list[float] = []
    started: list[int] = []  # which envelope; in step with the starts, as there is one worker

    def note_start(ctx: Context, envelope: Envelope[int]) -> None:
        starts.append(monotonic())
        started.append(envelope.payload)

    envelopes = [Envelope(note_start, payload=number, schedule=schedule) for number in range(_N)]
    queue = RateEnvelopeQueue("bench", workers=_WORKERS, stop_mode="stop")
    first_beats = _send_staggered(queue, envelopes)
    queue.start()
    sleep(max(first_beats[-1] + _WARM_UP - monotonic(), 0.0))
    opened_at, cpu = monotonic(), process_time()
    sleep(seconds)
    closed_at, cpu = monotonic(), process_time() - cpu
    queue.stop()
    expect(queue.stats().occupied, _N, "envelopes still in the queue")
    latenesses = [
        (start - first_beats[number]) % _INTERVAL
        for start, number in zip(starts, started, strict=True)
        if opened_at <= start < closed_at
    ]
    return _Window(closed_at - opened_at, cpu, latenesses)


def _send_staggered(queue: RateEnvelopeQueue, envelopes: list[Envelope[Any]]) -> list[float]:
    """Send them all; returns when each is due for the first time, or a few microseconds before."""
    first_beats = []
    first_at = monotonic() + _SEND_TIME
    for number, envelope in enumerate(envelopes):
        # Why before the send: a beat that was put too late would make a punctual start almost an interval late.
        now = monotonic()
        delay = first_at + number * _INTERVAL / _N - now
        queue.send(envelope, delay=delay)
        first_beats.append(now + delay)
    return first_beats


if __name__ == "__main__":
    print(json.dumps(asdict(_observe(float(sys.argv[1])))))
