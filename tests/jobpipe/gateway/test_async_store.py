"""Many enqueues share one insert, each is answered for itself, and none is answered before it is done."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from jobpipe.errors import JobConflictError, QueueFullError, StoreAwayError
from jobpipe.gateway.async_store import AsyncStore, unwrap
from jobpipe.model.admission import Bounds
from jobpipe.stores.base import Answer, NewJob
from jobpipe.stores.memory import MemoryStore
from jobpipe.stores.sqlite import SqliteStore
from jobpipe.testing import new_job

from ...support.waiting import LIMIT, run


class Slow(SqliteStore):
    """Its inserts wait until they may go on, and are counted."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.sizes: list[int] = []
        self.began = threading.Semaphore(0)
        self.go = threading.Event()
        self.error: Exception | None = None

    def insert(self, batches: Sequence[Sequence[NewJob]], **bounds: int) -> list[Answer]:
        self.sizes.append(len(batches))
        self.began.release()
        assert self.go.wait(LIMIT)
        if self.error is not None:
            raise self.error
        return super().insert(batches, **bounds)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Slow]:
    with closing(Slow(tmp_path / "jobs.db")) as store:
        store.migrate()
        yield store


@pytest.fixture
def async_store(store: Slow) -> Iterator[AsyncStore]:
    with closing(AsyncStore(store, 5)) as async_store:
        yield async_store


def test_what_comes_during_an_insert_goes_together_with_the_next(
    store: Slow, async_store: AsyncStore
) -> None:
    async def scenario() -> None:
        first = asyncio.create_task(async_store.insert([new_job("first")]))
        await asyncio.to_thread(store.began.acquire, timeout=LIMIT)
        rest = [asyncio.create_task(async_store.insert([new_job(f"j{number}")])) for number in range(4)]
        await asyncio.sleep(0)  # they are put down now
        assert not any(task.done() for task in (first, *rest)), "nothing is on disk yet"
        store.go.set()
        answers = await asyncio.gather(first, *rest)
        assert [unwrap(answer)[0].id for answer in answers] == ["first", "j0", "j1", "j2", "j3"]

    run(scenario())
    assert store.sizes == [1, 4]


def test_each_batch_has_an_answer_of_its_own(store: Slow, async_store: AsyncStore) -> None:
    async def scenario() -> None:
        store.go.set()
        batches = [
            [new_job("a", 1)],
            [new_job("a", 2)],
            [new_job("b"), new_job("c")],
            [new_job(f"d{number}") for number in range(4)],
            [new_job("a", 1)],
        ]
        answers = await asyncio.gather(*map(async_store.insert, batches))
        assert isinstance(answers[1], JobConflictError)
        assert isinstance(answers[3], QueueFullError)
        assert [[receipt.is_new for receipt in unwrap(answers[place])] for place in (0, 2, 4)] == [
            [True],
            [True, True],
            [False],
        ]
        with pytest.raises(JobConflictError):
            unwrap(answers[1])

    run(scenario())


def test_each_batch_is_held_to_its_own_bounds(store: Slow, async_store: AsyncStore) -> None:
    async def scenario() -> None:
        store.go.set()
        tight = Bounds(ready=1, scheduled=1)
        calls = [
            async_store.insert([new_job("a"), new_job("b")]),
            async_store.insert([new_job("c")], tight),
            async_store.insert([new_job("d", delay=60)], tight),
            async_store.insert([new_job("e"), new_job("f", delay=60)]),
            async_store.insert([new_job("g", delay=60)], tight),
        ]
        answers = await asyncio.gather(*calls)
        assert [isinstance(answer, list) for answer in answers] == [True, False, True, True, False]

    run(scenario())


def test_an_error_of_the_store_reaches_everyone_it_concerns_and_the_next_insert_works(
    store: Slow, async_store: AsyncStore
) -> None:
    async def scenario() -> None:
        store.go.set()
        store.error = StoreAwayError("it is away")
        answers = await asyncio.gather(
            *(async_store.insert([new_job(f"j{number}")]) for number in range(3)), return_exceptions=True
        )
        assert [type(answer) for answer in answers] == [StoreAwayError] * 3
        store.error = None
        assert unwrap(await async_store.insert([new_job("later")]))

    run(scenario())


def test_one_who_gives_up_takes_nobody_along(store: Slow, async_store: AsyncStore) -> None:
    async def scenario() -> None:
        impatient = asyncio.create_task(async_store.insert([new_job("impatient")]))
        await asyncio.to_thread(store.began.acquire, timeout=LIMIT)
        patient = asyncio.create_task(async_store.insert([new_job("patient")]))
        await asyncio.sleep(0)
        impatient.cancel()
        with pytest.raises(asyncio.CancelledError):
            await impatient
        store.go.set()
        assert unwrap(await patient)

    run(scenario())
    assert store.get("patient") is not None
    assert store.get("impatient") is not None, "it was under way already"


def test_more_than_a_thousand_at_once_are_carried_in_several_loads(store: Slow) -> None:
    async def scenario(async_store: AsyncStore) -> None:
        store.go.set()
        answers = await asyncio.gather(
            *(async_store.insert([new_job(f"j{number}")]) for number in range(1_500))
        )
        assert [unwrap(answer)[0].id for answer in answers] == [f"j{number}" for number in range(1_500)]

    with closing(AsyncStore(store, 0)) as async_store:
        run(scenario(async_store))
    assert sum(store.sizes) == 1_500
    assert max(store.sizes) <= 1_000


def test_several_event_loops_may_use_it_at_once(store: Slow) -> None:
    store.go.set()

    async def scenario(async_store: AsyncStore, name: str) -> None:
        answers = await asyncio.gather(
            *(async_store.insert([new_job(f"{name}{number}")]) for number in range(20))
        )
        assert all(unwrap(answer)[0].is_new for answer in answers)

    with closing(AsyncStore(store, 0)) as async_store:
        threads = [
            threading.Thread(target=lambda name=name: run(scenario(async_store, name))) for name in "abcd"
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sum(tally.count for tally in store.counts().tallies) == 80


def test_a_call_that_blocks_leaves_the_event_loop_free(store: Slow, async_store: AsyncStore) -> None:
    async def scenario() -> None:
        go = threading.Event()
        call = asyncio.create_task(async_store.call(go.wait, LIMIT))
        await asyncio.sleep(0)
        go.set()
        assert await call

    run(scenario())


def test_a_store_that_never_blocks_is_called_on_the_spot() -> None:
    store = MemoryStore()

    async def scenario() -> None:
        with closing(AsyncStore(store, 0)) as async_store:
            assert await async_store.call(threading.get_ident) == threading.get_ident()
            assert unwrap(await async_store.insert([new_job("a")]))

    run(scenario())
