"""A process that puts jobs in, one after the other, until it is killed: `python -m tests.histories.producer`.

It writes down what it is about to send, and what was accepted. An answer that does not come is asked for again with
the same id, as long as it takes.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any, NamedTuple

import httpx

from jobpipe import JobNotFoundError, SignalRefusedError, StoreAwayError, WrongStatusError

from .app import APPROVED, SAGAS, pipe
from .record import SENT, SIGNALS, write_line

PAUSE = 0.02
PATIENCE = 3.0
"""Seconds that an answer over HTTP may take."""
_KEYS = ("ann", "bob", "cid")

Job = dict[str, Any]


class Calls(NamedTuple):
    """What a producer calls; None as the answer if it has to be asked again."""

    send: Callable[[Job], str | None]
    """Put a job in: the id that it has."""
    signal: Callable[[str, str], bool | None]
    """Send a signal to the job: was it accepted?"""
    cancel: Callable[[str], bool | None] | None = None
    """Is it, or will it be?"""


def made_up_job(rng: random.Random, id: str) -> Job:
    """One of all the kinds there are."""
    others = ["thread", "flaky", "paced", "bursty", "few", "alone", "solo", "solo", *SAGAS, *SAGAS]
    type = rng.choice(["quick"] * 4 + ["slow"] * 3 + others)
    payloads: dict[str, Callable[[], Any]] = {
        "slow": lambda: round(rng.uniform(0.1, 2.0), 2),
        "thread": lambda: round(rng.uniform(0, 0.1), 2),
        "flaky": lambda: rng.randrange(5),
        "few": lambda: round(rng.uniform(0.02, 0.2), 2),
        "solo": lambda: {"seconds": round(rng.uniform(0, 0.1), 2), "failures": rng.randrange(2)},
        "alone": lambda: {"key": rng.choice(_KEYS), "seconds": round(rng.uniform(0, 0.1), 2)},
        **dict.fromkeys(SAGAS, lambda: _saga(rng)),
    }
    job: Job = {"id": id, "type": type, "payload": payloads.get(type, lambda: id)()}
    job["max_retries"] = rng.choice((0, 1, 3, 3, 6))
    job["priority"] = rng.choice((0, 0, 0, 5))
    if type == "solo":
        job |= {"unique": rng.choice(_KEYS), "on_duplicate": rng.choice(("keep", "replace", "restart"))}
    if rng.random() < 0.2:
        job["delay"] = round(rng.uniform(0.05, 1.0), 2)
    return job


def _saga(rng: random.Random) -> dict[str, Any]:
    """How long its first step, its sleep and its wait are; one of three waits for ever."""
    return {
        "seconds": round(rng.uniform(0, 0.3), 2),
        "sleep": round(rng.uniform(0, 1.0), 2),
        "timeout": rng.choice((None, round(rng.uniform(0, 1.0), 2), round(rng.uniform(0, 3.0), 2))),
    }


class Signals:
    """Those that are to be sent: none for some jobs, some for others, at once or later, also with other content."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._planned: list[tuple[float, str, str]] = []

    def plan(self, id: str) -> None:
        for _ in range(self._rng.choice((0, 1, 1, 2, 3))):
            at = time.monotonic() + self._rng.choice((0.0, self._rng.uniform(0, 3.0)))
            heappush(self._planned, (at, id, self._rng.choice(("yes", "yes", "no"))))

    def send_due(self, signal: Callable[[str, str], bool | None]) -> None:
        while self._planned and self._planned[0][0] <= time.monotonic():
            _, id, payload = heappop(self._planned)
            note = {"id": id, "name": APPROVED, "payload": payload}
            write_line(SIGNALS, **note)
            while (is_accepted := signal(id, payload)) is None:
                time.sleep(PAUSE)
            write_line(SIGNALS, **note, how="accepted" if is_accepted else "refused")


def produce(name: str, rng: random.Random, calls: Calls) -> None:
    """Until the end of time."""
    send, cancel = calls.send, calls.cancel
    signals = Signals(rng)
    number = 0
    while True:
        number += 1
        signals.send_due(calls.signal)
        job = made_up_job(rng, f"{name}-{number}")
        write_line(
            SENT,
            what="sent",
            id=job["id"],
            type=job["type"],
            max_retries=job["max_retries"],
            not_before=time.time() + job.get("delay", 0),
            key=job["payload"]["key"] if job["type"] == "alone" else "",
            unique=job.get("unique", ""),
        )
        while (id := send(job)) is None:
            time.sleep(PAUSE)
        write_line(SENT, what="accepted", id=id)
        if job["type"] in SAGAS:
            signals.plan(id)
        if cancel is not None and id == job["id"] and rng.random() < 0.05:
            while (is_cancelled := cancel(job["id"])) is None:
                time.sleep(PAUSE)
            if is_cancelled:
                write_line(SENT, what="cancelled", id=job["id"])
        time.sleep(rng.uniform(0, 2 * PAUSE))


def send_from_python(job: Job) -> str | None:
    """As any program does that has the store's URL."""
    names = ("id", "max_retries", "priority", "delay", "unique", "on_duplicate")
    options = {name: job[name] for name in names if name in job}
    try:
        return pipe.enqueue_sync(job["type"], job["payload"], **options).id
    except StoreAwayError:
        return None


def signal_from_python(id: str, payload: str) -> bool | None:
    try:
        pipe.signal_sync(id, APPROVED, payload)
    except StoreAwayError:
        return None
    except (SignalRefusedError, WrongStatusError, JobNotFoundError):
        return False
    return True


class Caller:
    """As any client of the HTTP API does."""

    def __init__(self, url: str) -> None:
        self._http = httpx.Client(verify=False, base_url=url, timeout=PATIENCE)

    def send(self, job: Job) -> str | None:
        answer = self._post("/enqueue", job)
        assert answer is None or answer.status_code in (200, 202), answer.text
        return None if answer is None else str(answer.json()["id"])

    def signal(self, id: str, payload: str) -> bool | None:
        answer = self._post(f"/jobs/{id}/signals/{APPROVED}", payload)
        assert answer is None or answer.status_code in (200, 202, 404, 409), answer.text
        return None if answer is None else answer.status_code < 300

    def cancel(self, id: str) -> bool | None:
        answer = self._post(f"/jobs/{id}/cancel")
        assert answer is None or answer.status_code in (200, 409), answer.text
        return None if answer is None else answer.status_code == 200

    def _post(self, path: str, job: Job | str | None = None) -> httpx.Response | None:
        try:
            answer = self._http.post(path, json=job)
        except httpx.TransportError:
            return None
        return None if answer.status_code == 503 else answer


def main(name: str, seed: str, url: str = "") -> None:
    rng = random.Random(seed)
    if url:
        caller = Caller(url)
        produce(name, rng, Calls(caller.send, caller.signal, caller.cancel))
    else:
        produce(name, rng, Calls(send_from_python, signal_from_python))


if __name__ == "__main__":
    main(*sys.argv[1:])
