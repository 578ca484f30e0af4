"""Eight hundred lives, each with its own faults: in none of them is a promise broken. And a code that breaks one is found."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from jobpipe.jobtypes.durable import DurableRun, _State
from jobpipe.model.admission import Bounds
from jobpipe.model.durable import NO_TIMEOUT, DurableState, JobSignal, SignalAnswer
from jobpipe.model.gate import Limit
from jobpipe.model.job import JobStatus, Move
from jobpipe.stores.base import Answer, ClaimResult, Lease, NewJob, QueueChoice, Rescued, Settlement
from jobpipe.stores.memory import MemoryStore
from jobpipe.stores.memory.record import Record
from jobpipe.worker import claim_loop
from jobpipe.worker.held_jobs import HeldJobs

from .life import Life, MakeStore, Summary
from .program import Program
from .stores import opened
from .weather import Weather, weather_of
from .world import Violation, World

CHUNK = 40
CHUNKS = 20
ON_DISK = 10
MOST_SEEDS = 400
"""Seeds within which a broken code is found."""


@pytest.fixture(scope="module")
def away(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """In a folder that knows nothing of the settings of the developer."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("away"))
        yield


@pytest.fixture(scope="module")
def programs(away: None) -> list[Program]:
    """Three programs."""
    return [Program() for _ in range(3)]


def live(seed: int, programs: list[Program], store: MakeStore, *, keeps_trace: bool = False) -> Summary:
    return Life(seed, programs, store, keeps_trace=keeps_trace).live()


# Keeping the promises


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_no_life_breaks_a_promise(programs: list[Program], chunk: int) -> None:
    """If one does: `python -m tests.simulation --seed N` shows it, step by step."""
    done = []
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        with opened("memory") as store:
            done.append(live(seed, programs, store))
    assert sum(each.ticks for each in done) > CHUNK
    assert sum(each.runs for each in done) > sum(each.jobs for each in done)
    assert sum(each.recorded for each in done) > CHUNK
    assert sum(each.suspensions for each in done) > CHUNK
    assert sum(each.signals for each in done) > CHUNK / 2


def test_no_life_with_slots_by_queue_breaks_a_promise(away: None) -> None:
    programs = [Program({"default": 2, "mail": 1}) for _ in range(3)]
    done = []
    for seed in range(CHUNK):
        with opened("memory") as store:
            done.append(live(seed, programs, store))
    assert sum(each.runs for each in done) > sum(each.jobs for each in done)


@pytest.mark.parametrize("seed", range(ON_DISK))
def test_no_life_on_disk_breaks_a_promise(programs: list[Program], seed: int) -> None:
    with opened("sqlite") as store:
        assert live(seed, programs, store).runs > 0


def test_every_kind_of_fault_comes_alone_and_with_others() -> None:
    found = [weather_of(World(seed).chance) for seed in range(200)]
    for kind in Weather.__dataclass_fields__:
        assert 20 < sum(getattr(each, kind) > 0 for each in found) < 180
    assert any(each.is_gentle for each in found)


# Living again


@pytest.mark.parametrize("name", ["memory", "sqlite"])
def test_the_same_seed_is_the_same_life(programs: list[Program], name: str) -> None:
    lives = []
    for _ in range(2):
        with opened(name) as store:
            lives.append(live(4, programs, store, keeps_trace=True))
    assert lives[0] == lives[1]
    assert len(lives[0].trace) > 20


def test_the_same_seed_is_the_same_life_in_another_process(programs: list[Program]) -> None:
    """Nothing depends on the order of sets, which is another in every process."""
    with opened("memory") as store:
        here = live(11, programs, store).digest
    for hashing in ("1", "2"):
        there = subprocess.run(
            [sys.executable, "-m", "tests.simulation", "--seed", "11"],
            cwd=Path(__file__).parents[2],
            env={**os.environ, "PYTHONHASHSEED": hashing},
            capture_output=True,
            text=True,
            check=True,
        )
        assert there.stdout.endswith(f"seed 11: every promise was kept ({here})\n")


def test_other_seeds_are_other_lives(programs: list[Program]) -> None:
    digests = set()
    for seed in range(10):
        with opened("memory") as store:
            digests.add(live(seed, programs, store).digest)
    assert len(digests) == 10


# Breaking them


class Unfenced(MemoryStore):
    """Whoever knows a job's id has its lease."""

    def _held(self, lease: Lease) -> Record | None:
        return self._ledger.leased.get(lease.id)


class Uncounted(MemoryStore):
    """A rescue costs no attempt."""

    def rescue(self, limit: int = 100) -> list[Rescued]:
        found = super().rescue(limit)
        for each in found:
            self._ledger.jobs[each.id].attempts -= 1
        return found


class Rash(MemoryStore):
    """Takes jobs back whose lease is alive."""

    def rescue(self, limit: int = 100) -> list[Rescued]:
        for record in self._ledger.leased.values():
            record.lease_until = min(record.lease_until, self._clock() + 0.3)
        return super().rescue(limit)


class Twofold(MemoryStore):
    """Lets a tick fire again."""

    def fire_tick(self, name: str, tick_at: float, next_at: float, job: NewJob | None, **options: Any) -> Any:
        answer = super().fire_tick(name, tick_at, next_at, job, **options)
        if answer is None and job is not None and any(each.name == name for each in self.schedules().entries):
            (answer,) = self._insert([job], Bounds(), self._clock())  # type: ignore[misc]  # a list, without a limit
        return answer


class Unlimited(MemoryStore):
    """Knows no limits."""

    def claim(
        self,
        worker: str,
        types: Sequence[str],
        limit: int,
        lease: float,
        limits: Sequence[Limit] = (),
        begin: int | None = None,
        queues: QueueChoice | None = None,
    ) -> ClaimResult:
        return super().claim(worker, types, limit, lease, (), begin, queues)


class Forgetful(MemoryStore):
    """Says that it has a job, and has it not."""

    def _insert(self, batch: Sequence[NewJob], bounds: Bounds, now: float) -> Answer:
        answer = super()._insert(batch, bounds, now)
        for receipt in answer if isinstance(answer, list) else ():
            if receipt.id == "j1" and receipt.is_new:
                self._ledger.remove(self._ledger.jobs[receipt.id], now)
        return answer


class Undecided(MemoryStore):
    """Lets a job that is done run again."""

    def _settle(self, settlement: Settlement, now: float) -> bool:
        is_recorded = super()._settle(settlement, now)
        record = self._ledger.jobs[settlement.lease.id]
        if is_recorded and record.status == "failed":
            self._ledger.move(record, Move.REVIVE, now)
        return is_recorded


class Costly(MemoryStore):
    """A sleep, or a wait, costs an attempt."""

    def _settle(self, settlement: Settlement, now: float) -> bool:
        is_recorded = super()._settle(settlement, now)
        if is_recorded and settlement.outcome.name is not None:
            self._ledger.jobs[settlement.lease.id].attempts += 1
        return is_recorded


class Fickle(MemoryStore):
    """The last signal of a name wins."""

    def signal(self, id: str, signal: JobSignal) -> SignalAnswer | None:
        record = self._ledger.jobs.get(id)
        if record is not None and record.durable is not None:
            record.durable.signals.pop(signal.name, None)
        return super().signal(id, signal)


class Deaf(MemoryStore):
    """A signal wakes nobody."""

    def signal(self, id: str, signal: JobSignal) -> SignalAnswer | None:
        record = self._ledger.jobs.get(id)
        before = None if record is None else record.run_at
        answer = super().signal(id, signal)
        if record is not None and before is not None and record.run_at != before:
            self._ledger.jobs[id].status = JobStatus.WAITING
        return answer


class Patient(MemoryStore):
    """No wait has an end."""

    def _settle(self, settlement: Settlement, now: float) -> bool:
        outcome = settlement.outcome
        if outcome.move is Move.WAIT:
            settlement = replace(settlement, outcome=replace(outcome, delay=NO_TIMEOUT))
        return super()._settle(settlement, now)


@pytest.mark.parametrize(
    ("broken", "bad_input"),
    [
        (Unfenced, "heard that its lease of|without its lease|gave .* back"),
        (Uncounted, "the store counts"),
        (Rash, "whose lease was alive"),
        (Twofold, "was put in twice"),
        (Unlimited, "at once|too soon"),
        (Forgetful, "s after the last fault|was found None"),
        (Undecided, "was claimed, and is failed"),
        (Costly, "the store counts"),
        (Fickle, "instead of (same|conflict)"),
        (Deaf, "has the signal that it waits for, and is waiting"),
        (Patient, "s after the last fault|instead of timed out"),
    ],
)
def test_a_store_that_breaks_a_promise_is_found(
    programs: list[Program], broken: type[MemoryStore], bad_input: str
) -> None:
    with pytest.raises(Violation, match=bad_input) as first:
        search(programs, lambda clock: broken(clock=clock))
    seed = int(str(first.value).split()[1].rstrip(":"))
    with pytest.raises(Violation) as again:
        live(seed, programs, lambda clock: broken(clock=clock))
    assert str(again.value) == str(first.value)


async def keep(self: HeldJobs, runs: list[Any], *, also_begun: bool = False) -> None:
    """Gives nothing back."""


async def forget(self: DurableRun) -> _State:
    """Knows of nothing that was recorded."""
    return _State(DurableState())


@pytest.mark.parametrize(
    ("owner", "name", "broken", "bad_input"),
    [
        (HeldJobs, "give_back", keep, "still holds|were lost by their workers"),
        (claim_loop, "POLL", 10_000.0, "s after the last fault"),
        (DurableRun, "_load", forget, "is recorded, and was run again"),
    ],
    ids=["no give-back", "no poll", "no memory of steps"],
)
def test_a_runner_that_breaks_a_promise_is_found(
    programs: list[Program],
    monkeypatch: pytest.MonkeyPatch,
    owner: object,
    name: str,
    broken: object,
    bad_input: str,
) -> None:
    monkeypatch.setattr(owner, name, broken)
    with pytest.raises(Violation, match=bad_input):
        search(programs, lambda clock: MemoryStore(clock=clock))


def search(programs: list[Program], store: MakeStore) -> None:
    """Live until a promise is broken."""
    for seed in range(MOST_SEEDS):
        live(seed, programs, store)
