"""Player: a pipe on a store, of which everything is asked that is asked of another, so that the two can be compared.

Nothing runs jobs here: a test does it, so that both do the same. Instants and ids that were made are left out.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from jobpipe import Jobpipe
from jobpipe.model.job import JobError, Move
from jobpipe.stores.base import Filter
from jobpipe.testing import StoreHarness
from jobpipe.testing.tools import finish, take
from jobpipe.web.app import make_app

from ..jobpipe.stores.test_memory_store import MemoryHarness
from ..jobpipe.stores.test_sqlite_store import SqliteHarness
from .hostile import NAMES, Call

HARNESSES: Mapping[str, Callable[[Path], StoreHarness]] = {
    "memory": lambda _: MemoryHarness(),
    "sqlite": lambda folder: SqliteHarness(folder / "jobs.db"),
}
"""What can play; another store is another row."""

_MADE = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_INSTANTS = {
    "run_at",
    "created_at",
    "started_at",
    "finished_at",
    "began_at",
    "ended_at",
    "until",
    "last_at",
    "next_at",
}


class Answer(NamedTuple):
    status: int
    kind: str
    body: Any


class Player:
    """One side."""

    def __init__(self, harness: StoreHarness, **settings: Any) -> None:
        self.harness = harness
        self.store = harness.open()
        self.pipe = Jobpipe(self.store, **settings)
        self.store.migrate()
        self._app = make_app(self.pipe)

    def close(self) -> None:
        self.pipe.close()
        self.store.close()

    async def ask(self, call: Call) -> Answer:
        """What the application answers, without what cannot be the same."""
        headers = [(b"host", b"localhost"), (b"content-type", call.kind.encode())]
        scope = {"type": "http", "method": call.method, "path": call.decoded, "query_string": call.query}
        scope |= {"headers": headers, "client": ("127.0.0.1", 1), "root_path": "", "scheme": "http"}
        received: list[bytes] = []
        messages: list[Any] = []

        async def receive() -> dict[str, Any]:
            if call.body in received:
                await asyncio.Event().wait()  # it stays until it has its answer
            received.append(call.body)
            return {"type": "http.request", "body": call.body}

        async def send(message: Any) -> None:
            messages.append(message)

        await self._app(scope, receive, send)
        start, *rest = messages
        kind = dict(start["headers"]).get(b"content-type", b"").decode()
        raw = b"".join(each.get("body", b"") for each in rest)
        return Answer(start["status"], kind, plain(json.loads(raw)) if raw else None)

    def work(self, move: Move) -> list[Any]:
        """Run the next job, and let it end so."""
        error = None if move is Move.SUCCEED else JobError(type="Boom", message="it broke")
        claims = take(self.store, types=NAMES)
        return [
            (plain(claim.id), finish(self.store, claim, move, result=[1], error=error)) for claim in claims
        ]

    def dump(self) -> list[Any]:
        """All that is in the store, through its own verbs."""
        found: list[Any] = []
        before: int | None = None
        while True:
            page = self.store.page(Filter(), 500, before)
            found += [self.store.get(job.id) for job in page.jobs]
            if (before := page.next) is None:
                break
        return [found, self.store.counts(), self.store.schedules(), self.store.events(0, 10_000)]


def plain(value: Any) -> Any:
    """The value without instants, ids that were made, and numbers that are each store's own affair."""
    if isinstance(value, dict):
        return {key: _plain_field(key, each) for key, each in value.items()}
    if isinstance(value, list):
        return [plain(each) for each in value]
    return _INSTANT.sub("(instant)", _MADE.sub("(made)", value)) if isinstance(value, str) else value


def _plain_field(key: str, value: Any) -> Any:
    if key in _INSTANTS or key in ("next_cursor", "per_second"):
        return value is not None
    return plain(value)
