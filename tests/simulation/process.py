"""Process: one simulated process with the real runner and the real maintenance, and what may happen to it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from math import inf
from typing import Any

from jobpipe.errors import StoreAwayError
from jobpipe.worker.maintenance import Maintenance
from jobpipe.worker.meters import Meters
from jobpipe.worker.runner import Runner

from .loop import ProcessClock, ProcessLoop
from .program import Program
from .weather import Weather
from .world import World

GRACE = 0.5


class Process:
    """From its start to its crash or its stop; started again, it is another process with the same program."""

    def __init__(self, world: World, name: str, program: Program, weather: Weather, speed: float) -> None:
        self.name = name
        self.program = program
        self.is_up = True
        self.is_stopping = False
        self.speed = speed
        self._weather = weather
        self._is_gentle = weather.is_gentle
        self._world = world
        self._stopped_until = world.now
        self.loop = ProcessLoop(  # type: ignore[abstract]  # it has no sockets, pipes and signals
            world,
            speed=speed,
            travel=lambda: self._weather.travel(world.chance),
            on_error=self._complain,
        )
        self.runner: Runner | None = None
        self.fail: Callable[[str], object] = program.line.fail
        self._maintenance: Maintenance | None = None
        self.loop.start(self._begin(), "begin")

    @property
    def is_held(self) -> bool:
        """Does its loop do nothing, for now?"""
        return self.loop.held_until > self._world.now

    def expose(self, weather: Weather) -> None:
        self._weather = weather
        self.program.line.expose(weather)

    async def _begin(self) -> None:
        """What the service does at its start."""
        pipe = self.program.pipe
        while True:
            try:
                await pipe.async_store.call(pipe.schedules.register, pipe.store)
                break
            except StoreAwayError:
                await asyncio.sleep(1.0)
        slots, queues = self._world.chance.choice((1, 2, 4)), self.program.queues
        self.runner = Runner(
            pipe.gateway,
            pipe.types,
            pipe.signals,
            Meters(),
            slots=slots if queues is None else sum(queues.values()),
            queues=queues,
            queue_limits=pipe.queue.limits,
            lease=pipe.settings.lease,
            max_result=pipe.settings.max_payload,
            clock=ProcessClock(self.loop),
            name=self.name,
        )
        await self.runner.start()
        self._maintenance = Maintenance(
            pipe.store,
            self.runner,
            lease=pipe.settings.lease,
            keep=pipe.settings.keep,
            keep_failed=pipe.settings.keep_failed,
            tick=pipe.schedules.tick,
            on_counts=pipe.throughput.note,
        )
        self._maintenance.greet()
        self.runner.held.on_progress = self._keep_soon
        self._keep()

    # What the thread of the heartbeat does. Why not on the loop: a handler that blocks it must not hold this up.

    def _keep(self) -> None:
        if self._maintenance is None or not self.is_up:
            return
        if self._stopped_until > self._world.now:
            self._world.after(self._stopped_until - self._world.now, self._keep)
            return
        now = self.loop.time()
        again_at = self._maintenance.do(now)
        self._world.after(max(again_at - now, 0.01) / self.speed, self._keep)

    def _keep_soon(self) -> None:
        if self._maintenance is not None and self._stopped_until <= self._world.now:
            self._maintenance.do(self.loop.time())

    # What happens to it

    def crash(self) -> None:
        """It is no more: nothing of what it was about to do is done."""
        self._world.tell(self.name, "crashes")
        self.loop.is_dead = True
        self.loop.hold(inf)  # Why: it may die in the middle of a turn
        self._end()

    def pause(self, seconds: float) -> None:
        """All of it stands still, and then goes on as if nothing had been."""
        self._world.tell(self.name, f"stands still for {seconds:.3f} s")
        self.loop.hold(seconds)
        self._stopped_until = max(self._stopped_until, self._world.now + seconds)

    def stop(self) -> None:
        """Ask it to stop gracefully."""
        if not self.is_stopping and self.runner is not None:
            self._world.tell(self.name, "is asked to stop")
            self.is_stopping = True
            self.loop.start(self._stop(self.runner), "stop")

    async def _stop(self, runner: Runner) -> None:
        await runner.stop(GRACE)
        if self._maintenance is not None:
            self._maintenance.leave()
        self._world.tell(self.name, "has stopped")
        if runner.held.leases() and self._is_gentle:
            self.fail(f"{self.name} has stopped and still holds {len(runner.held.leases())} jobs")
        self._end()

    def _end(self) -> None:
        self.is_up = False
        self._maintenance = None
        for leave in self.runner._leave if self.runner is not None and not self.is_stopping else ():
            leave()

    def _complain(self, context: dict[str, Any]) -> None:
        if not self.loop.is_dead:
            self.fail(f"{self.name}: {context.get('message')}: {context.get('exception')!r}")
