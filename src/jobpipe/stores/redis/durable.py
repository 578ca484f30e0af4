"""What the server keeps of the steps, sleeps, waits and signals of jobs: as the scripts are told it, and read back."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from ...model.durable import DurableState, JobSignal, Sleep, Step, Wait


class _Step(Struct, array_like=True, gc=False):
    """A step as it is stored."""

    place: int
    """In the order in which they were recorded."""
    name: str
    began_at: float
    ended_at: float
    result: str


class _Sleep(Struct, array_like=True, tag="sleep", gc=False):
    name: str
    until: float


class _Wait(Struct, array_like=True, tag="wait", gc=False):
    name: str
    until: float
    is_timed_out: bool = False


class _Signal(Struct, array_like=True, tag="signal", gc=False):
    name: str
    payload: str
    fingerprint: str
    sent_at: float
    is_used: bool


class _State(Struct, array_like=True):
    """All of one job, in no order."""

    steps: list[_Step] = []
    entries: list[_Sleep | _Wait | _Signal] = []

    def look(self) -> DurableState:
        steps = sorted(self.steps, key=lambda each: each.place)
        entries = sorted(self.entries, key=lambda each: each.name)
        return DurableState(
            steps=tuple(_step_of(each) for each in steps),
            sleeps=tuple(
                Sleep(name=each.name, until=each.until) for each in entries if isinstance(each, _Sleep)
            ),
            waits=tuple(
                Wait(name=each.name, until=each.until, is_timed_out=each.is_timed_out)
                for each in entries
                if isinstance(each, _Wait)
            ),
            signals=tuple(_signal_of(each) for each in entries if isinstance(each, _Signal)),
        )


def _step_of(stored: _Step) -> Step:
    return Step(
        name=stored.name,
        began_at=stored.began_at,
        ended_at=stored.ended_at,
        result=stored.result.encode(),
    )


def _signal_of(stored: _Signal) -> JobSignal:
    return JobSignal(
        name=stored.name,
        payload=stored.payload.encode(),
        fingerprint=stored.fingerprint,
        sent_at=stored.sent_at,
        is_used=stored.is_used,
    )


_read_state = msgspec.msgpack.Decoder(_State).decode
_read_states = msgspec.msgpack.Decoder(list[_State]).decode


def state_of(packed: bytes) -> DurableState:
    """What durable_of.lua found."""
    return _read_state(packed).look()


def states_of(packed: bytes) -> list[DurableState | None]:
    """The same of several jobs; None for those of which nothing is recorded."""
    return [state.look() if state.steps or state.entries else None for state in _read_states(packed)]


def step_values(step: Step) -> tuple[Any, ...]:
    """What write_steps.lua keeps."""
    return step.name, step.began_at, step.ended_at, step.result.decode()


def state_values(state: DurableState | None) -> tuple[list[Any], list[Any]]:
    """What adopt.lua keeps: the steps, and the rest."""
    if state is None:
        return [], []
    rest = [
        *(_Sleep(each.name, each.until) for each in state.sleeps),
        *(_Wait(each.name, each.until, each.is_timed_out) for each in state.waits),
        *(
            _Signal(each.name, each.payload.decode(), each.fingerprint, each.sent_at, each.is_used)
            for each in state.signals
        ),
    ]
    return list(map(step_values, state.steps)), rest
