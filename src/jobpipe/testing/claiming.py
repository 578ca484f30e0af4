"""Claiming: which jobs, in which order, and what a claim tells."""

from __future__ import annotations

import pytest

from ..model.gate import Limit
from ..model.job import JobStatus, Move
from ..model.lease import QueueChoice, Room
from ..stores.base import Store
from .harness import StoreHarness
from .reading import ids, look, seconds_between, tally
from .tools import BOOM, bring_to, finish, new_job, put, rescue_after, started, take, take_one


class Claiming:
    def test_claim_tells_all_that_running_takes(self, store: Store) -> None:
        put(store, new_job("a", {"x": 1}, queue="slow", max_retries=2, priority=9, deadline=1.5))
        (claim,) = store.claim("w1", ["work"], 5, 60).claims
        job = look(store, "a")
        assert (claim.id, claim.type, claim.queue, claim.payload) == ("a", "work", "slow", b'{"x":1}')
        assert (claim.max_retries, claim.priority, claim.deadline) == (2, 9, 1.5)
        assert claim.attempts == claim.lease.attempt == 1
        assert (claim.lease.id, claim.lease.worker) == ("a", "w1")
        assert claim.lease.token
        assert claim.run_at == pytest.approx(job.run_at.timestamp(), abs=1e-5)
        assert claim.created_at == pytest.approx(job.created_at.timestamp(), abs=1e-5)
        assert job.started_at is not None
        assert claim.started_at == pytest.approx(job.started_at.timestamp(), abs=1e-5)
        assert (job.status, job.attempts, job.finished_at) == (JobStatus.RUNNING, 1, None)

    def test_only_queued_jobs_are_claimed(self, store: Store) -> None:
        others = [status for status in JobStatus if status is not JobStatus.QUEUED]
        for status in others:
            bring_to(store, status.value, status)
        before = [look(store, status.value) for status in others]
        assert take(store, 10, worker="w2") == []
        assert [look(store, status.value) for status in others] == before

    def test_every_claim_has_a_token_of_its_own(self, store: Store) -> None:
        tokens = set()
        put(store, new_job("a"))
        for _ in range(5):
            claim = take_one(store)
            tokens.add(claim.lease.token)
            store.release([claim.lease])
        assert len(tokens) == 5

    def test_limit_is_kept(self, store: Store) -> None:
        put(store, *(new_job(f"j{n}") for n in range(5)))
        assert ids(take(store, 2)) == ["j0", "j1"]
        assert ids(take(store, 2)) == ["j2", "j3"]
        assert ids(take(store, 2)) == ["j4"]
        assert take(store, 2) == []

    def test_order_is_priority_then_run_at_then_insertion(self, store: Store, harness: StoreHarness) -> None:
        put(
            store,
            new_job("late", delay=20),
            new_job("early-1", delay=10),
            new_job("urgent", delay=30, priority=1000),
            new_job("early-2", delay=10, type="other"),
            new_job("whenever", priority=-1000),
            new_job("early-3", delay=10, queue="other"),
        )
        harness.elapse(40)
        found = ids(take(store, 10, types=["work", "other"]))
        assert found == ["urgent", "early-1", "early-2", "early-3", "late", "whenever"]

    def test_order_holds_from_claim_to_claim(self, store: Store) -> None:
        put(store, *(new_job(f"j{n}", priority=n % 3, queue=f"q{n % 2}") for n in range(12)))
        found = [take_one(store).id for _ in range(12)]
        assert found == sorted(found, key=lambda name: (-(int(name[1:]) % 3), int(name[1:])))

    def test_job_that_came_due_waits_behind_earlier_ones(self, store: Store, harness: StoreHarness) -> None:
        put(store, new_job("scheduled", delay=10))
        harness.elapse(5)
        put(store, new_job("first"))
        harness.elapse(10)
        put(store, new_job("last"))
        assert ids(take(store, 3)) == ["first", "scheduled", "last"]

    def test_unknown_types_are_left_alone(self, store: Store) -> None:
        put(
            store,
            new_job("a", type="mail"),
            new_job("b"),
            new_job("c", type="Work"),
            new_job("d", type="mail"),
        )
        assert ids(take(store, 10, types=["work", "unheard-of"])) == ["b"]
        job = look(store, "a")
        assert (job.status, job.attempts, job.started_at) == (JobStatus.QUEUED, 0, None)
        assert ids(take(store, 10, types=[])) == []
        assert ids(take(store, 10, types=["mail", "mail"])) == ["a", "d"], "named twice, it counts once"

    def test_many_unknown_jobs_do_not_hide_a_known_one(self, store: Store) -> None:
        store.insert([[new_job(f"x{n}", type="unknown", priority=9) for n in range(300)], [new_job("a")]])
        assert ids(take(store, 1)) == ["a"]

    def test_due_in_tells_of_the_next_scheduled_job(self, store: Store, harness: StoreHarness) -> None:
        assert store.claim("w1", ["work"], 1, 60).due_in is None
        put(store, new_job("a", delay=500), new_job("b", delay=100), new_job("c"))
        for seconds, found, due_in in ((0, ["c"], 100), (60, [], 40), (60, ["b"], 380)):
            harness.elapse(seconds)
            result = store.claim("w1", ["work"], 1, 60)
            assert ids(result.claims) == found
            assert result.due_in == pytest.approx(due_in - 5, abs=5)
        store.cancel(["a"])
        assert store.claim("w1", ["work"], 1, 60).due_in is None

    def test_paused_queue_is_passed_over(self, store: Store) -> None:
        for _ in range(2):
            store.pause("slow")
        put(store, new_job("a", queue="slow", priority=9), new_job("b"))
        assert ids(take(store, 10)) == ["b"]
        assert look(store, "a").status is JobStatus.QUEUED
        store.resume("slow")
        assert ids(take(store, 10)) == ["a"]
        for queue in ("slow", "never-heard-of"):
            store.resume(queue)
        assert store.counts().paused == frozenset()

    def test_paused_queue_takes_jobs_and_ends_runs(self, store: Store, harness: StoreHarness) -> None:
        claim = started(store, "a")
        store.pause("default")
        put(store, new_job("b"), new_job("c", delay=10))
        assert finish(store, claim, Move.RETRY, error=BOOM)
        harness.elapse(11)
        assert take(store, 10) == []
        assert tally(store) == {JobStatus.QUEUED: 3}
        store.resume("default")
        assert len(take(store, 10)) == 3

    def test_claim_begins_with_a_clean_slate(self, store: Store, harness: StoreHarness) -> None:
        """What the run before told of its progress is gone; its error stays until the job succeeds."""
        assert finish(store, started(store, "a", worker="w1"), Move.RETRY, error=BOOM)
        harness.elapse(5)
        second = take_one(store, worker="w2")
        job = look(store, "a")
        assert (job.attempts, second.attempts, second.lease.attempt) == (2, 2, 2)
        assert job.error == BOOM
        assert job.progress is None
        assert seconds_between(job.created_at, job.started_at) >= 5

    def test_many_lanes_are_claimed_in_one_order(self, store: Store) -> None:
        store.insert([[new_job(f"j{n}", queue=f"q{n % 7}", type=f"t{n % 5}") for n in range(200)]])
        assert ids(take(store, 200, types=[f"t{n}" for n in range(5)])) == [f"j{n}" for n in range(200)]

    # Chosen queues

    def test_only_chosen_queues_are_claimed_from(self, store: Store) -> None:
        queues = ("mail", "media", "x")
        put(store, *(new_job(f"{queue}{n}", queue=queue) for n in range(2) for queue in queues))
        put(store, new_job("urgent", queue="x", priority=9))
        chosen = QueueChoice(only=frozenset({"mail", "media", "unheard-of"}))
        assert ids(take(store, 3, queues=chosen)) == ["mail0", "media0", "mail1"]
        assert ids(take(store, 10, queues=chosen)) == ["media1"]
        result = store.claim("w1", ["work"], 10, 60, queues=chosen)
        assert (result.claims, result.due_in, result.has_more) == ([], None, False)
        assert ids(take(store, 10)) == ["urgent", "x0", "x1"]

    def test_excluded_queues_are_left_alone(self, store: Store) -> None:
        put(store, *(new_job(queue, queue=queue) for queue in ("mail", "media", "bulk")))
        chosen = QueueChoice(excluded=frozenset({"bulk", "unheard-of"}))
        assert ids(take(store, 10, queues=chosen)) == ["mail", "media"]
        assert look(store, "bulk").status is JobStatus.QUEUED
        assert ids(take(store, 10, queues=QueueChoice(only=frozenset()))) == []

    def test_paused_queue_is_passed_over_though_it_is_chosen(self, store: Store) -> None:
        put(store, new_job("a", queue="mail"), new_job("b", queue="media"))
        store.pause("mail")
        chosen = QueueChoice(only=frozenset({"mail", "media"}))
        assert ids(take(store, 10, queues=chosen)) == ["b"]

    @pytest.mark.parametrize("limits", [(), (Limit(type="work", concurrency=50),)], ids=["free", "limited"])
    def test_each_queue_has_the_room_that_is_told(self, store: Store, limits: tuple[Limit, ...]) -> None:
        put(store, *(new_job(f"mail{n}", queue="mail", priority=9) for n in range(20)))
        put(store, *(new_job(f"media{n}", queue="media", type="other") for n in range(3)))
        put(store, new_job("bulk", queue="bulk", priority=9))
        types = ["work", "other"]
        chosen = QueueChoice(rooms={"mail": Room(3, 1), "media": Room(2, 2), "none": Room(4, 4)})
        result = store.claim("w1", types, 9, 60, limits, queues=chosen)
        assert ids(result.claims) == ["mail0", "mail1", "mail2", "media0", "media1"]
        assert [claim.has_begun for claim in result.claims] == [True, False, False, True, True]
        assert result.has_more
        assert [look(store, f"mail{n}").status for n in (0, 1)] == [JobStatus.RUNNING, JobStatus.QUEUED]
        chosen = QueueChoice(rooms={"mail": Room(1, 0), "media": Room(3, 3)})
        result = store.claim("w1", types, 4, 60, limits, queues=chosen)
        found = [(claim.id, claim.has_begun) for claim in result.claims]
        assert found == [("mail3", False), ("media2", True)]

    def test_suspect_ends_the_claim_of_its_queue_only(self, store: Store, harness: StoreHarness) -> None:
        put(store, new_job("a", queue="mail"), new_job("b", queue="mail"))
        assert len(take(store, lease=30, begin=0)) == 1
        assert ids(rescue_after(store, harness, 31)) == ["a"]
        put(store, new_job("c", queue="media"))
        chosen = QueueChoice(rooms={"mail": Room(2, 0), "media": Room(2, 0)})
        assert ids(take(store, 4, queues=chosen)) == ["c"]
        chosen = QueueChoice(rooms={"mail": Room(2, 1)})
        assert ids(take(store, 4, queues=chosen)) == ["a", "b"]

    def test_jobs_held_up_by_a_key_are_claimed_by_a_worker_of_their_queue(self, store: Store) -> None:
        """Also when one of another queue was the first to look at the gate that opened."""
        limits = (Limit(type="work", concurrency=1, is_keyed=True),)
        mail, media = (QueueChoice(only=frozenset({queue})) for queue in ("mail", "media"))
        put(store, *(new_job(f"j{n}", queue="media", key="k") for n in range(2)))
        (claim,) = store.claim("w1", ["work"], 10, 60, limits, queues=media).claims
        put(store, new_job("other", queue="mail", key="x"))
        assert finish(store, claim)
        assert ids(take(store, 10, worker="w2", limits=limits, queues=mail)) == ["other"]
        assert ids(take(store, 10, limits=limits, queues=media)) == ["j1"]
