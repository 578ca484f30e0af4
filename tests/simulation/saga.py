"""Saga: a job of steps, sleeps and waits, in the order that its payload says; its runs tell all that they see."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any

from msgspec import Struct, json

from jobpipe import LeaseLostError, SignalTimeout, current_job

from .recorded import Recorded


class Part(Struct, frozen=True):
    """One thing to do: a `step`, also in a `thread` or as a `pair` side by side, a `sleep` or a `wait`."""

    kind: str
    seconds: float | None
    """That it takes, or at most takes."""


class Saga(Struct, frozen=True):
    """A payload: the parts, and where each run comes to what: the first, the second … and every further one."""

    parts: list[Part]
    turn: int
    fates: list[str]

    def waits(self) -> list[str]:
        """The signals that it waits for."""
        return [name_of(number) for number, part in enumerate(self.parts) if part.kind == "wait"]


def name_of(number: int) -> str:
    return f"p{number}"


class Steps:
    """The durable calls of one run."""

    def __init__(self, recorded: Recorded, chance: Random, falter: Callable[[str], object]) -> None:
        self._job = current_job()
        self._lease = self._job._claim.lease
        self._recorded = recorded
        self._chance = chance
        self._falter = falter

    async def do(self, part: Part, name: str) -> None:
        """Do it, or get what came of it before."""
        try:
            await getattr(self, f"_{part.kind}")(name, part.seconds)
        except LeaseLostError:
            self._recorded.lose(self._lease)
            await self._step(f"{name}.again", 0.0)  # it does not take no for an answer, and gets it again

    async def _step(self, name: str, seconds: float) -> None:
        self._returned(name, await self._job.step(name, self._act, name, seconds))

    async def _thread(self, name: str, seconds: float) -> None:
        self._returned(name, await self._job.step(name, self._begin, name))

    async def _pair(self, name: str, seconds: float) -> None:
        names = [f"{name}.{place}" for place in "ab"]
        await asyncio.gather(*(self._step(each, seconds) for each in names))

    async def _sleep(self, name: str, seconds: float) -> None:
        await self._job.sleep(name, seconds)

    async def _wait(self, name: str, seconds: float | None) -> None:
        try:
            payload = await self._job.wait_for(name, seconds)
        except SignalTimeout:
            self._recorded.received(self._lease, name)
        else:
            self._recorded.received(self._lease, name, payload)

    async def _act(self, name: str, seconds: float) -> float:
        result = self._begin(name)
        await asyncio.sleep(seconds)
        return result

    def _begin(self, name: str) -> float:
        self._recorded.call(self._lease, name)
        self._falter(self._lease.worker)
        return self._chance.random()

    def _returned(self, name: str, value: Any) -> None:
        self._recorded.returned(self._lease, name, json.encode(value))


def saga_of(chance: Random) -> Saga:
    """Any saga. Why the last fate is mostly good: with every sleep and wait there is a run more."""
    parts = [_part_of(chance) for _ in range(chance.randint(1, 5))]
    fates = [chance.choice(("ok", "ok", "boom", "retry", "snooze")) for _ in range(2)]
    return Saga(parts, chance.randint(0, len(parts)), [*fates, chance.choice(("ok", "ok", "ok", "boom"))])


def _part_of(chance: Random) -> Part:
    kind = chance.choice(("step", "thread", "pair", "sleep", "sleep", "wait", "wait"))
    longest = chance.choice({"sleep": (0.0, 0.5, 3.0), "wait": (0.3, 2.0, None)}.get(kind, (0.0, 0.02, 0.5)))
    return Part(kind, None if longest is None else round(longest * chance.random(), 3))
