"""Completion: what the shell offers for a value, from the store that the command would speak to.

It never makes a store, changes one, or says a word: where there is nothing to be read, nothing is offered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
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


def complete_queue(ctx: typer.Context, incomplete: str) -> list[str]:
    """The queues that have, or had, jobs, and those that are paused."""
    from ...model.job import DEFAULT_QUEUE

    def look(store: Store) -> Iterable[str]:
        counts = store.counts()
        return {tally.queue for tally in counts.tallies} | counts.paused

    return _beginning(incomplete, {DEFAULT_QUEUE, *_seen(ctx, look)})


def complete_type(ctx: typer.Context, incomplete: str) -> list[str]:
    """The types of jobs that are, or were, there, those that workers know, and those that are built in."""

    def look(store: Store) -> Iterable[str]:
        known = {type for worker in store.workers() for type in worker.types}
        return {tally.type for tally in store.counts().tallies} | known

    return _beginning(incomplete, {"echo", "sleep", "fail", *_seen(ctx, look)})


def complete_id(ctx: typer.Context, incomplete: str) -> list[str]:
    """The ids of the newest jobs."""

    def look(store: Store) -> Iterable[str]:
        from ...model.counts import Filter

        return [job.id for job in store.page(Filter(), _NEWEST).jobs]

    return _beginning(incomplete, _seen(ctx, look))


def complete_schedule(ctx: typer.Context, incomplete: str) -> list[str]:
    """The names of the schedules."""
    return _beginning(
        incomplete, _seen(ctx, lambda store: [entry.name for entry in store.schedules().entries])
    )


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
        store = open_store(url)
        try:
            return list(look(store))
        finally:
            store.close()
    except Exception:
        return []
