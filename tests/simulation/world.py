"""World: one virtual clock, one seeded source of chance, and everything that is to happen, in one thread.

What happens at the same instant happens in an order that chance decides; the same seed is the same life, to the
last step. The clock is that of the store, in seconds since the epoch: what simulated processes take for the time
is their own affair.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count

BEGIN = 1_800_000_000.0


class Violation(AssertionError):
    """A promise was broken."""


class World:
    """The agenda, and what there is to tell of it."""

    def __init__(self, seed: int, *, keeps_trace: bool = False) -> None:
        self.seed = seed
        self.now = BEGIN
        self.chance = random.Random(seed)
        self.steps = 0
        self.trace: list[str] = []
        self._keeps_trace = keeps_trace
        self._digest = hashlib.sha256()
        self._numbers = count()
        self._agenda: list[tuple[float, float, int, Callable[[], object]]] = []

    def clock(self) -> float:
        """The time, as the store has it."""
        return self.now

    def after(self, seconds: float, action: Callable[[], object]) -> None:
        """Let it happen in so many seconds."""
        when = self.now + max(seconds, 0.0)
        heappush(self._agenda, (when, self.chance.random(), next(self._numbers), action))

    def run(self, is_over: Callable[[], bool], until: float) -> bool:
        """Let happen what is to happen; False if the time came before it was over."""
        while not is_over():
            if not self._agenda or self._agenda[0][0] > until:
                self.now = until
                return is_over()
            self.now, _, _, action = heappop(self._agenda)
            self.steps += 1
            action()
        return True

    def tell(self, who: str, what: str) -> None:
        """Note what happened; two lives are the same if they have the same to tell."""
        line = f"{self.now - BEGIN:10.4f}  {who:8} {what}"
        self._digest.update(line.encode())
        if self._keeps_trace:
            self.trace.append(line)

    @property
    def digest(self) -> str:
        """Of all that was told."""
        return self._digest.hexdigest()[:16]

    def is_chosen(self, probability: float) -> bool:
        return self.chance.random() < probability
