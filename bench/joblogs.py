"""Logs of jobs: waiting jobs drained by `jobpipe worker`, as in `draining`, with what they log kept in the store and not kept.

Both write their lines to stderr, as the command does; what is compared is the price of keeping them.
"""

from __future__ import annotations

from .draining import ENGINES, LOGGING, OURS, Place, drained
from .harness import Case, Goal, Measure

_JOBS = {OURS: 50_000, LOGGING: 15_000}
_LINES = {OURS: "no lines", LOGGING: "five lines"}
_LEAST = {OURS: 0.97, LOGGING: 0.7}
_QUICKLY = 3
"""What a quick run divides the numbers of jobs by."""


def cases(*, quick: bool) -> list[Case]:
    divisor = _QUICKLY if quick else 1

    def rate(place: Place, kind: str, mode: str) -> Measure:
        settings = {"JOBPIPE_JOB_LOGS": mode}
        return lambda: drained(place, kind, _JOBS[kind] // divisor, 1, settings).rate

    return [
        Case(
            name="joblogs",
            row=f"{engine.title}, {_LINES[kind]} a job",
            shows=f"waiting jobs a second on {engine.title}, with their logs kept and not kept",
            unit="/s",
            ours=rate(engine.place, kind, "logging"),
            peer=rate(engine.place, kind, "off"),
            peer_name="JOBPIPE_JOB_LOGS=off",
            ratio_of="ours/peer",
            goals=(Goal(">=", _LEAST[kind]),),
        )
        for engine in ENGINES
        for kind in _JOBS
    ]
