"""A type that nobody knows is enqueued, and warned of, at the cost of one look in a few seconds."""

from __future__ import annotations

import logging

import pytest

from jobpipe import Jobpipe, JobRequest, StoreAwayError
from jobpipe.gateway import known_types
from jobpipe.gateway.known_types import KnownTypes
from jobpipe.model.counts import WorkerInfo
from jobpipe.stores.memory import MemoryStore

from ..conftest import On


def worker(*types: str) -> WorkerInfo:
    return WorkerInfo(name="w", types=types, slots=1, running=(), started_at=0.0)


def test_a_type_that_nobody_knows_is_warned_of_in_every_way_to_enqueue(
    on: On, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(pipe: Jobpipe) -> None:
        said = "no running worker knows the type 'ecko'; did you mean 'echo'?"
        assert (await pipe.enqueue("ecko", id="a")).warning == said
        assert pipe.enqueue_sync("ecko").warning == said
        batch = [JobRequest(type="ecko"), JobRequest(type="echo"), JobRequest(type="zzz")]
        for receipts in (await pipe.enqueue_many(batch), pipe.enqueue_many_sync(batch)):
            assert [each.warning for each in receipts] == [
                said,
                None,
                "no running worker knows the type 'zzz'",
            ]
        assert (await pipe.enqueue("ecko", id="a")).warning is None  # it exists already
        assert (await pipe.get("a")).status == "queued"

    with caplog.at_level(logging.WARNING, "jobpipe"):
        on(scenario)
    lines = [record.message for record in caplog.records if "no running worker" in record.message]
    assert len(lines) == 2, "one for each type"


def test_what_a_live_worker_has_named_is_known(on: On, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_types, "_FRESH", 0.0)

    async def scenario(pipe: Jobpipe) -> None:
        assert (await pipe.enqueue("email")).warning
        pipe.store.beat(worker("email"), 60)
        assert (await pipe.enqueue("email")).warning is None
        assert pipe.enqueue_sync("email").warning is None

    on(scenario)


def test_the_store_is_asked_once_in_a_while_and_not_for_types_of_the_process() -> None:
    asked = 0
    now = 0.0

    class Counting(MemoryStore):
        def workers(self) -> list[WorkerInfo]:
            nonlocal asked
            asked += 1
            return super().workers()

    with_types = Jobpipe(Counting("memory://counting"))
    with_types._known = KnownTypes(lambda: with_types.gateway, lambda: with_types.types, lambda: now)
    for _ in range(5):
        with_types.enqueue_sync("echo")
    assert asked == 0
    for _ in range(5):
        assert with_types.enqueue_sync("email").warning
    assert asked == 1
    with_types.store.beat(worker("email"), 60)
    now = 2.9
    assert with_types.enqueue_sync("email").warning
    now = 3.1
    assert with_types.enqueue_sync("email").warning is None
    assert asked == 2
    with_types.close()


def test_a_store_that_cannot_be_asked_fails_no_enqueue() -> None:
    class Away(MemoryStore):
        def workers(self) -> list[WorkerInfo]:
            raise StoreAwayError("gone")

    pipe = Jobpipe(Away("memory://away"))
    assert pipe.enqueue_sync("email").warning is None
    pipe.close()
