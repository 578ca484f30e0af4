"""Jobs on a SQLite file, in one process: ours next to huey and litequeue, each at its best setting.

Processed: no-op jobs from the first enqueue, in batches of 1,000, until the store shows nothing outstanding; ours with
leases, attempts, history and fencing on. Enqueued: the same batches, with nobody to run them.

huey runs one thread in this process and commits durably, as ours does. litequeue is bare: this thread pops and marks
as done, one by one; its commits are not durable (`synchronous = NORMAL`), as it comes. Both get a transaction a batch.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

from .disk import scratch
from .harness import Case, Goal, expect
from .processing import BATCH, LOOK, batches, enqueued, processed


def cases(*, quick: bool) -> list[Case]:
    ours, theirs = (5_000, 2_000) if quick else (20_000, 4_000)
    processed: dict[str, Callable[[], float]] = {
        "huey": partial(_in_scratch, _huey_processed, theirs),
        "litequeue": partial(_in_scratch, _litequeue_processed, theirs),
    }
    enqueued: dict[str, Callable[[], float]] = {
        "huey": partial(_in_scratch, _huey_enqueued, ours),
        "litequeue": partial(_in_scratch, _litequeue_enqueued, ours),
    }
    return [
        *(
            Case(
                name="sqlite",
                row=f"processed, next to {name}",
                shows="no-op jobs a second on a SQLite file, until nothing is outstanding in it",
                unit="/s",
                ours=partial(_in_scratch, _processed, ours),
                peer=peer,
                peer_name=name,
                ratio_of="ours/peer",
                goals=(Goal(">=", 3),),
            )
            for name, peer in processed.items()
        ),
        *(
            Case(
                name="sqlite",
                row=f"enqueued, next to {name}",
                shows=f"jobs a second put into a SQLite file in batches of {BATCH:,}",
                unit="/s",
                ours=partial(_in_scratch, _enqueued, ours),
                peer=peer,
                peer_name=name,
                ratio_of="ours/peer",
                goals=(Goal(">=", 1),),
            )
            for name, peer in enqueued.items()
        ),
    ]


def _in_scratch(measure: Callable[[Path, int], float], n: int) -> float:
    with scratch() as folder:
        return measure(folder / "bench.db", n)


# Ours


def _processed(path: Path, n: int) -> float:
    return processed(f"sqlite:///{path}", n)


def _enqueued(path: Path, n: int) -> float:
    return enqueued(f"sqlite:///{path}", n)


# huey


def _huey_processed(path: Path, n: int) -> float:
    """Tasks a second."""
    from .peers_huey import HueyQueue

    have_run = threading.Event()
    runs = count(1)

    def noop(payload: Any) -> None:
        if next(runs) == n:
            have_run.set()

    queue = HueyQueue(path, noop)
    with queue.running():
        began = perf_counter()
        for payloads in batches(n):
            queue.put_many(payloads)
        have_run.wait()
        while queue.waiting:
            sleep(LOOK)
        took = perf_counter() - began
    queue.close()
    return n / took


def _huey_enqueued(path: Path, n: int) -> float:
    """Tasks a second."""
    from .peers_huey import HueyQueue

    queue = HueyQueue(path, lambda payload: None)
    began = perf_counter()
    for payloads in batches(n):
        queue.put_many(payloads)
    took = perf_counter() - began
    expect(queue.waiting, n, "tasks waiting")
    queue.close()
    return n / took


# litequeue


def _litequeue_processed(path: Path, n: int) -> float:
    """Messages a second."""
    queue = _litequeue(path)
    done = 0
    began = perf_counter()
    _put_all(queue, n)
    while (message := queue.pop()) is not None:
        queue.done(message.message_id)
        done += 1
    took = perf_counter() - began
    queue.close()
    expect(done, n, "messages done")
    return n / took


def _litequeue_enqueued(path: Path, n: int) -> float:
    """Messages a second."""
    queue = _litequeue(path)
    began = perf_counter()
    _put_all(queue, n)
    took = perf_counter() - began
    expect(queue.qsize(), n, "messages waiting")
    queue.close()
    return n / took


def _litequeue(path: Path) -> Any:
    from litequeue import LiteQueue

    return LiteQueue(path)


def _put_all(queue: Any, n: int) -> None:
    for payloads in batches(n):
        with queue.transaction():
            for payload in payloads:
                queue.put(f'{{"n": {payload["n"]}}}')
