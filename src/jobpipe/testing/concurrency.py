"""Many at once, over several handles: each job once, capacity exact, exactly one outcome."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ..errors import JobConflictError, QueueFullError
from ..model.job import JobStatus, Move
from ..model.lease import Lease, Outcome, Settlement
from ..model.newjob import Receipt
from ..stores.base import Store
from .harness import StoreHarness
from .tools import BOOM, finish, handles, look, new_job, put, started, take, tally, together, totals

THREADS = 16


class Concurrency:
    def test_crowd_of_claimers_takes_each_job_once(self, store: Store, harness: StoreHarness) -> None:
        ids = [f"j{n}" for n in range(harness.crowd)]
        store.insert([[new_job(id) for id in ids]])

        def claim_all(handle: Store, worker: str) -> list[str]:
            found: list[str] = []
            while claims := handle.claim(worker, ["work"], 3, 600).claims:
                found += [claim.id for claim in claims]
            return found

        with handles(harness) as several:
            found = together(
                [partial(claim_all, several[n % len(several)], f"w{n}") for n in range(harness.claimers)]
            )
        # Why the main thread claims too: where rows are locked by others, a claimer may see none and leave.
        everything = [id for each in found for id in each] + claim_all(store, "last")
        assert sorted(everything) == sorted(ids)
        assert tally(store) == {JobStatus.RUNNING: len(ids)}
        assert totals(store)[JobStatus.RUNNING] == len(ids)

    def test_claim_and_settle_in_a_crowd_end_every_job_once(
        self, store: Store, harness: StoreHarness
    ) -> None:
        ids = [f"j{n}" for n in range(300)]
        store.insert([[new_job(id) for id in ids]])

        def work(handle: Store, worker: str) -> int:
            settled = 0
            while claims := handle.claim(worker, ["work"], 5, 600).claims:
                outcome = Outcome(move=Move.SUCCEED, result=b"1")
                settled += sum(handle.settle([Settlement(claim.lease, outcome) for claim in claims]))
            return settled

        with handles(harness) as several:
            settled = together([partial(work, several[n % len(several)], f"w{n}") for n in range(THREADS)])
        assert sum(settled) + work(store, "last") == len(ids)
        assert tally(store) == {JobStatus.DONE: len(ids)}
        assert totals(store) == dict.fromkeys((JobStatus.QUEUED, JobStatus.RUNNING, JobStatus.DONE), len(ids))
        assert all(len(look(store, id).history) == 1 for id in ids[:20])

    def test_capacity_is_exact_under_a_rush(self, store: Store, harness: StoreHarness) -> None:
        capacity = 50

        def rush(handle: Store, name: int) -> int:
            accepted = 0
            for n in range(10):
                (answer,) = handle.insert([[new_job(f"j{name}-{n}")]], capacity=capacity)
                assert isinstance(answer, list | QueueFullError)
                accepted += isinstance(answer, list)
            return accepted

        with handles(harness) as several:
            accepted = together([partial(rush, several[n % len(several)], n) for n in range(THREADS)])
        assert sum(accepted) == capacity
        assert tally(store) == {JobStatus.QUEUED: capacity}

    def test_bound_on_scheduled_jobs_is_exact_under_a_rush(self, store: Store, harness: StoreHarness) -> None:
        bound = 25

        def rush(handle: Store, name: int) -> None:
            for n in range(10):
                handle.insert([[new_job(f"j{name}-{n}", queue=f"q{n % 3}", delay=600)]], scheduled=bound)

        with handles(harness) as several:
            together([partial(rush, several[n % len(several)], n) for n in range(THREADS)])
        assert tally(store) == {JobStatus.SCHEDULED: bound}

    def test_batches_in_a_rush_are_whole_and_within_capacity(
        self, store: Store, harness: StoreHarness
    ) -> None:
        capacity, size = 50, 7

        def rush(handle: Store, name: int) -> int:
            batches = [[new_job(f"j{name}-{n}-{k}") for k in range(size)] for n in range(3)]
            return sum(isinstance(answer, list) for answer in handle.insert(batches, capacity=capacity))

        with handles(harness) as several:
            accepted = together([partial(rush, several[n % len(several)], n) for n in range(THREADS)])
        assert sum(accepted) == capacity // size
        assert tally(store) == {JobStatus.QUEUED: capacity // size * size}

    def test_same_job_from_all_sides_is_one_job(self, store: Store, harness: StoreHarness) -> None:
        def send(handle: Store) -> Receipt:
            (receipt,) = put(handle, new_job("a", "same"))
            return receipt

        with handles(harness) as several:
            receipts = together([partial(send, several[n % len(several)]) for n in range(THREADS)])
        assert sum(receipt.is_new for receipt in receipts) == 1
        assert totals(store) == {JobStatus.QUEUED: 1}

    def test_same_id_with_other_content_has_one_winner(self, store: Store, harness: StoreHarness) -> None:
        def send(handle: Store, content: int) -> bool:
            (answer,) = handle.insert([[new_job(f"b{content}"), new_job("a", content)]])
            assert isinstance(answer, list | JobConflictError)
            return isinstance(answer, list)

        with handles(harness) as several:
            won = together([partial(send, several[n % len(several)], n) for n in range(THREADS)])
        assert sum(won) == 1
        assert look(store, "a").payload == won.index(True)
        assert tally(store) == {JobStatus.QUEUED: 2}

    def test_batches_in_opposite_order_do_not_lock_each_other_out(
        self, store: Store, harness: StoreHarness
    ) -> None:
        jobs = [new_job(f"j{n}") for n in range(40)]

        def send(handle: Store, is_reversed: bool) -> int:
            return sum(receipt.is_new for receipt in put(handle, *(jobs[::-1] if is_reversed else jobs)))

        with handles(harness) as several:
            new = together([partial(send, several[n % len(several)], bool(n % 2)) for n in range(THREADS)])
        assert sum(new) == len(jobs)
        assert tally(store) == {JobStatus.QUEUED: len(jobs)}

    def test_same_settlement_from_all_sides_is_one_outcome(self, store: Store, harness: StoreHarness) -> None:
        claim = started(store, "a")
        with handles(harness) as several:
            calls = [
                partial(finish, several[n % len(several)], claim, Move.FAIL, error=BOOM)
                for n in range(THREADS)
            ]
            assert together(calls) == [True] * THREADS
        assert len(look(store, "a").history) == 1
        assert totals(store)[JobStatus.FAILED] == 1

    def test_rescue_racing_with_settle_has_one_winner(self, store: Store, harness: StoreHarness) -> None:
        ids = [f"j{n}" for n in range(64)]
        put(store, *(new_job(id) for id in ids))
        leases = {claim.id: claim.lease for claim in take(store, len(ids), lease=60)}
        harness.elapse(61)

        def settle(handle: Store, mine: list[Lease]) -> set[str]:
            outcome = Outcome(move=Move.SUCCEED, result=b"1")
            return {lease.id for lease in mine if handle.settle([Settlement(lease, outcome)]) == [True]}

        def rescue(handle: Store) -> set[str]:
            return {rescued.id for _ in range(20) for rescued in handle.rescue(4)}

        with handles(harness) as several:
            calls: list[Callable[[], set[str]]] = []
            for n in range(8):
                handle = several[n % len(several)]
                calls += [partial(settle, handle, [leases[id] for id in ids[n::8]]), partial(rescue, handle)]
            results = together(calls)
        settled = set().union(*results[::2])
        rescued = set().union(*results[1::2]) | {each.id for each in store.rescue(100)}
        assert settled | rescued == set(ids)
        assert not settled & rescued
        for id in ids:
            job = look(store, id)
            assert job.status is (JobStatus.DONE if id in settled else JobStatus.QUEUED)
            assert len(job.history) == 1

    def test_rescuers_do_not_rescue_twice(self, store: Store, harness: StoreHarness) -> None:
        ids = [f"j{n}" for n in range(50)]
        put(store, *(new_job(id) for id in ids))
        take(store, 50)
        harness.elapse(61)

        def rescue(handle: Store) -> list[str]:
            return [each.id for _ in range(10) for each in handle.rescue(7)]

        with handles(harness) as several:
            found = together([partial(rescue, several[n % len(several)]) for n in range(THREADS)])
        everything = [id for each in found for id in each] + [each.id for each in store.rescue()]
        assert sorted(everything) == sorted(ids)
        assert all(len(look(store, id).history) == 1 for id in ids)

    def test_cancel_racing_with_claim_never_loses_the_wish(self, store: Store, harness: StoreHarness) -> None:
        ids = [f"j{n}" for n in range(60)]
        put(store, *(new_job(id) for id in ids))
        leases: dict[str, Lease] = {}

        def claim_all(handle: Store) -> None:
            while claims := take(handle, 2):
                leases.update((claim.id, claim.lease) for claim in claims)

        def cancel_all(handle: Store, mine: list[str]) -> None:
            for id in mine:
                handle.cancel([id])

        with handles(harness) as several:
            calls: list[Callable[[], None]] = []
            for n in range(6):
                handle = several[n % len(several)]
                calls += [partial(claim_all, handle), partial(cancel_all, handle, ids[n::6])]
            together(calls)
        assert set(store.extend(list(leases.values()), 60)) <= {"cancelling"}
        store.settle([Settlement(lease, Outcome(move=Move.SUCCEED)) for lease in leases.values()])
        assert tally(store) == {JobStatus.CANCELLED: len(ids)}

    def test_events_of_many_writers_are_complete(self, store: Store, harness: StoreHarness) -> None:
        """Who reads on from the last number that it saw misses none, though writers commit in any order."""

        def write(handle: Store, name: int) -> None:
            for n in range(10):
                put(handle, new_job(f"j{name}-{n}"))

        def read(handle: Store) -> list[str]:
            seen: list[str] = []
            last = 0
            while len(seen) < 80:
                events = handle.events(last, 7)
                seen += [event.id for event in events]
                last = events[-1].number if events else last
            return seen

        with handles(harness) as several:
            calls: list[Callable[[], object]] = [
                partial(write, several[n % len(several)], n) for n in range(8)
            ]
            calls.append(partial(read, store))
            seen = together(calls)[-1]
        assert isinstance(seen, list)
        assert sorted(seen) == sorted(f"j{name}-{n}" for name in range(8) for n in range(10))
