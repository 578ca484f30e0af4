"""Steps, suspensions and signals, as the tests of the contract make them."""

from __future__ import annotations

from typing import Any

from ...model.durable import NO_TIMEOUT, DurableState, JobSignal, SignalAnswer, Step
from ...model.job import Move
from ...model.json import encode, fingerprint
from ...model.lease import Claim, Outcome, Settlement
from ...stores.base import Store

AT = 1_800_000_000.25


def step(name: str, result: Any = None) -> Step:
    """A step as the runner makes it."""
    return Step(name=name, began_at=AT, ended_at=AT + 0.5, result=encode(result))


def record(store: Store, claim: Claim, *names: str) -> list[bool]:
    return store.write_steps([(claim.lease, step(name, name)) for name in names])


def sleep(store: Store, claim: Claim, name: str = "nap", seconds: float = 60) -> bool:
    """Suspend a run for a time."""
    return store.settle(
        [Settlement(claim.lease, Outcome(move=Move.SLEEP, name=name, delay=seconds))],
    )[0]


def wait(store: Store, claim: Claim, name: str = "go", seconds: float = NO_TIMEOUT) -> bool:
    """Suspend a run until a signal comes."""
    return store.settle([Settlement(claim.lease, Outcome(move=Move.WAIT, name=name, delay=seconds))])[0]


def signal_of(name: str = "go", payload: Any = None) -> JobSignal:
    raw = encode(payload)
    return JobSignal(name=name, payload=raw, fingerprint=fingerprint(raw))


def send(store: Store, id: str = "a", name: str = "go", payload: Any = None) -> SignalAnswer | None:
    return store.signal(id, signal_of(name, payload))


def state(store: Store, id: str = "a") -> DurableState:
    found = store.durable(id)
    assert found is not None, f"there is no job {id}"
    return found


def step_names(store: Store, id: str = "a") -> list[str]:
    return [each.name for each in state(store, id).steps]
