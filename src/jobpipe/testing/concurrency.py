"""Many at once, over several handles: each job once, capacity exact, exactly one outcome."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial

from ..errors import JobConflictError, QueueFullError
from ..model.job import JobStatus, Move
from ..model.lease import Lease, Outcome, Settlement
from ..stores.base import Store
from .harness import THREADS, StoreHarness, from_all_sides, handles, together
from .reading import look, tally, totals
from .tools import BOOM, finish, new_job, put, started, take


class Concurrency:
    def test_crowd_of_claimers_takes_each_job_once(self, store: Store, harness: StoreHarness) -> None:
        ids = [f"j{n}" for n in range(harness.crowd)]
        store.insert([[new_job(id) for id in ids]])

        def claim_all(handle: Store, number: int) -> list[str]:
            found: list[str] = []
            while claims := take(handle, 3, worker=f"w{number}", lease=600):
                found += [claim.id for claim in claims]
            return found

        found = from_all_sides(harness, claim_all, harness.claimers)
        # Why the main thread claims too: where rows are locked by others, a claimer may see none and leave.
        everything = [id for each in found for id in each] + claim_all(store, -1)
        assert sorted(everything) == sorted(ids)
        assert tally(store) == {JobStatus.RUNNING: len(ids)}
        assert totals(store)[JobStatus.RUNNING] == len(ids)

    def test_claim_and_settle_in_a_crowd_end_every_job_once(
        self, store: Store, harness: StoreHarness
    ) -> None:
        ids = [f"j{n}" for n in range(300)]
        store.insert([[new_job(id) for id in ids]])

        def work(handle: Store, number: int) -> int:
            settled = 0
            while claims := take(handle, 5, worker=f"w{number}", lease=600):
                outcome = Outcome(move=Move.SUCCEED, result=b"1")
                settled += sum(handle.settle([Settlement(claim.lease, outcome) for claim in claims]))
            return settled

        settled = from_all_sides(harness, work)
        assert sum(settled) + work(store, -1) == len(ids)
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

        accepted = from_all_sides(harness, rush)
        assert sum(accepted) == capacity
        assert tally(store) == {JobStatus.QUEUED: capacity}

    def test_bound_on_scheduled_jobs_is_exact_under_a_rush(self, store: Store, harness: StoreHarness) -> None:
        bound = 25

        def rush(handle: Store, name: int) -> None:
            for n in range(10):
                handle.insert([[new_job(f"j{name}-{n}", queue=f"q{n % 3}", delay=600)]], scheduled=bound)

        from_all_sides(harness, rush)
        assert tally(store) == {JobStatus.SCHEDULED: bound}

    def test_batches_in_a_rush_are_whole_within_capacity(self, store: Store, harness: StoreHarness) -> None:
        capacity, size = 50, 7

        def rush(handle: Store, name: int) -> int:
            batches = [[new_job(f"j{name}-{n}-{k}") for k in range(size)] for n in range(3)]
            return sum(isinstance(answer, list) for answer in handle.insert(batches, capacity=capacity))

        accepted = from_all_sides(harness, rush)
        assert sum(accepted) == capacity // size
        assert tally(store) == {JobStatus.QUEUED: capacity // size * size}

    def test_same_job_from_all_sides_is_one_job(self, store: Store, harness: StoreHarness) -> None:
        answers = from_all_sides(harness, lambda handle, _: put(handle, new_job("a", "same")))
        assert sum(receipt.is_new for (receipt,) in answers) == 1
        assert totals(store) == {JobStatus.QUEUED: 1}

    def test_same_id_with_other_content_has_one_winner(self, store: Store, harness: StoreHarness) -> None:
        def send(handle: Store, content: int) -> bool:
            (answer,) = handle.insert([[new_job(f"b{content}"), new_job("a", content)]])
            assert isinstance(answer, list | JobConflictError)
            return isinstance(answer, list)

        won = from_all_sides(harness, send)
        assert sum(won) == 1
        assert look(store, "a").payload == won.index(True)
        assert tally(store) == {JobStatus.QUEUED: 2}

    def test_batches_in_opposite_order_do_not_deadlock(self, store: Store, harness: StoreHarness) -> None:
        jobs = [new_job(f"j{n}") for n in range(40)]

        answers = from_all_sides(harness, lambda handle, n: put(handle, *(jobs[::-1] if n % 2 else jobs)))
        assert sum(receipt.is_new for receipts in answers for receipt in receipts) == len(jobs)
        assert tally(store) == {JobStatus.QUEUED: len(jobs)}

    def test_same_settlement_from_all_sides_is_one_outcome(self, store: Store, harness: StoreHarness) -> None:
        claim = started(store, "a")
        recorded = from_all_sides(harness, lambda handle, _: finish(handle, claim, Move.FAIL, error=BOOM))
        assert recorded == [True] * THREADS
        assert len(look(store, "a").history) == 1
        assert totals(store)[JobStatus.FAILED] == 1

    def test_rescue_racing_with_settle_has_one_winner(self, store: Store, harness: StoreHarness) -> None:
        ids = [f"j{n}" for n in range(64)]
        put(store, *(new_job(id) for id in ids))
        leases = {claim.id: claim.lease for claim in take(store, len(ids), lease=60)}
        harness.elapse(61)

        def settle_or_rescue(handle: Store, number: int) -> set[str]:
            if number >= 8:
                return {rescued.id for _ in range(20) for rescued in handle.rescue(4)}
            outcome = Outcome(move=Move.SUCCEED, result=b"1")
            mine = [leases[id] for id in ids[number::8]]
            return {lease.id for lease in mine if handle.settle([Settlement(lease, outcome)]) == [True]}

        results = from_all_sides(harness, settle_or_rescue, 16)
        settled = set().union(*results[:8])
        rescued = set().union(*results[8:]) | {each.id for each in store.rescue(100)}
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

        def rescue(handle: Store, _: int) -> list[str]:
            return [each.id for _ in range(10) for each in handle.rescue(7)]

        found = from_all_sides(harness, rescue)
        everything = [id for each in found for id in each] + [each.id for each in store.rescue()]
        assert sorted(everything) == sorted(ids)
        assert all(len(look(store, id).history) == 1 for id in ids)

    def test_cancel_racing_with_claim_never_loses_the_wish(self, store: Store, harness: StoreHarness) -> None:
        ids = [f"j{n}" for n in range(60)]
        put(store, *(new_job(id) for id in ids))
        leases: dict[str, Lease] = {}

        def claim_or_cancel(handle: Store, number: int) -> None:
            if number < 6:
                while claims := take(handle, 2):
                    leases.update((claim.id, claim.lease) for claim in claims)
            else:
                for id in ids[number - 6 :: 6]:
                    handle.cancel([id])

        from_all_sides(harness, claim_or_cancel, 12)
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

        with handles(harness) as several, ThreadPoolExecutor(1) as pool:
            reading = pool.submit(read, several[0])
            together([partial(write, several[n % len(several)], n) for n in range(8)])
        assert sorted(reading.result()) == sorted(f"j{name}-{n}" for name in range(8) for n in range(10))
