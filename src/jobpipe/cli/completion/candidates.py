"""Completion: what the shell offers for a value, from the store that the command would speak to.

It never makes a store, changes one, or says a word: where there is nothing to be read, nothing is offered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import closing
from typing import TYPE_CHECKING

import typer

from ...settings import Settings

if TYPE_CHECKING:
    from ...stores.base import Store

_NEWEST = 50
"""Jobs whose ids are offered."""


def complete_status(incomplete: str) -> list[str]:
    """The statuses of a job."""
    from ...model.job import JobStatus

    return _beginning(incomplete, map(str, JobStatus))


def _queues(store: Store) -> set[str]:
    """The queues that have, or had, jobs, and those that are paused."""
    counts = store.counts()
    return {tally.queue for tally in counts.tallies} | counts.paused


def _types(store: Store) -> set[str]:
    """The types of jobs that are, or were, there, and those that workers know."""
    known = {type for worker in store.workers() for type in worker.types}
    return {tally.type for tally in store.counts().tallies} | known


def _ids(store: Store) -> list[str]:
    """The ids of the newest jobs."""
    from ...model.counts import Filter

    return [job.id for job in store.page(Filter(), _NEWEST).jobs]


def _completion(look: Callable[[Store], Iterable[str]], *always: str) -> Callable[..., list[str]]:
    """What a look at the store finds, and what is offered always."""

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        return _beginning(incomplete, {*always, *_seen(ctx, look)})

    return complete


complete_queue = _completion(_queues, "default")
complete_type = _completion(_types, "echo", "sleep", "fail")
complete_id = _completion(_ids)
complete_schedule = _completion(lambda store: [entry.name for entry in store.schedules().entries])


def complete_signal(ctx: typer.Context, incomplete: str) -> list[str]:
    """The name of the signal that the job waits for."""

    def look(store: Store) -> list[str]:
        state = store.durable(str(ctx.params.get("id")))
        wait = None if state is None else state.pending_wait()
        return [] if wait is None else [wait.name]

    return _beginning(incomplete, _seen(ctx, look))


def _beginning(incomplete: str, values: Iterable[str]) -> list[str]:
    return sorted(value for value in values if value.startswith(incomplete))


def _seen(ctx: typer.Context, look: Callable[[Store], Iterable[str]]) -> list[str]:
    """What a look at the store finds."""
    from pathlib import Path

    from ...stores import open_store

    if ctx.params.get("url"):
        return []  # Why: a service far away would hold up the shell
    try:
        url = Settings.load({"store": ctx.params.get("store")}).store
        path = url.removeprefix("sqlite:///")
        if url.startswith("memory:") or (path != url and not Path(path).exists()):
            return []
        with closing(open_store(url)) as store:
            return list(look(store))
    except Exception:
        return []
