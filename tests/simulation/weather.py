"""Weather: which faults there are in one life, how likely, and how long things take.

Each seed has some kinds of faults and not others, so that each kind is also met without the others in its way.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random


@dataclass(frozen=True, slots=True)
class Weather:
    """Probabilities; those of `crash`, `pause`, `stop`, `outage` and `cancel` are relative to each other."""

    away: float = 0.0
    """A call does not reach the store."""
    lost: float = 0.0
    """It does, and the reply is lost."""
    slow: float = 0.0
    """A request, a reply or a word from thread to thread is on its way for long: others overtake it."""
    stale: float = 0.0
    """A process acts on what it read a while ago."""
    crash: float = 0.0
    pause: float = 0.0
    """All of a process stands still, perhaps for longer than its leases last."""
    outage: float = 0.0
    """Nobody reaches the store for a while."""
    stop: float = 0.0
    """A process is stopped gracefully, and started again."""
    block: float = 0.0
    """A handler blocks the event loop of its process."""
    skew: float = 0.0
    """The clocks of a process run too fast or too slow."""
    cancel: float = 0.0
    """Somebody cancels a job, or runs it again."""
    fatal: float = 0.0
    """A process dies right before, or right after, a call of the store."""

    @property
    def is_gentle(self) -> bool:
        """Can no lease run out?"""
        harms = (self.away, self.lost, self.slow, self.crash, self.pause, self.outage, self.skew, self.fatal)
        return not any(harms)

    def travel(self, chance: Random) -> float:
        """How long something is on its way."""
        if self.slow and chance.random() < self.slow:
            return chance.choice((0.05, 0.3, 2.0)) * chance.random()
        return 0.003 * chance.random()

    def speed(self, chance: Random) -> float:
        """Of the clocks of a process."""
        if self.skew and chance.random() < self.skew:
            return chance.choice((0.2, 0.5, 0.9, 1.1, 2.0, 5.0))
        return 1.0


FAIR = Weather()

_KINDS = {
    "away": 0.05,
    "lost": 0.05,
    "slow": 0.1,
    "stale": 0.5,
    "crash": 1.0,
    "pause": 1.0,
    "outage": 0.3,
    "stop": 1.0,
    "block": 0.2,
    "skew": 0.5,
    "cancel": 1.0,
    "fatal": 0.02,
}
_GENTLE = ("stale", "stop", "block", "cancel")


def weather_of(chance: Random) -> Weather:
    """Each kind is there in half of the lives; every tenth has gentle ones only."""
    kinds = _GENTLE if chance.random() < 0.1 else tuple(_KINDS)
    return Weather(**{kind: _KINDS[kind] * (chance.random() < 0.5) for kind in kinds})
