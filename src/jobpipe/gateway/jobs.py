"""Jobs: what one can ask about jobs in a store, and do to them, from an event loop."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta

from msgspec.structs import replace

from ..errors import BadInputError, DuplicateError, JobNotFoundError, WrongStatusError, seconds_of
from ..model.counts import Failures, Filter, JobEvent, Page
from ..model.ids import check_name, check_text
from ..model.job import FINISHED, Job, JobStatus, Move, sources
from ..model.logs import JobLogs
from ..model.newjob import NewPayload
from ..model.request import check_search
from .explain import Explanation, explain
from .lazy_store import Gateway
from .signals import Signals
from .sync import Bell
from .views import JobPage, QueueInfo, queues_of, read_cursor

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
    """The jobs of one store."""

    def __init__(self, gateway: Callable[[], Gateway], signals: Signals) -> None:
        self._gateway = gateway
        self._signals = signals

    async def get(self, id: str) -> Job:
        """The whole job with its history; JobNotFoundError."""
        store, async_store, _ = self._gateway()
        job = await async_store.call(store.get, check_text("id", id))
        if job is None:
            raise JobNotFoundError(id)
        return job

    async def logs(self, id: str, after: int) -> JobLogs:
        """What its runs have logged, only the lines after that number; JobNotFoundError."""
        if isinstance(after, bool) or not isinstance(after, int) or not 0 <= after <= MOST_LINES:
            raise BadInputError("after", f"must be a whole number from 0 to {MOST_LINES}, got {after!r}")
        store, async_store, _ = self._gateway()
        logs = await async_store.call(store.logs, check_text("id", id), after)
        if logs is None:
            raise JobNotFoundError(id)
        return logs

    async def page(self, filter: Filter, limit: int, cursor: str | None, text: str | None = None) -> JobPage:
        """The newest that match, or those after a page whose `next_cursor` is the cursor."""
        if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MOST_AT_ONCE:
            raise BadInputError("limit", f"must be a whole number from 1 to {MOST_AT_ONCE}, got {limit!r}")
        store, async_store, _ = self._gateway()
        if text is None:
            page = await async_store.call(store.page, filter, limit, read_cursor(cursor))
        else:
            page = await self._search(
                check_search("text", text).casefold(), filter, limit, read_cursor(cursor)
            )
        return JobPage(page.jobs, None if page.next is None else str(page.next))

    async def _search(self, text: str, filter: Filter, limit: int, before: int | None) -> Page:
        """Those with the text in their id, tags or error, among the next MOST_SEARCHED that match."""
        store, async_store, _ = self._gateway()
        found: list[Job] = []
        for _ in range(MOST_SEARCHED // _SEARCHED_AT_ONCE):
            page = await async_store.call(store.page, filter, _SEARCHED_AT_ONCE, before)
            places = [place for place, job in enumerate(page.jobs, 1) if _has_text(job, text)]
            missing = limit - len(found)
            if len(places) > missing:
                # Why again: the next page begins after the last job that is told, and only its own page knows where.
                page = await async_store.call(store.page, filter, places[missing - 1], before)
                return Page([*found, *(job for job in page.jobs if _has_text(job, text))], page.next)
            found += [page.jobs[place - 1] for place in places]
            before = page.next
            if before is None or len(found) == limit:
                break
        return Page(found, before)

    async def failures(self) -> Failures:
        """The failed jobs in groups."""
        store, async_store, _ = self._gateway()
        return await async_store.call(store.failures)

    async def wait(self, id: str, timeout: float | timedelta) -> Job:
        """The job as soon as it is finished, or as it is after the timeout."""
        until = time.monotonic() + seconds_of("timeout", timeout)
        bell = Bell()

        def on_events(events: list[JobEvent]) -> None:
            if any(event.id == id and event.status in FINISHED for event in events):
                bell.ring()

        _, async_store, feed = self._gateway()
        unsubscribe = await async_store.call(feed.subscribe, on_events)
        try:
            while True:
                job = await self.get(id)
                remaining = until - time.monotonic()
                if job.is_finished or remaining <= 0:
                    return job
                await bell.wait(min(remaining, _LOOK_AGAIN))
        finally:
            unsubscribe()

    async def explain(self, id: str, needs: Mapping[str, str]) -> Explanation:
        """Why the job is not running; JobNotFoundError. `needs` as in `explain`."""
        store, async_store, _ = self._gateway()
        explanation = await async_store.call(explain, store, check_text("id", id), needs)
        if explanation is None:
            raise JobNotFoundError(id)
        return explanation

    async def cancel(self, id: str) -> Job:
        """Cancel a job that is not finished; WrongStatusError for a done or failed one."""
        (found,) = await self._gateway().async_store.call(self._cancel, [check_text("id", id)])
        if found is None:
            raise JobNotFoundError(id)
        if found in FINISHED and found is not JobStatus.CANCELLED:
            raise WrongStatusError(id, found, "be cancelled any more")
        return await self.get(id)

    async def retry(self, id: str, renewed: NewPayload | None = None) -> Job:
        """Run a failed or cancelled job again; WrongStatusError for others, DuplicateError while one of its name waits."""
        store, async_store, _ = self._gateway()
        (found,) = await async_store.call(store.retry, [check_text("id", id)], renewed)
        if found is None:
            raise JobNotFoundError(id)
        if isinstance(found, DuplicateError):
            raise found
        if found not in sources(Move.REVIVE):
            raise WrongStatusError(id, found, "be retried: only failed and cancelled jobs can")
        try:
            return await self.get(id)
        finally:
            self._signals.notify_work()  # Why last: the caller is to see the job before it runs, where possible

    async def delete(self, id: str) -> None:
        """Delete a finished job; WrongStatusError for others."""
        store, async_store, _ = self._gateway()
        (found,) = await async_store.call(store.delete, [check_text("id", id)])
        if found is None:
            raise JobNotFoundError(id)
        if found not in FINISHED:
            raise WrongStatusError(id, found, "be deleted: only finished jobs can")

    async def cancel_many(self, filter: Filter) -> int:
        """Cancel all jobs that match and are not finished; returns the number of jobs."""
        return await self._each(self._cancel, sources(Move.CANCEL), filter)

    async def retry_many(self, filter: Filter) -> int:
        """Run all failed and cancelled jobs that match again, but none while another of its unique name waits.

        Returns the number of jobs.
        """
        return await self._each(self._gateway().store.retry, sources(Move.REVIVE), filter)

    async def delete_many(self, filter: Filter) -> int:
        """Delete all finished jobs that match; returns the number of jobs."""
        return await self._each(self._gateway().store.delete, tuple(sorted(FINISHED)), filter)

    async def pause(self, queue: str) -> QueueInfo:
        """Start no more jobs of the queue."""
        store, async_store, _ = self._gateway()
        await async_store.call(store.pause, check_name("queue", queue))
        self._signals.notify_pause(queue)
        return await self._queue(queue)

    async def resume(self, queue: str) -> QueueInfo:
        """Undo a pause."""
        store, async_store, _ = self._gateway()
        await async_store.call(store.resume, check_name("queue", queue))
        self._signals.notify_work()
        return await self._queue(queue)

    def _cancel(self, ids: list[str]) -> Sequence[JobStatus | None]:
        found = self._gateway().store.cancel(ids)
        leased = (JobStatus.RUNNING, JobStatus.QUEUED)  # Why queued, too: it may have been claimed ahead
        wanted = [id for id, status in zip(ids, found, strict=True) if status in leased]
        if wanted:
            self._signals.notify_cancel(wanted)
        return found

    async def _each(
        self,
        verb: Callable[[list[str]], Sequence[JobStatus | DuplicateError | None]],
        able: Sequence[JobStatus],
        filter: Filter,
    ) -> int:
        """Page through the jobs that match, and apply the verb to each with one of these statuses."""
        store, async_store, _ = self._gateway()
        statuses = able if filter.status is None else [each for each in able if each is filter.status]
        count = 0
        for status in statuses:
            before: int | None = None
            while True:
                chosen = replace(filter, status=status)
                page = await async_store.call(store.page, chosen, MOST_AT_ONCE, before)
                found = await async_store.call(verb, [job.id for job in page.jobs])
                count += sum(each in able for each in found)
                before = page.next
                if before is None:
                    break
        self._signals.notify_work()
        return count

    async def _queue(self, name: str) -> QueueInfo:
        store, async_store, _ = self._gateway()
        counts = await async_store.call(store.counts)
        found = [info for info in queues_of(counts) if info.name == name]
        return found[0] if found else QueueInfo(name=name, paused=name in counts.paused)


def _has_text(job: Job, text: str) -> bool:
    """In its id, a tag, or the type or message of its error; whatever the case of letters."""
    error = () if job.error is None else (job.error.type, job.error.message)
    return any(text in each.casefold() for each in (job.id, *job.tags, *error))
