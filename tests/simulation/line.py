"""Line: the store as one simulated process reaches it, through the weather."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

from jobpipe.errors import StoreAwayError
from jobpipe.stores.base import Capabilities, Schedules

from .weather import FAIR, Weather
from .witness import Witness


class Line:
    """Looks like a store. Where it is cut, nothing was done, or it was done and nobody heard of it."""

    url = "memory://"
    # Why not shared: then nobody tells of what others put in, as if each such wake-up were lost.
    capabilities = Capabilities(durable=False, shared=False, transactional=False, push=True, blocking=True)

    def __init__(self) -> None:
        self._witness: Witness | None = None
        self._chance = Random(0)
        self._weather = FAIR
        self._seen: Schedules | None = None
        self.is_cut = False
        self.on_death: Callable[[], object] = lambda: None
        """Called when a call is fatal for the process that makes it."""

    def connect(self, witness: Witness, chance: Random) -> None:
        """Lead to another store."""
        self._witness, self._chance, self._seen, self.is_cut = witness, chance, None, False

    def expose(self, weather: Weather) -> None:
        self._weather = weather

    def fail(self, problem: str) -> None:
        """Tell who watches over the promises."""
        assert self._witness is not None
        self._witness.fail(problem)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(name)
        return partial(self._call, name)

    def migrate(self) -> list[str]:
        return []

    def close(self) -> None:
        pass

    def schedules(self) -> Schedules:
        """What there is, or what there was when it was last asked."""
        stale = self._weather.stale
        if self._seen is None or not stale or self._chance.random() >= stale:
            seen: Schedules = self._call("schedules")
            self._seen = seen
        return self._seen

    def _call(self, verb: str, *args: Any, **kwargs: Any) -> Any:
        weather, draw = self._weather, self._chance.random()
        if self._witness is None or self.is_cut or draw < weather.away:
            raise StoreAwayError("the store cannot be reached")
        is_fatal = draw > 1.0 - weather.fatal
        if is_fatal and self._chance.random() < 0.5:
            self.on_death()
            raise StoreAwayError("nobody is there to call it")
        answer = getattr(self._witness, verb)(*args, **kwargs)
        if is_fatal:
            self.on_death()
        if draw < weather.away + weather.lost:
            raise StoreAwayError("the reply was lost")
        return answer
