"""Limits: rates, concurrency and cooling hold for all handles together, and hold up nobody else."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from functools import partial

import pytest

from ..gateway.explain import Reason, explain
from ..gateway.limits import look_at_limits
from ..model.counts import WorkerInfo
from ..model.gate import INSURANCE, LEAD, Limit
from ..model.job import JobStatus, Move
from ..stores.base import Store
from .harness import StoreHarness, from_all_sides, handles, together
from .reading import ids, look
from .tools import BOOM, finish, new_job, put, rescue_after, take

ONE = (Limit(type="work", concurrency=1),)
ONE_EACH = (Limit(type="work", concurrency=1, is_keyed=True),)
SLOW = (Limit(type="work", interval=10.0),)
SLOW_EACH = (Limit(type="work", interval=10.0, is_keyed=True),)
EITHER = ("work", "other")


def put_some(store: Store, number: int, key: str | None = None) -> None:
    put(store, *(new_job(f"j{n}", key=key) for n in range(number)))


class Limiting:
    # Concurrency

    def test_no_more_run_at_once_than_may(self, store: Store) -> None:
        put_some(store, 5)
        two = (Limit(type="work", concurrency=2),)
        running = take(store, 10, limits=two)
        assert ids(running) == ["j0", "j1"]
        assert take(store, 10, worker="w2", limits=two) == []
        finish(store, running[0])
        assert ids(take(store, 10, limits=two)) == ["j2"]
        assert take(store, 10, limits=two) == []

    @pytest.mark.parametrize("limits", [ONE, ONE_EACH], ids=["type", "key"])
    def test_place_is_free_again_however_a_run_ends(
        self, store: Store, harness: StoreHarness, limits: tuple[Limit, ...]
    ) -> None:
        for way in ("fail", "retry", "snooze", "cancel", "release", "rescue", "asked"):
            first, second = (
                new_job(f"{way}-1", key="a", max_retries=0),
                new_job(f"{way}-2", key="a", priority=-1),
            )
            put(store, first, second)
            (claim,) = take(store, 10, lease=30, limits=limits)
            assert take(store, 10, limits=limits) == [], way
            if way == "release":
                assert store.release([claim.lease]) == [True]
                store.cancel([first.id])
            elif way == "rescue":
                assert len(rescue_after(store, harness, 31)) == 1
            elif way == "asked":
                store.cancel([first.id])
                assert take(store, 10, limits=limits) == [], way
                assert finish(store, claim)
            else:
                assert finish(store, claim, Move(way), error=BOOM, delay=1_000)
            (claim,) = take(store, 10, limits=limits)
            assert claim.id == second.id
            assert finish(store, claim)

    @pytest.mark.parametrize("limits", [ONE, ONE_EACH], ids=["type", "key"])
    def test_claim_for_no_job_at_all_brings_none(self, store: Store, limits: tuple[Limit, ...]) -> None:
        put_some(store, 3, key="a")
        assert take(store, 0, limits=limits) == []
        assert ids(take(store, 10, limits=limits)) == ["j0"]

    def test_limit_of_one_type_holds_no_other_up(self, store: Store) -> None:
        put(store, *(new_job(f"w{n}", priority=9) for n in range(300)), new_job("a", type="other"))
        assert ids(take(store, 10, types=EITHER, limits=ONE)) == ["w0", "a"]

    def test_limit_holds_over_all_queues_of_the_type(self, store: Store) -> None:
        put(store, new_job("a", queue="q0"), new_job("b", queue="q1", priority=5), new_job("c", queue="q2"))
        (claim,) = take(store, 10, limits=ONE)
        assert claim.id == "b"
        finish(store, claim)
        assert ids(take(store, 10, limits=ONE)) == ["a"]

    def test_limit_that_does_not_bind_changes_nothing(self, store: Store) -> None:
        put(store, *(new_job(f"j{n}", priority=n % 3, key=f"k{n % 4}") for n in range(20)))
        plenty = (Limit(type="work", interval=1e-6, burst=100, concurrency=100, is_keyed=True),)
        expected = [f"j{n}" for n in sorted(range(20), key=lambda n: (-(n % 3), n))]
        assert ids(take(store, 12, limits=plenty)) == expected[:12]
        assert ids(take(store, 12, limits=plenty)) == expected[12:]

    # Rates

    def test_rate_gives_each_start_its_time(self, store: Store, harness: StoreHarness) -> None:
        put_some(store, 4)
        fast = (Limit(type="work", interval=LEAD / 4),)
        found = take(store, 3, limits=fast)
        assert [claim.starts_in for claim in found] == pytest.approx([0, LEAD / 4, LEAD / 2], abs=1e-3)
        job = look(store, "j2")
        assert job.started_at is not None
        assert job.started_at.timestamp() == pytest.approx(found[2].started_at, abs=1e-5)
        assert found[2].started_at - found[0].started_at == pytest.approx(LEAD / 2, abs=1e-3)

    def test_rate_lets_the_next_one_start_in_time(self, store: Store, harness: StoreHarness) -> None:
        put_some(store, 3)
        assert ids(take(store, 10, limits=SLOW)) == ["j0"]
        result = store.claim("w1", ["work"], 10, 60, SLOW)
        assert result.claims == []
        assert result.due_in == pytest.approx(5, abs=5)
        harness.elapse(10 - 2 * LEAD)
        assert take(store, 10, limits=SLOW) == []
        harness.elapse(1.5 * LEAD)
        (claim,) = take(store, 10, limits=SLOW)
        assert 0 < claim.starts_in <= LEAD
        harness.elapse(10)
        assert ids(take(store, 10, limits=SLOW)) == ["j2"]

    def test_burst_is_had_after_a_rest(self, store: Store, harness: StoreHarness) -> None:
        put_some(store, 10)
        limits = (Limit(type="work", interval=10.0, burst=3),)
        assert ids(take(store, 10, limits=limits)) == ["j0", "j1", "j2"]
        harness.elapse(10)
        assert ids(take(store, 10, limits=limits)) == ["j3"]
        harness.elapse(100)
        assert ids(take(store, 10, limits=limits)) == ["j4", "j5", "j6"]

    def test_rate_that_was_raised_holds_at_once(self, store: Store, harness: StoreHarness) -> None:
        put_some(store, 3)
        assert len(take(store, 10, limits=(Limit(type="work", interval=3600.0),))) == 1
        harness.elapse(2)
        assert len(take(store, 1, limits=(Limit(type="work", interval=1.0),))) == 1

    # Keys

    def test_wait_that_is_shown_is_the_one_that_holds(self, store: Store, harness: StoreHarness) -> None:
        """Once a rate was raised, limits and explanations show what the next claim goes by."""
        put_some(store, 3)
        slow, fast = (Limit(type="work", interval=3_600.0),), (Limit(type="work", interval=100.0),)
        assert ids(take(store, 10, limits=slow)) == ["j0"]
        for limits, is_held_up in ((slow, True), (fast, False)):
            store.beat(
                WorkerInfo(name="w1", types=("work",), slots=1, running=(), started_at=0.0, limits=limits), 60
            )
            (info,) = look_at_limits(store, ())
            assert (info.next_at is not None, info.tokens) == (is_held_up, 0.0 if is_held_up else 1.0)
            explanation = explain(store, "j1", {})
            assert explanation is not None
            assert (explanation.reason, explanation.until) == (
                (Reason.RATE, info.next_at) if is_held_up else (Reason.POSITION, None)
            )
            assert ids(take(store, 10, limits=limits)) == ([] if is_held_up else ["j1"])
            harness.elapse(INSURANCE + 0.5)

    def test_keyed_limit_is_for_each_key(self, store: Store) -> None:
        put(store, *(new_job(f"{key}{n}", key=key) for key in "abc" for n in range(3)))
        running = take(store, 10, limits=ONE_EACH)
        assert ids(running) == ["a0", "b0", "c0"]
        assert take(store, 10, limits=ONE_EACH) == []
        finish(store, running[1])
        assert ids(take(store, 10, limits=ONE_EACH)) == ["b1"]

    def test_keyed_rate_is_for_each_key(self, store: Store, harness: StoreHarness) -> None:
        put(store, *(new_job(f"{key}{n}", key=key) for key in "ab" for n in range(2)))
        assert ids(take(store, 10, limits=SLOW_EACH)) == ["a0", "b0"]
        assert take(store, 10, limits=SLOW_EACH) == []
        harness.elapse(10)
        assert sorted(ids(take(store, 10, limits=SLOW_EACH))) == ["a1", "b1"]

    def test_order_within_a_key_is_kept_while_it_waits(self, store: Store, harness: StoreHarness) -> None:
        put_some(store, 4, key="a")
        (claim,) = take(store, 10, limits=ONE_EACH)
        assert take(store, 10, limits=ONE_EACH) == []
        put(store, new_job("urgent", key="a", priority=5), new_job("other", key="b"))
        assert ids(take(store, 10, limits=ONE_EACH)) == ["other"]
        seen = []
        for _ in range(4):
            finish(store, claim)
            (claim,) = take(store, 10, limits=ONE_EACH)
            seen.append(claim.id)
        assert seen == ["urgent", "j1", "j2", "j3"]

    def test_many_jobs_of_a_closed_key_hide_no_other(self, store: Store) -> None:
        store.insert([[new_job(f"a{n}", key="a", priority=1) for n in range(900)], [new_job("b", key="b")]])
        assert ids(take(store, 2, limits=ONE_EACH)) == ["a0", "b"]

    def test_job_without_a_key_is_given_it_by_who_claims_it(self, store: Store) -> None:
        put(store, new_job("a", key="k"), new_job("b"), new_job("c"))
        found = take(store, 10, limits=ONE_EACH)
        assert [(claim.id, claim.key) for claim in found] == [("a", "k"), ("b", None), ("c", None)]
        assert store.release([claim.lease for claim in found[1:]], ["k", "other"]) == [True, True]
        assert [store.key_of(id) for id in "abcx"] == ["k", "k", "other", None]
        assert look(store, "b").attempts == 0
        assert [(claim.id, claim.key) for claim in take(store, 10, limits=ONE_EACH)] == [("c", "other")]
        finish(store, found[0])
        assert ids(take(store, 10, limits=ONE_EACH)) == ["b"]

    def test_job_keeps_its_key_when_retried_or_released(self, store: Store, harness: StoreHarness) -> None:
        put(store, new_job("a", key="k"))
        (claim,) = take(store, 10, limits=ONE_EACH)
        finish(store, claim, Move.RETRY, error=BOOM, delay=1)
        assert store.key_of("a") == "k"
        harness.elapse(2)
        for keys in ((), [None]):
            (claim,) = take(store, 10, limits=ONE_EACH)
            assert claim.key == "k"
            store.release([claim.lease], keys)
            assert store.key_of("a") == "k"

    def test_limit_that_was_lifted_strands_nothing(self, store: Store, harness: StoreHarness) -> None:
        put_some(store, 5, key="a")
        (claim,) = take(store, 10, limits=ONE_EACH)
        assert take(store, 10, limits=ONE_EACH) == []
        harness.elapse(INSURANCE + 0.5)
        found: list[str] = []
        for _ in range(3):
            found += ids(take(store, 10))
            harness.elapse(LEAD)
        assert found == ["j1", "j2", "j3", "j4"]
        assert finish(store, claim)

    def test_limit_that_was_widened_strands_nothing(self, store: Store, harness: StoreHarness) -> None:
        put_some(store, 5, key="a")
        take(store, 10, limits=ONE_EACH)
        assert take(store, 10, limits=ONE_EACH) == []
        harness.elapse(INSURANCE + 0.5)
        three = (Limit(type="work", concurrency=3, is_keyed=True),)
        assert ids(take(store, 10, limits=three)) == ["j1", "j2"]

    @pytest.mark.parametrize("limits", [ONE, ONE_EACH], ids=["type", "key"])
    def test_held_up_job_can_be_cancelled_paged_and_counted(
        self, store: Store, limits: tuple[Limit, ...]
    ) -> None:
        put_some(store, 3, key="a")
        (claim,) = take(store, 10, limits=limits)
        assert take(store, 10, limits=limits) == []
        assert look(store, "j1").status is JobStatus.QUEUED
        assert store.ahead("j2") == 1
        assert store.cancel(["j1"]) == [JobStatus.QUEUED]
        assert store.ahead("j2") == 0
        finish(store, claim)
        assert ids(take(store, 10, limits=limits)) == ["j2"]

    def test_held_up_jobs_of_a_paused_queue_stay(self, store: Store) -> None:
        put(store, new_job("a", key="k"), new_job("b", key="k", queue="q"), new_job("c", key="k"))
        (claim,) = take(store, 1, limits=ONE_EACH)
        assert take(store, 10, limits=ONE_EACH) == []
        store.pause("q")
        finish(store, claim)
        (claim,) = take(store, 10, limits=ONE_EACH)
        assert claim.id == "c"
        finish(store, claim)
        assert take(store, 10, limits=ONE_EACH) == []
        store.resume("q")
        assert ids(take(store, 10, limits=ONE_EACH)) == ["b"]

    def test_cancelled_job_at_the_head_of_a_gate_strands_nothing(self, store: Store) -> None:
        put_some(store, 3, key="a")
        put(store, new_job("o", type="other", priority=9))
        (claim,) = take(store, 1, limits=ONE_EACH)
        assert take(store, 10, limits=ONE_EACH) == []
        finish(store, claim)
        assert ids(take(store, 1, types=EITHER, limits=ONE_EACH)) == ["o"]
        store.cancel(["j1"])
        assert ids(take(store, 10, limits=ONE_EACH)) == ["j2"]

    # Limits of queues

    def test_limit_of_a_queue_holds_for_all_its_types_and_no_other_queue(self, store: Store) -> None:
        one = (Limit(queue="mail", concurrency=1),)
        put(store, new_job("a", queue="mail"), new_job("b", queue="mail", type="other"), new_job("c"))
        claims = take(store, 10, types=EITHER, limits=one)
        assert ids(claims) == ["a", "c"]
        assert take(store, 10, types=EITHER, limits=one) == []
        (gate,) = store.limits(queues=["mail"]).queues
        assert (gate.type, gate.key, gate.running, gate.holders) == ("", "mail", 1, ("a",))
        assert store.limits().gates == []
        finish(store, claims[0])
        assert ids(take(store, 10, types=EITHER, limits=one)) == ["b"]

    @pytest.mark.parametrize("limits", [SLOW, SLOW_EACH], ids=["type", "key"])
    def test_job_passes_the_limits_of_its_queue_and_of_its_type(
        self, store: Store, harness: StoreHarness, limits: tuple[Limit, ...]
    ) -> None:
        """A job that one gate does not let in takes nothing from the other."""
        both = (*limits, Limit(queue="mail", interval=10.0, burst=3))
        put(store, *(new_job(f"j{n}", queue="mail", key="k") for n in range(2)))
        put(store, *(new_job(f"o{n}", queue="mail", type="other") for n in range(4)))
        assert ids(take(store, 10, types=EITHER, limits=both)) == ["j0", "o0", "o1"]
        harness.elapse(10)
        assert ids(take(store, 10, types=EITHER, limits=both)) == ["j1"]
        harness.elapse(30)
        assert ids(take(store, 10, types=EITHER, limits=both)) == ["o2", "o3"]

    # Inspect

    def test_gates_tell_who_holds_them_and_until_when(self, store: Store, harness: StoreHarness) -> None:
        assert store.limits().gates == []
        limit = Limit(type="work", interval=10.0, concurrency=2, is_keyed=True)
        put(store, new_job("a", key="x"), new_job("b", key="y"), new_job("c", key="x"))
        first, _ = take(store, 10, limits=(limit,))
        found = store.limits()
        assert [(gate.type, gate.key, gate.running, gate.holders) for gate in found.gates] == [
            ("work", "x", 1, ("a",)),
            ("work", "y", 1, ("b",)),
        ]
        assert [gate.next_at - found.now for gate in found.gates] == pytest.approx([10, 10], abs=0.5)
        assert [gate.key for gate in store.limits("work", "y").gates] == ["y"]
        assert store.limits("other").gates == []
        assert len(store.limits(limit=1).gates) == 1
        finish(store, first)
        harness.elapse(11)
        assert [gate.key for gate in store.limits().gates] == ["y"]

    def test_pruning_forgets_idle_gates_only(self, store: Store, harness: StoreHarness) -> None:
        put(store, new_job("a", key="x"), new_job("b", key="y"), new_job("c", key="y"))
        first, _ = take(store, 10, limits=SLOW_EACH)
        finish(store, first)
        harness.elapse(20)
        store.prune(0)
        assert [gate.key for gate in store.limits().gates] == ["y"]
        assert ids(take(store, 10, limits=SLOW_EACH)) == ["c"]

    # Many at once

    def test_concurrency_is_never_exceeded_by_many_claimers(
        self, store: Store, harness: StoreHarness
    ) -> None:
        put(store, *(new_job(f"j{n}", key=f"k{n % 3}") for n in range(60)))
        limits = (Limit(type="work", concurrency=2, is_keyed=True),)

        def work(handle: Store, name: str) -> list[str]:
            done = []
            for _ in range(12):
                for claim in take(handle, 4, worker=name, limits=limits):
                    holding = [gate for gate in handle.limits().gates if gate.key == claim.key]
                    assert all(gate.running <= 2 for gate in holding)
                    assert finish(handle, claim)
                    done.append(claim.id)
            return done

        with handles(harness) as opened:
            calls = [partial(work, handle, f"w{n}") for n, handle in enumerate(opened)]
            done = [id for found in together(calls) for id in found]
        for _ in range(30):
            for claim in take(store, 10, limits=limits):
                finish(store, claim)
                done.append(claim.id)
        assert Counter(done) == Counter(f"j{n}" for n in range(60))

    def test_limit_of_a_queue_is_never_exceeded_by_many_claimers(
        self, store: Store, harness: StoreHarness
    ) -> None:
        put(store, *(new_job(f"j{n}", type=f"t{n % 2}") for n in range(30)))
        two = (Limit(queue="default", concurrency=2),)
        with handles(harness) as opened:
            calls = [partial(take, handle, 3, types=["t0", "t1"], limits=two) for handle in opened]
            for _ in range(5):
                found = [claim for claims in together(calls) for claim in claims]
                assert len(found) == 2
                assert all(finish(store, claim) for claim in found)

    def test_rate_holds_for_all_handles_together(self, store: Store, harness: StoreHarness) -> None:
        put_some(store, 40)
        limits = (Limit(type="work", interval=LEAD * 10, burst=5),)
        takers = 3 * harness.handles
        answers = from_all_sides(harness, lambda handle, _: take(handle, 10, limits=limits), takers)
        found = [claim for claims in answers for claim in claims]
        # Why one more: on a store whose clock runs, an interval may end meanwhile.
        assert 5 <= len(found) <= 6

    def test_another_handle_knows_the_gates(self, store: Store, harness: StoreHarness) -> None:
        put_some(store, 3)
        take(store, 1, limits=ONE)
        with closing(harness.open()) as other:
            assert take(other, 10, limits=ONE) == []
            assert [gate.holders for gate in other.limits().gates] == [("j0",)]
