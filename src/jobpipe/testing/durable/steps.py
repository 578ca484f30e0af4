"""Steps: recorded once, in order, and only by who has the lease; kept with the job until it is gone."""

from __future__ import annotations

from msgspec.structs import replace

from ...model.durable import DurableState
from ...model.job import JobStatus, Move
from ...stores.base import Store
from ...stores.memory import MemoryStore
from ..harness import StoreHarness, from_all_sides
from ..reading import look
from ..tools import BOOM, finish, new_job, put, rescue_after, started, take, take_one
from .tools import AT, record, send, sleep, state, step, step_names, wait


class Steps:
    def test_steps_are_recorded_in_order_with_their_results(self, store: Store) -> None:
        claim = started(store, "a")
        first, second = step("charge", {"id": 7, "text": "ä ✓ \\"}), step("ship")
        assert store.write_steps([(claim.lease, first)]) == [True]
        assert store.write_steps([(claim.lease, second)]) == [True]
        assert state(store) == DurableState(steps=(first, second))
        assert state(store).steps[0].began_at == AT
        assert store.durable("unknown") is None
        put(store, new_job("b"))
        assert state(store, "b") == DurableState()

    def test_step_that_is_recorded_stays_as_it_is(self, store: Store) -> None:
        claim = started(store, "a")
        for result in (1, 2):
            assert store.write_steps([(claim.lease, step("s", result))]) == [True]
        assert store.write_steps([(claim.lease, step("s", 2)), (claim.lease, step("t", 3))]) == [True, True]
        assert state(store).steps == (step("s", 1), step("t", 3))

    def test_steps_of_several_jobs_are_recorded_in_one_call(self, store: Store) -> None:
        put(store, new_job("a"), new_job("b"))
        first, second = take(store, 2)
        lost = replace(first.lease, token="0" * 32)
        told = [(first.lease, step("x", 1)), (lost, step("y", 2)), (second.lease, step("x", 3))]
        assert store.write_steps(told) == [True, False, True]
        assert state(store, "a").steps == (step("x", 1),)
        assert state(store, "b").steps == (step("x", 3),)
        assert store.write_steps([]) == []

    def test_worker_that_lost_its_lease_records_nothing(self, store: Store, harness: StoreHarness) -> None:
        late = started(store, "a", lease=10)
        assert record(store, late, "first") == [True]
        rescue_after(store, harness, 11)
        assert record(store, late, "second") == [False]
        claim = take_one(store, worker="w2")
        assert record(store, late, "second") == [False]
        assert record(store, claim, "third") == [True]
        assert step_names(store) == ["first", "third"]
        finish(store, claim)
        assert record(store, claim, "fourth") == [False]
        assert step_names(store) == ["first", "third"]

    def test_lease_that_ran_out_but_was_not_taken_back_still_counts(
        self, store: Store, harness: StoreHarness
    ) -> None:
        claim = started(store, "a", lease=10)
        harness.elapse(11)
        assert record(store, claim, "late") == [True]

    def test_job_that_was_claimed_ahead_records_steps(self, store: Store) -> None:
        put(store, new_job("a"))
        (claim,) = take(store, begin=0)
        assert record(store, claim, "s") == [True]
        assert finish(store, claim)
        assert step_names(store) == ["s"]

    def test_released_and_cancelled_jobs_record_nothing(self, store: Store) -> None:
        claim = started(store, "a")
        store.release([claim.lease])
        assert record(store, claim, "s") == [False]
        (ahead,) = take(store, begin=0)
        store.cancel(["a"])
        assert record(store, ahead, "s") == [False]
        assert state(store) == DurableState()

    def test_steps_outlive_retries_and_rescues(self, store: Store, harness: StoreHarness) -> None:
        claim = started(store, "a", lease=10)
        record(store, claim, "1")
        finish(store, claim, Move.RETRY, error=BOOM)
        record(store, take_one(store, lease=10), "2")
        rescue_after(store, harness, 11)
        record(store, take_one(store), "3")
        assert step_names(store) == ["1", "2", "3"]

    def test_retry_by_hand_keeps_steps_unless_it_is_from_the_start(self, store: Store) -> None:
        claim = started(store, "a")
        record(store, claim, "s")
        finish(store, claim, Move.FAIL, error=BOOM)
        assert store.retry(["a"]) == [JobStatus.FAILED]
        assert step_names(store) == ["s"]
        store.cancel(["a"])
        assert step_names(store) == ["s"]
        assert store.retry(["a"], from_start=True) == [JobStatus.CANCELLED]
        assert state(store) == DurableState()
        assert [exported.durable for exported in store.export(1)] == [None]
        assert record(store, take_one(store), "s") == [True]

    def test_retry_from_the_start_drops_sleeps_and_used_signals(self, store: Store) -> None:
        claim = started(store, "a")
        assert send(store, name="used", payload=1)
        assert send(store, name="unused", payload=2)
        store.receive(claim.lease, "used")
        sleep(store, claim)
        store.cancel(["a"])
        store.retry(["a"])
        assert [each.name for each in state(store).sleeps] == ["nap"]
        assert [each.name for each in state(store).signals] == ["unused", "used"]
        store.cancel(["a"])
        store.retry(["a"], from_start=True)
        assert state(store).sleeps == ()
        assert [(each.name, each.payload) for each in state(store).signals] == [("unused", b"2")]

    def test_retry_by_hand_of_what_is_not_finished_drops_nothing(self, store: Store) -> None:
        claim = started(store, "a")
        record(store, claim, "s")
        assert store.retry(["a"], from_start=True) == [JobStatus.RUNNING]
        assert step_names(store) == ["s"]

    def test_durable_state_goes_with_its_job(self, store: Store, harness: StoreHarness) -> None:
        for id in ("deleted", "pruned"):
            claim = started(store, id)
            record(store, claim, "s")
            send(store, id)
            finish(store, claim)
            if id == "deleted":
                store.delete([id])
        harness.elapse(10)
        assert store.prune(5) == 1
        for id in ("deleted", "pruned"):
            assert store.durable(id) is None
            put(store, new_job(id))
            assert state(store, id) == DurableState()

    def test_durable_state_moves_with_its_job(self, store: Store, harness: StoreHarness) -> None:
        claim = started(store, "sleeps")
        record(store, claim, "one", "two")
        send(store, "sleeps", "early", {"x": 1})
        sleep(store, claim, seconds=50)
        claim = started(store, "waits")
        record(store, claim, "s")
        send(store, "waits", "used")
        store.receive(claim.lease, "used")
        wait(store, claim, "go", 40)
        before = {id: state(store, id) for id in ("sleeps", "waits")}
        between = MemoryStore()
        between.adopt(store.export(10))
        for id, kept in before.items():
            assert between.durable(id) == kept
        assert store.discard(list(before)) == 2
        assert store.durable("waits") is None
        assert store.adopt(between.export(10)) == 2
        assert store.adopt(between.export(10)) == 0
        for id, kept in before.items():
            assert state(store, id) == kept
        assert look(store, "waits").status is JobStatus.WAITING
        assert look(store, "sleeps").status is JobStatus.SCHEDULED
        assert send(store, "waits") == "accepted"
        assert look(store, "waits").status is JobStatus.QUEUED
        harness.elapse(50)
        assert {claim.id for claim in take(store, 2)} == {"sleeps", "waits"}

    def test_steps_from_all_sides_are_recorded_once_each(self, store: Store, harness: StoreHarness) -> None:
        claim = started(store, "a")
        answers = from_all_sides(harness, lambda each, n: record(each, claim, f"s{n // 2}"))
        assert answers == [[True]] * len(answers)
        assert sorted(step_names(store)) == sorted(f"s{n}" for n in range(len(answers) // 2))
