"""What limits cost where they do not bind: the same no-op jobs with and without, in one process."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from rate_envelope_queue import Rate

from .disk import scratch
from .harness import Case, Goal
from .processing import processed

_WIDE: dict[str, dict[str, Any]] = {
    "a rate and a concurrency": {"rate": Rate(10_000_000, burst=10_000_000), "concurrency": 100_000},
    "the same for each of ten keys": {
        "rate": Rate(10_000_000, burst=10_000_000),
        "concurrency": 100_000,
        "key": lambda payload: payload["n"] % 10,
    },
}


def cases(*, quick: bool) -> list[Case]:
    n = 5_000 if quick else 20_000
    stores: dict[str, Callable[..., float]] = {"memory": _on_memory, "SQLite": _on_sqlite}
    return [
        Case(
            name="limits",
            row=f"{store}, {limits}",
            shows="no-op jobs a second with limits that do not bind, next to none",
            unit="/s",
            ours=partial(measure, n, **options),
            peer=partial(measure, n),
            peer_name="no limits",
            ratio_of="ours/peer",
            goals=(Goal(">=", 0.9),),
        )
        for store, measure in stores.items()
        for limits, options in _WIDE.items()
    ]


def _on_memory(n: int, **options: Any) -> float:
    return processed("memory://", n, **options)


def _on_sqlite(n: int, **options: Any) -> float:
    with scratch() as folder:
        return processed(f"sqlite:///{folder}/bench.db", n, **options)
