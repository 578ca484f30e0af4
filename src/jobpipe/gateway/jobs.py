"""Jobs: what one can ask about jobs in a store, and do to them; the half of a pipe that needs no job type.

Methods are for event loops; those that end in `_sync` are for any thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, TypeVar, Unpack

from msgspec.structs import replace

from ..errors import (
    BadInputError,
    DuplicateError,
    JobNotFoundError,
    SignalRefusedError,
    WrongStatusError,
    seconds_of,
)
from ..model.counts import Failures, Filter, JobEvent, Page, WorkerInfo
from ..model.durable import (
    SHOWN_STEPS,
    SIGNAL_PROBLEMS,
    SignalAnswer,
    SignalReceipt,
    read_signal,
    show_step,
)
from ..model.ids import check_name, check_text
from ..model.job import FINISHED, Job, JobStatus, Move, StepInfo, sources
from ..model.logs import JobLogs
from ..model.newjob import NewPayload
from ..model.request import check_search
from ..stores.base import Store
from .async_store import AsyncStore
from .explain import Explanation, explain
from .feed import Feed
from .lazy_store import Gateway, LazyStore
from .signals import Signals
from .sync import Bell, sync
from .throughput import Throughput
from .views import (
    JobFilter,
    JobPage,
    QueueInfo,
    Stats,
    chosen_of,
    filter_of,
    queues_of,
    read_cursor,
    stats_of,
)

T = TypeVar("T")

MOST_AT_ONCE = 500
"""Jobs on a page."""
MOST_LINES = 10**12
"""More than any job logs."""
MOST_SEARCHED = 10_000
"""Jobs that one call searches for a text."""
_SEARCHED_AT_ONCE = 500
LONGEST_WAIT = 300.0
_LOOK_AGAIN = 5.0
"""Seconds after which a waiting caller asks the store, whatever the feed says."""


class Jobs:
    """The jobs of one store, which is opened when it is first needed."""

    def __init__(self, lazy_store: LazyStore, signals: Signals, needs: Mapping[str, str]) -> None:
        self._lazy_store = lazy_store
        self.signals = signals
        """What its own workers are told at once."""
        self._needs = needs  # what workers need to know a type, by its name
        self.throughput = Throughput()

    @property
    def gateway(self) -> Gateway:
        """The open store with all ways to it."""
        return self._lazy_store()

    @property
    def store(self) -> Store:
        """The store, opened and migrated when it is first needed."""
        return self._lazy_store().store

    @property
    def async_store(self) -> AsyncStore:
        """The store for event loops."""
        return self._lazy_store().async_store

    @property
    def feed(self) -> Feed:
        """What happens in the store."""
        return self._lazy_store().feed

    # Inspect

    async def get(self, id: str) -> Job:
        """The whole job with its history and its first steps; JobNotFoundError."""
        return _found(id, await self.async_store.call(get_whole, self.store, check_text("id", id)))

    async def steps(self, id: str) -> list[StepInfo]:
        """All finished steps of a job, in that order, with their whole results; JobNotFoundError."""
        found = await self.async_store.call(self.store.durable, check_text("id", id))
        return [show_step(step, None) for step in _found(id, found).steps]

    async def logs(self, id: str, *, after: int = 0) -> JobLogs:
        """What the runs of the job have logged, the oldest line first; JobNotFoundError.

        With `after`, only what came after that line; lines are numbered from 1, those that were cut included.
        """
        _check_whole("after", after, 0, MOST_LINES)
        return _found(id, await self.async_store.call(self.store.logs, check_text("id", id), after))

    async def page(
        self,
        *,
        limit: int = 50,
        cursor: str | None = None,
        text: str | None = None,
        **filters: Unpack[JobFilter],
    ) -> JobPage:
        """The newest jobs, at most `limit`; give `next_cursor` as `cursor` for the next page.

        Filters: `status`, `type`, `queue`, `tag`, `error` (the type of the last error). With `text`, those that have it
        in their id, tags or error: each call searches 10,000 jobs, and `next_cursor` continues with older ones.
        """
        filter = filter_of(**filters)
        _check_whole("limit", limit, 1, MOST_AT_ONCE)
        if text is None:
            page = await self.async_store.call(self.store.page, filter, limit, read_cursor(cursor))
        else:
            wanted = check_search("text", text).casefold()
            page = await self._search(wanted, filter, limit, read_cursor(cursor))
        return JobPage(page.jobs, None if page.next is None else str(page.next))

    async def _search(self, text: str, filter: Filter, limit: int, before: int | None) -> Page:
        """Those with the text in their id, tags or error, among the next MOST_SEARCHED that match."""
        found: list[Job] = []
        for _ in range(MOST_SEARCHED // _SEARCHED_AT_ONCE):
            page = await self.async_store.call(self.store.page, filter, _SEARCHED_AT_ONCE, before)
            places = [place for place, job in enumerate(page.jobs, 1) if _has_text(job, text)]
            missing = limit - len(found)
            if len(places) > missing:
                # Why again: the next page begins after the last job that is told, and only its own page knows where.
                page = await self.async_store.call(self.store.page, filter, places[missing - 1], before)
                return Page([*found, *(job for job in page.jobs if _has_text(job, text))], page.next)
            found += [page.jobs[place - 1] for place in places]
            before = page.next
            if before is None or len(found) == limit:
                break
        return Page(found, before)

    async def failures(self) -> Failures:
        """The failed jobs by type and type of error: of the 10,000 that failed last."""
        return await self.async_store.call(self.store.failures)

    async def wait(self, id: str, timeout: float | timedelta = 30.0) -> Job:
        """Wait until the job is finished; after the `timeout`, returns it as it is then."""
        until = time.monotonic() + seconds_of("timeout", timeout)
        bell = Bell()

        def on_events(events: list[JobEvent]) -> None:
            if any(event.id == id and event.status in FINISHED for event in events):
                bell.ring()

        unsubscribe = await self.async_store.call(self.feed.subscribe, on_events)
        try:
            while True:
                job = _found(id, await self.async_store.call(self.store.get, check_text("id", id)))
                remaining = until - time.monotonic()
                if job.is_finished or remaining <= 0:
                    return await self.get(id)
                await bell.wait(min(remaining, _LOOK_AGAIN))
        finally:
            unsubscribe()

    async def explain(self, id: str) -> Explanation:
        """Why the job is not running; JobNotFoundError."""
        return _found(id, await self.async_store.call(explain, self.store, check_text("id", id), self._needs))

    async def stats(self) -> Stats:
        """The number of jobs by status, and their recent rates."""
        counts = await self.async_store.call(self.store.counts)
        return stats_of(counts, self.throughput.per_second())

    async def queues(self) -> list[QueueInfo]:
        """The queues that have, or had, jobs, and those that are paused; by name."""
        return queues_of(await self.async_store.call(self.store.counts))

    async def workers(self) -> list[WorkerInfo]:
        """The processes that run jobs."""
        return await self.async_store.call(self.store.workers)

    # Manage

    async def cancel(self, id: str) -> Job:
        """Cancel a job: at once if it waits; if it runs, its context is cancelled. WrongStatusError for a done or failed one."""
        (answer,) = await self.async_store.call(self._cancel, [check_text("id", id)])
        status = _found(id, answer)
        if status in FINISHED and status is not JobStatus.CANCELLED:
            raise WrongStatusError(id, status, "be cancelled any more")
        return await self.get(id)

    async def signal(self, id: str, name: str, payload: Any = None) -> SignalReceipt:
        """Send a signal to a job: `wait_for` of that name returns its payload. It is kept until the job waits for it.

        The first of a name wins: the same again is no error, another is a SignalRefusedError, and so is one that comes after
        the wait has timed out. WrongStatusError for a finished job, JobNotFoundError for an unknown one.
        """
        signal = read_signal(name, payload, self._lazy_store.settings.max_payload)
        answer = _found(id, await self.async_store.call(self.store.signal, check_text("id", id), signal))
        if answer is SignalAnswer.FINISHED:
            raise WrongStatusError(id, (await self.get(id)).status, "receive signals any more")
        if answer in SIGNAL_PROBLEMS:
            raise SignalRefusedError(id, name, SIGNAL_PROBLEMS[answer])
        self.signals.notify_work()
        return SignalReceipt(id=id, name=signal.name, is_new=answer is SignalAnswer.ACCEPTED)

    async def _retry(self, id: str, renewed: NewPayload | None, *, from_start: bool = False) -> Job:
        (status,) = await self.async_store.call(
            self.store.retry, [check_text("id", id)], renewed, from_start=from_start
        )
        if status is None:
            raise JobNotFoundError(id)
        if isinstance(status, DuplicateError):
            raise status
        if status not in sources(Move.REVIVE):
            raise WrongStatusError(id, status, "be retried: only failed and cancelled jobs can")
        try:
            return await self.get(id)
        finally:
            self.signals.notify_work()  # Why last: the caller is to see the job before it runs, where possible

    async def delete(self, id: str) -> None:
        """Delete a finished job: its id is free again. WrongStatusError for others."""
        (answer,) = await self.async_store.call(self.store.delete, [check_text("id", id)])
        status = _found(id, answer)
        if status not in FINISHED:
            raise WrongStatusError(id, status, "be deleted: only finished jobs can")

    async def cancel_many(self, *, all: bool = False, **filters: Unpack[JobFilter]) -> int:
        """Cancel all jobs that match and are not finished; returns the number of jobs.

        Filters are those of `page`, at least one of them; without a filter, only with `all=True`.
        """
        return await self._each(self._cancel, sources(Move.CANCEL), chosen_of(all, filters))

    async def retry_many(self, *, all: bool = False, **filters: Unpack[JobFilter]) -> int:
        """Run all failed and cancelled jobs that match again; returns the number of jobs."""
        chosen = chosen_of(all, filters)
        return await self._each(self.store.retry, sources(Move.REVIVE), chosen)

    async def delete_many(self, *, all: bool = False, **filters: Unpack[JobFilter]) -> int:
        """Delete all finished jobs that match; returns the number of jobs."""
        chosen = chosen_of(all, filters)
        return await self._each(self.store.delete, tuple(sorted(FINISHED)), chosen)

    async def pause(self, queue: str) -> QueueInfo:
        """Start no more jobs of the queue."""
        await self.async_store.call(self.store.pause, check_name("queue", queue))
        self.signals.notify_pause(queue)
        return await self._queue(queue)

    async def resume(self, queue: str) -> QueueInfo:
        """Undo a pause."""
        await self.async_store.call(self.store.resume, check_name("queue", queue))
        self.signals.notify_work()
        return await self._queue(queue)

    # The same from any thread

    get_sync = sync(get)
    logs_sync = sync(logs)
    page_sync = sync(page)
    failures_sync = sync(failures)
    wait_sync = sync(wait)
    explain_sync = sync(explain)
    stats_sync = sync(stats)
    queues_sync = sync(queues)
    workers_sync = sync(workers)
    steps_sync = sync(steps)
    signal_sync = sync(signal)
    cancel_sync = sync(cancel)
    delete_sync = sync(delete)
    cancel_many_sync = sync(cancel_many)
    retry_many_sync = sync(retry_many)
    delete_many_sync = sync(delete_many)
    pause_sync = sync(pause)
    resume_sync = sync(resume)

    def _cancel(self, ids: list[str]) -> Sequence[JobStatus | None]:
        found = self.store.cancel(ids)
        leased = (JobStatus.RUNNING, JobStatus.QUEUED)  # Why queued, too: it may have been claimed ahead
        wanted = [id for id, status in zip(ids, found, strict=True) if status in leased]
        if wanted:
            self.signals.notify_cancel(wanted)
        return found

    async def _each(
        self,
        verb: Callable[[list[str]], Sequence[JobStatus | DuplicateError | None]],
        able: Sequence[JobStatus],
        filter: Filter,
    ) -> int:
        """Page through the jobs that match, and apply the verb to each with one of these statuses."""
        statuses = able if filter.status is None else [each for each in able if each is filter.status]
        store, async_store, _ = self.gateway
        count = 0
        for status in statuses:
            before: int | None = None
            chosen = replace(filter, status=status)
            while True:
                page = await async_store.call(store.page, chosen, MOST_AT_ONCE, before)
                found = await async_store.call(verb, [job.id for job in page.jobs])
                count += sum(each in able for each in found)
                before = page.next
                if before is None:
                    break
        self.signals.notify_work()
        return count

    async def _queue(self, name: str) -> QueueInfo:
        counts = await self.async_store.call(self.store.counts)
        found = [info for info in queues_of(counts) if info.name == name]
        return found[0] if found else QueueInfo(name=name, paused=name in counts.paused)


def get_whole(store: Store, id: str) -> Job | None:
    """The job with its history and its first steps."""
    job = store.get(id)
    # Why also of one that has not started: a retry by hand keeps the steps, and clears the times.
    state = None if job is None else store.durable(id)
    if job is None or state is None or not state.steps:
        return job
    return replace(job, steps=tuple(map(show_step, state.steps[:SHOWN_STEPS])))


def _has_text(job: Job, text: str) -> bool:
    """In its id, a tag, or the type or message of its error; whatever the case of letters."""
    error = () if job.error is None else (job.error.type, job.error.message)
    return any(text in each.casefold() for each in (job.id, *job.tags, *error))


def _found(id: str, answer: T | None) -> T:
    """What a store answered about a job; JobNotFoundError if that is nothing."""
    if answer is None:
        raise JobNotFoundError(id)
    return answer


def _check_whole(field: str, value: object, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise BadInputError(field, f"must be a whole number from {least} to {most}, got {value!r}")
