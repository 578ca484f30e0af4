"""Moving to another store: everything that waits arrives as it was, once, however often it is tried."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from jobpipe import Jobpipe, JobStatus, StoreAwayError, StoreRefusedError
from jobpipe.gateway.promote import Moved, promote
from jobpipe.model.job import Move
from jobpipe.stores.base import ExportedJob, ScheduleEntry, Store, WorkerInfo
from jobpipe.stores.memory import MemoryStore
from jobpipe.stores.sqlite import SqliteStore
from jobpipe.testing import ManualTime, new_job
from jobpipe.testing.reading import look, page_ids, tally
from jobpipe.testing.tools import BOOM, LOST, finish, put, take_one

from ...support.jobs import finished
from ...support.waiting import run


@pytest.fixture
def source() -> MemoryStore:
    return MemoryStore("memory://source")


@pytest.fixture
def target(tmp_path: Path) -> Iterator[SqliteStore]:
    with closing(SqliteStore(tmp_path / "target.db")) as store:
        store.migrate()
        yield store


def fill(store: Store, count: int) -> list[str]:
    ids = [f"j{n}" for n in range(count)]
    put(store, *(new_job(id, {"id": id}, priority=n % 3, delay=1000 * (n % 2)) for n, id in enumerate(ids)))
    return ids


def test_what_waits_is_moved_and_what_is_finished_stays(source: MemoryStore, target: SqliteStore) -> None:
    ids = fill(source, 2500)
    finish(source, take_one(source))
    failed = take_one(source)
    finish(source, failed, Move.RETRY, error=BOOM, delay=3600)
    before = {id: look(source, id) for id in [*ids[100:120], failed.id]}
    seen: list[Moved] = []
    assert promote(source, target, seen.append) == Moved(jobs=2499, of=2499, already=0)
    assert [moved.jobs for moved in seen] == [0, 20, 1020, 2020, 2499], "few at first"
    assert tally(source) == {JobStatus.DONE: 1}
    assert {id: look(target, id) for id in before} == before
    assert len(page_ids(target)) == 2499


def test_schedules_and_pauses_move_along(source: MemoryStore, target: SqliteStore) -> None:
    entry = ScheduleEntry(
        name="nightly",
        type="work",
        queue="default",
        payload=b'{"x":1}',
        every=60.0,
        anchor_at=5.0,
        next_at=65.0,
        last_at=5.0,
        last_job="nightly-1",
    )
    held = replace(entry, name="held", is_paused=True)
    source.put_schedule(entry)
    source.put_schedule(held)
    source.pause("slow")
    assert promote(source, target).schedules == 2
    assert target.schedules().entries == [held, entry]
    assert source.schedules().entries == []
    assert target.counts().paused == {"slow"}


def test_a_paused_schedule_that_the_target_has_already_is_paused_there(
    source: MemoryStore, target: SqliteStore
) -> None:
    """As after a move that was interrupted, or where a program has declared it before."""
    entry = ScheduleEntry(name="s", type="work", queue="q", payload=b"1", every=60.0, next_at=65.0)
    target.put_schedule(entry)
    source.put_schedule(replace(entry, is_paused=True))
    promote(source, target)
    assert target.schedules().entries == [replace(entry, is_paused=True)]


class Breaking(SqliteStore):
    """A target whose replies are lost from the second batch on, until it is mended."""

    is_broken = True

    def adopt(self, exported: Sequence[ExportedJob]) -> int:
        new = super().adopt(exported)
        if self.is_broken and exported[0].job.id != "j0":
            raise StoreAwayError("the reply was lost")
        return new


def test_an_interrupted_move_can_be_done_again(source: MemoryStore, tmp_path: Path) -> None:
    fill(source, 2500)
    with closing(Breaking(tmp_path / "target.db")) as target:
        target.migrate()
        with pytest.raises(StoreAwayError):
            promote(source, target)
        assert sum(tally(source).values()) == 2480
        assert sum(tally(target).values()) == 1020
        target.is_broken = False
        assert promote(source, target) == Moved(jobs=2480, of=2480, already=1000)
        assert tally(source) == {}
        assert sum(tally(target).values()) == 2500


def test_jobs_with_much_to_move_are_moved_few_at_a_time(source: MemoryStore, target: SqliteStore) -> None:
    sizes: list[int] = []
    adopt = target.adopt

    def noting(exported: Sequence[ExportedJob]) -> int:
        sizes.append(len(exported))
        return adopt(exported)

    target.adopt = noting  # type: ignore[method-assign]
    put(source, *(new_job(f"j{n}", "x" * 600_000) for n in range(70)))
    assert promote(source, target).jobs == 70
    assert sizes == [20, 27, 23], "16 MiB at a time"


def test_a_job_that_ran_in_the_target_meanwhile_does_not_run_again(
    source: MemoryStore, target: SqliteStore
) -> None:
    put(source, new_job("a"))
    target.adopt(source.export(1))
    finish(target, take_one(target))
    assert promote(source, target) == Moved(jobs=1, of=1, already=1)
    assert tally(target) == {JobStatus.DONE: 1}


def test_a_conflict_moves_nothing_of_its_batch_and_is_named(source: MemoryStore, target: SqliteStore) -> None:
    fill(source, 3)
    put(target, new_job("j1", "something else"))
    with pytest.raises(StoreRefusedError, match="'j1' of memory://source cannot move"):
        promote(source, target)
    assert sum(tally(source).values()) == 3
    assert page_ids(target) == ["j1"]


@pytest.mark.parametrize("spelling", ["a.db", "../{folder}/a.db", "link.db"])
def test_a_store_cannot_be_moved_to_itself_however_it_is_spelled(tmp_path: Path, spelling: str) -> None:
    (tmp_path / "link.db").symlink_to("a.db")
    other = SqliteStore(tmp_path / spelling.format(folder=tmp_path.name))
    with closing(SqliteStore(tmp_path / "a.db")) as source, closing(other) as target:
        source.migrate()
        put(source, new_job("a"))
        with pytest.raises(StoreRefusedError, match="same store"):
            promote(source, target)
        assert tally(source) == {JobStatus.QUEUED: 1}
        assert source.workers() == []


def test_jobs_of_lost_workers_are_waited_for_and_moved(target: SqliteStore) -> None:
    """The worker is forgotten, its job rescued with its attempt counted, and then it moves."""
    time = ManualTime()
    source = MemoryStore("memory://source", clock=time)
    put(source, new_job("a"))
    take_one(source, lease=20)
    source.beat(WorkerInfo(name="w1", types=("work",), slots=1, running=("a",), started_at=0), 10)
    waits: list[str] = []

    def wait_for(what: str) -> None:
        waits.append(what)
        time.elapse(15)

    assert promote(source, target, wait_for=wait_for).jobs == 1
    assert waits == ["1 worker to expire or to send a heartbeat", "1 job to be rescued from a lost worker"]
    assert look(target, "a").attempts == 1
    assert [attempt.error for attempt in look(target, "a").history] == [LOST]


def test_a_source_in_use_is_refused_naming_the_worker(target: SqliteStore) -> None:
    time = ManualTime()
    source = MemoryStore("memory://source", clock=time)
    put(source, new_job("a"))
    worker = WorkerInfo(name="host:1", types=("work",), slots=1, running=(), started_at=0)
    source.beat(worker, 60)

    def live_on(_: str) -> None:
        time.elapse(1)
        source.beat(worker, 60)

    with pytest.raises(StoreRefusedError, match="host:1"):
        promote(source, target, wait_for=live_on)
    assert tally(source) == {JobStatus.QUEUED: 1}
    assert tally(target) == {}


def test_moved_jobs_run_in_the_new_store(source: MemoryStore, away_from_home: Path) -> None:
    async def scenario() -> None:
        pipe = Jobpipe(source)
        await pipe.enqueue("echo", "hello", id="a")
        pipe.close()
        other = Jobpipe(f"sqlite:///{away_from_home}/other.db")
        promote(source, other.store)
        async with other, other.running():
            assert (await finished(other, "a")).result == "hello"

    run(scenario())


def test_unique_names_move_and_a_second_one_is_refused(source: MemoryStore, target: SqliteStore) -> None:
    put(source, new_job("a", unique="name"))
    running = take_one(source)
    put(source, new_job("b", unique="name"))
    source.release([running.lease])
    put(target, new_job("c", unique="name"))
    with pytest.raises(StoreRefusedError, match=r"'name' is that of the job 'c': the job 'b' .* cancel one"):
        promote(source, target)
    assert tally(source) == {JobStatus.QUEUED: 2}
    target.cancel(["c"])
    assert promote(source, target).jobs == 2
    assert target.running_of("name") == "a"
    claim = take_one(target)
    assert claim.id == "a"
    finish(target, claim)
    assert take_one(target).id == "b"
