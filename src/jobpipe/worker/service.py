"""Service: what runs jobs in this process. It starts and stops the runner and the heartbeat.

The web application and the worker command are built on it.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ..errors import SettingsError, StoreAwayError
from ..model.ids import slots_of
from ..model.text import did_you_mean
from .capture import OFF, Captures
from .failures import Failures, Hook
from .heartbeat import Heartbeat
from .isolation.address import isolated, warnings_of
from .isolation.answers import Answers
from .isolation.children import Children
from .maintenance import Maintenance
from .meters import Meters
from .runner import Runner

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ..gateway.lazy_store import Gateway, LazyStore
    from ..gateway.signals import Signals
    from ..gateway.throughput import Throughput
    from ..gateway.timetable import Timetable
    from ..gateway.tracing import Tracing
    from ..jobtypes.jobtype import JobType
    from ..model.counts import Counts
    from ..model.gate import Limit
    from ..settings import Settings
    from ..stores.base import Store

logger = logging.getLogger("jobpipe")

_LOOK_AGAIN = 1.0
"""Seconds between two attempts to reach a store that is away at the start."""
_LAST_WORD = 1.0
"""Seconds that `on_failure` may still take for jobs that were rescued at the end."""


class Service:
    """What runs in a process, as one thing with a start and a stop. `Jobpipe.make_service` makes it."""

    def __init__(
        self,
        lazy_store: LazyStore,
        settings: Settings,
        types: Mapping[str, JobType[..., Any]],
        schedules: Timetable,
        signals: Signals,
        throughput: Throughput,
        hooks: Sequence[Hook],
        *,
        register: Callable[[Service | None], None],
        queue_limits: Sequence[Limit] = (),
        tracing: Tracing | None = None,
        address: str | None = None,
    ) -> None:
        self.meters = Meters()
        self.is_stopping = False
        """Does it take no more jobs?"""
        self.is_started = False
        self.is_ended = False
        self._lazy_store = lazy_store
        self._settings = settings
        self.types = _chosen(types, settings.types)
        """Those whose jobs it runs, where they are on."""
        self._isolated = isolated(self.types, settings.isolate, address) if settings.workers else {}
        self._queue_limits = queue_limits
        self._tracing = tracing
        self._schedules = schedules
        self._signals = signals
        self._throughput = throughput
        self._hooks = hooks
        self._register = register  # RuntimeError where another one runs the jobs of the same pipe
        self._has_store = True  # as far as the last probe knew
        self._captures = Captures(settings.job_logs)
        self.runner: Runner | None = None
        self._failures: Failures | None = None
        self._heartbeat: Heartbeat | None = None
        self._heartbeat_store: Store | None = None

    async def start(self) -> None:
        """Open the store and begin to run jobs."""
        self._register(self)
        try:
            await self._start()
        except BaseException:
            self._captures.stop()
            self._register(None)
            raise
        self.is_started = True

    async def _start(self) -> None:
        if self._lazy_store.substitute is not None:
            return  # Why: within `pipe.testing()` nothing runs by itself
        gateway = await asyncio.to_thread(self._opened)
        self._failures = Failures(gateway, self._hooks)
        if self._settings.workers:
            self.runner = Runner(
                gateway,
                self.types,
                self._signals,
                self.meters,
                self._failures,
                slots=self._settings.workers,
                lease=self._settings.lease,
                queues=slots_of(self._settings.queues),
                except_queues=self._settings.except_queues,
                queue_limits=self._queue_limits,
                tracing=self._tracing,
                keeps_logs=self._captures.mode != OFF,
                max_result=self._settings.max_payload,
                children=self._children(gateway),
            )
            for warning in warnings_of(self.types, self._isolated):
                logger.warning(warning)
            self._captures.start()
            await self.runner.start()
        self._heartbeat_store = gateway.store.sibling()
        self._heartbeat = Heartbeat(self.maintenance(self._heartbeat_store), self.runner)
        self._heartbeat.start()

    def _children(self, gateway: Gateway) -> Children | None:
        """The processes for the types that have some of their own."""
        if not self._isolated:
            return None
        capabilities = gateway.store.capabilities
        return Children(self._isolated, self._settings, capabilities, Answers(gateway, self._signals))

    def _opened(self) -> Gateway:
        gateway = self._lazy_store()
        self._schedules.register(gateway.store)
        return gateway

    def maintenance(self, store: Store) -> Maintenance:
        """What its heartbeat does, with a handle on the store for it alone."""
        return Maintenance(
            store,
            self.runner,
            lease=self._settings.lease,
            keep=self._settings.keep,
            keep_failed=self._settings.keep_failed,
            tick=self._schedules.tick,
            on_counts=self._on_counts,
            on_failed=None if self._failures is None else self._failures.after_rescue,
        )

    def _on_counts(self, counts: Counts) -> None:
        self._captures.renew()
        self._throughput.note(counts)
        self.meters.forget_others(
            {each.queue for each in counts.tallies}, {each.type for each in counts.tallies}
        )

    async def start_when_possible(self, stop: asyncio.Event) -> bool:
        """Start as soon as the store is there; False if the stop came before."""
        is_away = False
        while not stop.is_set():
            try:
                await self.start()
            except StoreAwayError as error:
                if not is_away:
                    logger.warning("the store is away, and waited for: %s", error)
                is_away = True
            else:
                return True
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_AGAIN):
                    await stop.wait()
        return False

    async def is_ready(self) -> bool:
        """Started, not stopping, and the store answers?"""
        if not self.is_started or self.is_stopping:
            return False
        try:
            await self._lazy_store().probe()
        except Exception as error:
            if self._has_store:  # Why once: probes come every second
                logger.warning("not ready: %s", error)
            self._has_store = False
            return False
        if not self._has_store:
            logger.info("ready again: the store answers")
        self._has_store = True
        return True

    def begin_stop(self) -> None:
        """Take no more jobs from now on; `stop` does the rest."""
        self.is_stopping = True

    async def stop(self, grace: float | None = None) -> None:
        """Let running jobs end within the grace, give the rest back, and let go of the store."""
        self.begin_stop()
        try:
            if self.runner is not None:
                await self.runner.stop(self._settings.grace if grace is None else grace)
            if self._heartbeat is not None:
                await asyncio.to_thread(self._heartbeat.stop)
            if self._failures is not None:
                await self._failures.stop(_LAST_WORD)
            if self._heartbeat_store is not None:
                await asyncio.to_thread(self._heartbeat_store.close)
        finally:
            self._captures.stop()
            self.is_ended = True

    async def close(self) -> None:
        """Let go of the store: after the last read."""
        await asyncio.to_thread(self._lazy_store.close)


def _chosen(types: Mapping[str, JobType[..., Any]], names: Sequence[str]) -> Mapping[str, JobType[..., Any]]:
    """The types of these names; all without any."""
    for name in names:
        if name not in types:
            hint = did_you_mean(name, types) or f": it has {', '.join(sorted(types))}"
            raise SettingsError(
                "--types (JOBPIPE_TYPES)", f"names {name!r}, a type that the app does not have{hint}"
            )
    return {name: types[name] for name in names} if names else types
