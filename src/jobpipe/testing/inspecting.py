"""Inspect: jobs, pages, counts and positions in the queue."""

from __future__ import annotations

from msgspec.structs import replace

from ..model.counts import FailureGroup, Failures, Filter, Page, Tally
from ..model.job import JobError, JobStatus, Move
from ..model.lease import Outcome, Settlement
from ..stores.base import Store
from .harness import StoreHarness
from .inserting import TAGS
from .reading import ids, look, page_ids, pages, tally, totals
from .tools import (
    BOOM,
    bring_one_to_each,
    bring_to,
    finish,
    new_job,
    put,
    rescue_after,
    started,
    take,
    take_one,
)


class Inspecting:
    def test_page_is_newest_first_without_the_heavy_fields(self, store: Store) -> None:
        for id in ("c", "a", "b"):
            put(store, new_job(id, "heavy", priority=len(id)))
        finish(store, take_one(store), Move.RETRY, error=BOOM, delay=9)
        finish(store, take_one(store), result="heavy")
        page = store.page(Filter(), 10)
        assert ids(page.jobs) == ["b", "a", "c"]
        assert page.next is None
        for job in page.jobs:
            assert job == replace(look(store, job.id), payload=None, result=None, history=())

    def test_last_page_has_no_next_even_when_it_is_full(self, store: Store) -> None:
        assert (store.page(Filter(), 10), store.get("j0")) == (Page([], None), None)
        put(store, *(new_job(f"j{n}") for n in range(4)))
        first = store.page(Filter(), 2)
        assert first.next is not None
        second = store.page(Filter(), 2, first.next)
        assert ids(second.jobs) == ["j1", "j0"]
        assert second.next is None

    def test_jobs_are_listed_by_tag_page_by_page(self, store: Store, harness: StoreHarness) -> None:
        put(store, *(new_job(f"j{n}", tags=("even", "all") if n % 2 == 0 else ("all",)) for n in range(6)))
        put(store, new_job("plain"), *(new_job(f"t{n}", tags=(tag,)) for n, tag in enumerate(TAGS)))
        assert page_ids(store, Filter(tag="even"), limit=2) == ["j4", "j2", "j0"]
        assert page_ids(store, Filter(tag="all"), limit=2) == ["j5", "j4", "j3", "j2", "j1", "j0"]
        assert [page_ids(store, Filter(tag=tag)) for tag in TAGS] == [[f"t{n}"] for n in range(len(TAGS))]
        assert page_ids(store, Filter(tag="")) == page_ids(store, Filter(tag="%")) == []
        store.cancel(["j2", "j3"])
        assert page_ids(store, Filter(tag="even", status=JobStatus.CANCELLED)) == ["j2"]
        assert page_ids(store, Filter(tag="all", status=JobStatus.QUEUED, queue="other")) == []
        take(store, 1)
        assert page_ids(store, Filter(tag="even", status=JobStatus.RUNNING, type="work")) == ["j0"]
        harness.elapse(10)
        assert store.prune(5) == 2
        store.discard(["j4"])
        assert page_ids(store, Filter(tag="all")) == ["j5", "j1", "j0"]
        put(store, new_job("j2", tags=("new",)))
        assert page_ids(store, Filter(tag="even")) == ["j0"]

    def test_filters_combine(self, store: Store) -> None:
        put(store, new_job("a"), new_job("b", type="mail"), new_job("c", queue="slow"))
        put(
            store,
            *(new_job(id, type="mail", queue="slow", delay=delay) for id, delay in (("d", 0), ("e", 60))),
        )
        assert page_ids(store, Filter(type="mail")) == ["e", "d", "b"]
        assert page_ids(store, Filter(queue="slow")) == ["e", "d", "c"]
        assert page_ids(store, Filter(status=JobStatus.SCHEDULED)) == ["e"]
        assert page_ids(store, Filter(type="mail", queue="slow"), limit=1) == ["e", "d"]
        assert page_ids(store, Filter(type="mail", queue="slow", status=JobStatus.QUEUED)) == ["d"]
        assert page_ids(store, Filter(status=JobStatus.DONE)) == []
        for hostile in ("' OR 1=1 --", "%", "*", "_", "", "\U0001f680", "a\r\nb"):
            assert page_ids(store, Filter(type=hostile)) == page_ids(store, Filter(queue=hostile)) == [], (
                hostile
            )

    def test_jobs_are_found_by_the_type_of_their_error(self, store: Store) -> None:
        long = JobError(type="Boom", message="so long", traceback="x" * 2_000)
        odd = JobError(type='Bo"o\\m é', message="odd", traceback="y" * 2_000)
        for id, move, error in (
            ("a", Move.FAIL, BOOM),
            ("b", Move.FAIL, long),
            ("c", Move.RETRY, BOOM),
            ("d", Move.FAIL, odd),
            ("e", Move.FAIL, JobError(type="Boomerang", message='{"type":"Boom",')),
        ):
            put(store, new_job(id, type="mail" if id == "b" else "work", tags=("t",) if id == "a" else ()))
            (claim,) = take(store, types=("work", "mail"))
            finish(store, claim, move, error=error, delay=60)
        put(store, new_job("none"))
        assert page_ids(store, Filter(error="Boom")) == ["c", "b", "a"]
        assert page_ids(store, Filter(error="Boom"), limit=1) == ["c", "b", "a"]
        assert page_ids(store, Filter(error="Boom", status=JobStatus.FAILED)) == ["b", "a"]
        assert page_ids(store, Filter(error="Boom", type="mail")) == ["b"]
        assert page_ids(store, Filter(error="Boom", tag="t")) == ["a"]
        assert page_ids(store, Filter(error=odd.type)) == ["d"]
        for hostile in ("Bo", "boom", "%", "*", "Boom%", "' OR 1=1 --", ""):
            assert page_ids(store, Filter(error=hostile)) == []

    def test_failures_are_grouped_by_type_and_error(self, store: Store, harness: StoreHarness) -> None:
        assert store.failures() == Failures(failures=[], counted=0, is_complete=True)
        other = JobError(type='Other"\\ é', message="m", traceback="x" * 2_000)
        for id in "abcde":
            put(store, new_job(id, type="mail" if id == "b" else "work"))
            (claim,) = take(store, types=("work", "mail"))
            finish(store, claim, Move.FAIL, error=other if id == "c" else BOOM)
            harness.elapse(10)
        finish(store, started(store, "retried"), Move.RETRY, error=BOOM, delay=60)
        bring_to(store, "cancelled", JobStatus.CANCELLED)

        def group(error: JobError, *ids: str) -> FailureGroup:
            ended = [look(store, id) for id in ids]
            first_at, last_at = ended[0].finished_at, ended[-1].finished_at
            assert first_at is not None
            assert last_at is not None
            times = {"first_at": first_at, "last_at": last_at}
            return FailureGroup(
                type=ended[0].type, error=error.type, count=len(ids), last_id=ids[-1], **times
            )

        groups = [group(BOOM, "a", "d", "e"), group(other, "c"), group(BOOM, "b")]
        assert store.failures() == Failures(failures=groups, counted=5, is_complete=True)
        cut = [group(BOOM, "d", "e"), group(other, "c")]
        assert store.failures(3) == Failures(failures=cut, counted=3, is_complete=False)
        assert store.failures(5).is_complete
        store.retry(["e"])
        store.delete(["c"])
        assert store.failures().failures == [group(BOOM, "a", "d"), group(BOOM, "b")]

    def test_failures_of_more_jobs_than_one_step_reads(self, store: Store) -> None:
        store.insert([[new_job(f"j{n}") for n in range(1_200)]])
        claims = take(store, 1_200)
        claims += take(store, 1_200 - len(claims))
        outcome = Outcome(move=Move.FAIL, error=BOOM)
        store.settle([Settlement(claim.lease, outcome) for claim in claims])
        (whole,) = store.failures().failures
        assert whole.count == 1_200
        assert (store.failures(1_100).counted, store.failures(1_100).is_complete) == (1_100, False)

    def test_filter_by_status_sees_what_came_due(self, store: Store, harness: StoreHarness) -> None:
        put(store, new_job("a", delay=10), new_job("b", delay=100))
        harness.elapse(11)
        assert page_ids(store, Filter(status=JobStatus.QUEUED)) == ["a"]
        assert page_ids(store, Filter(status=JobStatus.SCHEDULED)) == ["b"]
        assert [job.status for job in store.page(Filter(), 5).jobs] == [JobStatus.SCHEDULED, JobStatus.QUEUED]

    def test_pages_hold_still_while_jobs_are_inserted(self, store: Store) -> None:
        """Every job that was there at the first page comes once, in order, whatever is added meanwhile."""
        store.insert([[new_job(f"j{n}", queue=f"q{n % 2}") for n in range(2_000)]])
        found: list[str] = []
        for number, jobs in enumerate(pages(store, Filter(queue="q0"), 70)):
            found += ids(jobs)
            put(store, new_job(f"extra-{number}", queue="q0"))
        assert found == [f"j{n}" for n in range(1_998, -1, -2)]

    def test_pages_go_on_while_jobs_are_pruned(self, store: Store, harness: StoreHarness) -> None:
        put(store, *(new_job(f"j{n}") for n in range(100)))
        first = store.page(Filter(), 10)
        store.cancel([f"j{n}" for n in range(85, 95)])
        harness.elapse(10)
        assert store.prune(5) == 10
        assert ids(store.page(Filter(), 10, first.next).jobs) == [f"j{n}" for n in range(84, 74, -1)]

    def test_counts_tell_queue_type_and_status(self, store: Store) -> None:
        put(store, new_job("a"), new_job("b"), new_job("c", queue="slow", type="mail"))
        put(store, new_job("d", delay=60))
        finish(store, take_one(store))
        rows = {row for row in store.counts().tallies if row.total}
        assert rows == {
            Tally("default", "work", JobStatus.QUEUED, 1, 2),
            Tally("default", "work", JobStatus.SCHEDULED, 1, 1),
            Tally("default", "work", JobStatus.RUNNING, 0, 1),
            Tally("default", "work", JobStatus.DONE, 1, 1),
            Tally("slow", "mail", JobStatus.QUEUED, 1, 1),
        }

    def test_totals_count_every_change(self, store: Store, harness: StoreHarness) -> None:
        put(store, new_job("a", delay=10))
        harness.elapse(11)
        store.release([take_one(store).lease])
        finish(store, take_one(store), Move.RETRY, error=BOOM, delay=10)
        harness.elapse(11)
        take_one(store)
        rescue_after(store, harness)
        store.cancel(["a"])
        store.retry(["a"])
        finish(store, take_one(store))
        assert tally(store) == {JobStatus.DONE: 1}
        assert totals(store) == {
            JobStatus.SCHEDULED: 2,
            JobStatus.QUEUED: 5,
            JobStatus.RUNNING: 4,
            JobStatus.CANCELLED: 1,
            JobStatus.DONE: 1,
        }

    def test_counts_name_paused_queues_without_jobs(self, store: Store) -> None:
        store.pause("empty")
        store.pause("other")
        assert store.counts().paused == {"empty", "other"}
        store.resume("empty")
        assert store.counts().paused == {"other"}

    def test_ahead_counts_those_that_are_claimed_before(self, store: Store, harness: StoreHarness) -> None:
        started(store, "running")
        put(store, new_job("a"), new_job("b", type="mail"), new_job("elsewhere", queue="slow"))
        put(store, new_job("later", delay=60), new_job("c"), new_job("urgent", priority=1))
        assert [store.ahead(id) for id in ("urgent", "a", "b", "c", "elsewhere")] == [0, 1, 2, 3, 0]
        harness.elapse(61)
        assert store.ahead("later") == 4
        store.cancel(["a"])
        assert store.ahead("c") == 2

    def test_every_status_can_be_seen(self, store: Store) -> None:
        bring_one_to_each(store)
        assert tally(store) == dict.fromkeys(JobStatus, 1)
        for status in JobStatus:
            assert page_ids(store, Filter(status=status)) == [status.value]
        assert take(store, 10)[0].id == "queued"
