"""Timetable: the schedules of a pipe: those that the program declares, and those that are put in while it runs.

Every process that serves or works calls `tick`; the store lets one of them put in the job of a tick.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType, json

from ..errors import (
    BadInputError,
    JobpipeError,
    QueueFullError,
    ScheduleNotFoundError,
    StoreError,
    seconds_of,
)
from ..failpoints import reach
from ..model.admission import Bounds
from ..model.ids import check_name, check_text
from ..model.job import instant
from ..model.newjob import NewJob, Receipt
from ..model.request import JobRequest, Name, convert, given_fields
from ..model.schedule import (
    LONGEST,
    SHORTEST,
    Missed,
    ScheduleEntry,
    Schedules,
    Timing,
    following,
    is_missed,
    next_from,
    placed,
    preview,
    tick_id,
)
from ..stores.base import ScheduleStore
from .async_store import unwrap
from .lazy_store import Gateway
from .signals import Signals
from .sync import in_thread, sync

logger = logging.getLogger("jobpipe")

Expression = Annotated[str, Meta(max_length=200, extra_json_schema={"format": "cron"})]
Zone = Annotated[str, Meta(max_length=100, extra_json_schema={"format": "time-zone"})]
if TYPE_CHECKING:
    Interval = float | timedelta
else:
    Interval = Annotated[float, Meta(extra_json_schema={"minimum": SHORTEST, "maximum": LONGEST})]


class ScheduleRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A schedule to create: a tick `every` number of seconds, or by `cron` in the time zone `tz`."""

    type: Name
    payload: Any = None
    queue: Name | UnsetType = UNSET
    every: Interval | UnsetType = UNSET
    cron: Expression | UnsetType = UNSET
    tz: Zone | UnsetType = UNSET
    missed: Missed = Missed.ONE
    paused: bool | UnsetType = UNSET
    """If it is not given, it stays unchanged."""


class ScheduleInfo(Struct, frozen=True, kw_only=True):
    """A schedule with its next five ticks; it has none while it is paused."""

    name: str
    type: str
    queue: str
    payload: Any
    every: float | None
    cron: str | None
    tz: str | None
    missed: Missed
    next_at: list[datetime]
    last_at: datetime | None
    """The last tick that enqueued a job."""
    last_job: str | None
    paused: bool = False


class Timetable:
    """The schedules of one pipe."""

    def __init__(
        self,
        gateway: Callable[[], Gateway],
        prepare: Callable[[JobRequest], NewJob],
        capacity: Callable[[], int],
        signals: Signals,
    ) -> None:
        self._gateway = gateway
        self._prepare = prepare
        self._capacity = capacity
        self._signals = signals
        self._declared: dict[str, ScheduleRequest] = {}
        self._is_broken: set[str] = set()
        """The schedules in the store of which the log has said that nobody can read them."""

    def declare(self, name: str, request: ScheduleRequest) -> None:
        """A schedule of the program itself: put in when the program begins to serve or to work."""
        self.check(name, request)
        self._declared[name] = request

    def check(self, name: str, request: ScheduleRequest) -> None:
        """BadInputError unless it can be declared."""
        if check_name("name", name) in self._declared:
            raise BadInputError("name", f"{name!r} is taken by another schedule: names must be unique")
        _timing(request)

    def register(self, store: ScheduleStore) -> None:
        """Put in what the program declares; what is there already keeps its ticks."""
        for name, request in self._declared.items():
            self._put(store, name, request)

    async def put(self, name: str, request: ScheduleRequest) -> ScheduleInfo:
        """Create or change a schedule; BadInputError naming the field."""
        if not isinstance(request, ScheduleRequest):
            raise BadInputError("request", f"must be a ScheduleRequest, got {request!r}")
        checked: ScheduleRequest = convert(given_fields(request), ScheduleRequest)
        check_name("name", name)
        # Why in a thread: that an expression never fires may take seconds to find.
        await in_thread(_timing, checked)
        return info_of(await self._call(self._put, name, checked))

    async def all(self) -> list[ScheduleInfo]:
        """All schedules, by name."""
        found: list[ScheduleInfo] = await self._call(
            lambda store: [info_of(entry) for entry in store.schedules().entries]
        )
        return found

    async def get(self, name: str) -> ScheduleInfo:
        """One schedule; ScheduleNotFoundError."""
        return info_of(await self._call(_entry, name))

    async def drop(self, name: str) -> None:
        """Delete a schedule; ScheduleNotFoundError. Its jobs stay."""
        check_text("name", name)
        if not await self._call(lambda store: store.drop_schedule(name)):
            raise ScheduleNotFoundError(name)

    async def pause(self, name: str) -> ScheduleInfo:
        """Pause a schedule: no tick fires until it is resumed; `run` still works. ScheduleNotFoundError."""
        return info_of(await self._call(_pause, name))

    async def resume(self, name: str) -> ScheduleInfo:
        """Resume a schedule with its next tick from now; ticks during the pause do not count as missed."""
        return info_of(await self._call(_resume, name))

    async def run(self, name: str, bounds: Bounds | None = None) -> Receipt:
        """Enqueue its job now, in addition to its ticks."""
        entry = await self._call(_entry, name)
        request = JobRequest(type=entry.type, payload=json.decode(entry.payload), queue=entry.queue)
        return unwrap(await self._gateway().async_store.insert([self._prepare(request)], bounds))[0]

    put_sync = sync(put)
    all_sync = sync(all)  # noqa: A003
    get_sync = sync(get)
    drop_sync = sync(drop)
    pause_sync = sync(pause)
    resume_sync = sync(resume)
    run_sync = sync(run)

    def tick(self, store: ScheduleStore) -> float | None:
        """Put in the jobs of all ticks that are due; in how many seconds the next one is."""
        found = store.schedules()
        next_at = [
            upcoming
            for entry in found.entries
            if not entry.is_paused and (upcoming := self._upcoming(store, entry, found.now)) is not None
        ]
        return max(min(next_at) - found.now, 0.0) if next_at else None

    def _upcoming(self, store: ScheduleStore, entry: ScheduleEntry, now: float) -> float | None:
        """Its next tick, after the one that is due, if one is; None for one that stays due, to be tried again."""
        if entry.next_at > now:
            return entry.next_at
        try:
            next_at = following(entry, now)
            return next_at if self._fire(store, entry, next_at, now) else None
        except StoreError:
            raise
        except Exception as error:  # Why: what somebody else put into the store must not stop the others
            if entry.name not in self._is_broken:
                self._is_broken.add(entry.name)
                logger.error("schedule %s in the store is invalid and does not run: %s", entry.name, error)
            return None

    def _fire(self, store: ScheduleStore, entry: ScheduleEntry, next_at: float, now: float) -> bool:
        """False if there was no room for the job."""
        job = None if is_missed(entry, now) else self._job(entry)
        reach("tick-before")
        answer = store.fire_tick(entry.name, entry.next_at, next_at, job, capacity=self._capacity())
        if isinstance(answer, QueueFullError):
            return False
        if isinstance(answer, JobpipeError):
            logger.error("skipped a tick of schedule %s: %s", entry.name, answer)
            store.fire_tick(entry.name, entry.next_at, next_at, None)
        elif answer is not None:
            reach("tick-after")
            self._signals.notify_work()
        return True

    def _job(self, entry: ScheduleEntry) -> NewJob | None:
        """The job of its next tick; None, and a line in the log, if the type would not take it any more."""
        try:
            return self._prepare(
                JobRequest(
                    id=tick_id(entry.name, entry.next_at),
                    type=entry.type,
                    queue=entry.queue,
                    payload=json.decode(entry.payload),
                )
            )
        except BadInputError as error:
            logger.error("schedule %s cannot enqueue its job: %s", entry.name, error)
            return None

    def _put(self, store: ScheduleStore, name: str, request: ScheduleRequest) -> ScheduleEntry:
        timing = _timing(request)
        job = self._prepare(JobRequest(type=request.type, queue=request.queue, payload=request.payload))
        entry = ScheduleEntry(
            name=name,
            type=job.type,
            queue=job.queue,
            payload=job.payload,
            every=timing.every,
            cron=timing.cron,
            tz=timing.tz,
            missed=request.missed,
            is_paused=request.paused is True,
        )
        made = store.put_schedule(placed(entry, store.schedules().now))
        return _resume(store, name) if made.is_paused and request.paused is False else made

    async def _call(self, verb: Callable[..., Any], *args: Any) -> Any:
        store, async_store, _ = self._gateway()
        return await async_store.call(verb, store, *args)


def _timing(request: ScheduleRequest) -> Timing:
    every = None if request.every is UNSET else seconds_of("every", request.every)
    cron = None if request.cron is UNSET else request.cron
    tz = None if request.tz is UNSET else request.tz
    return Timing(every=every, cron=cron, tz="UTC" if cron is not None and tz is None else tz)


def _entry(store: ScheduleStore, name: str) -> ScheduleEntry:
    return _named(store.schedules(), name)


def _named(found: Schedules, name: str) -> ScheduleEntry:
    for entry in found.entries:
        if entry.name == name:
            return entry
    raise ScheduleNotFoundError(name)


def _pause(store: ScheduleStore, name: str) -> ScheduleEntry:
    store.pause_schedule(check_text("name", name))
    return _entry(store, name)


def _resume(store: ScheduleStore, name: str) -> ScheduleEntry:
    """Again, if others have changed its ticks between the look and the step."""
    while True:
        found = store.schedules()
        entry = _named(found, name)
        if not entry.is_paused:
            return entry
        store.resume_schedule(name, entry.next_at, next_from(entry, found.now))


def _next_at(entry: ScheduleEntry) -> list[datetime]:
    try:
        return preview(entry)
    except BadInputError:  # Why: one that only others can read must be seen all the same, and can be dropped
        return [instant(entry.next_at)]


def info_of(entry: ScheduleEntry) -> ScheduleInfo:
    """The entry as it is shown."""
    return ScheduleInfo(
        name=entry.name,
        type=entry.type,
        queue=entry.queue,
        payload=json.decode(entry.payload),
        every=entry.every,
        cron=entry.cron,
        tz=entry.tz,
        missed=entry.missed,
        next_at=[] if entry.is_paused else _next_at(entry),
        last_at=None if entry.last_at is None else instant(entry.last_at),
        last_job=entry.last_job,
        paused=entry.is_paused,
    )
