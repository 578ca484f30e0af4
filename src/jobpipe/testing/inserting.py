"""Putting jobs in: whole batches, ids that are taken, queues that are full."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest

from ..errors import BadInputError, JobConflictError, QueueFullError, TooManyNamesError, TooManyScheduledError
from ..model.counts import Counts, Filter
from ..model.job import JobStatus, Move, OnDuplicate, instant
from ..model.newjob import Receipt
from ..stores.base import Store
from .harness import StoreHarness
from .reading import ids, look, page_ids, seconds_between, tally, totals
from .tools import bring_one_to_each, bring_to, finish, new_job, put, started, take

HOSTILE: list[Any] = [
    None,
    True,
    "",
    "'; DROP TABLE jobs; --",
    "quotes \" and \\ and ' and `",
    "%s %d {} $1 :name ?",
    "zero\u200bwidth, right-to-left \u202e, line\u2028separator, \x1b[31m, \x7f, \r\n",
    "\u00e9 is not e\u0301, \U0001f469\u200d\U0001f680, \U0010ffff, \ufffe",
    2**63,
    -(2**63) - 1,
    2**64 + 1,
    10**200,
    0.1,
    -0.0,
    1.0,
    5e-324,
    1.7976931348623157e308,
    [],
    {},
    {"": {"": [[], {}]}, "__proto__": 1, "$ref": "#", "b": 1, "a": 2},
    ["\\u0000", "\\", "\\\\u0000"],
    "x" * 250_000,
]


TAGS = ("a b", "'; DROP", '"\\,{}', "%s {} $1", "*", "\u00e9\U0001f680", "null", "x" * 50)


class Inserting:
    def test_new_job_is_queued_with_everything_that_was_sent(self, store: Store) -> None:
        new = new_job("a", {"x": [1]}, type="mail", queue="slow", max_retries=7, priority=-5, deadline=2.5)
        assert put(store, new) == [Receipt("a", JobStatus.QUEUED, True)]
        job = look(store, "a")
        assert (job.id, job.type, job.queue, job.status) == ("a", "mail", "slow", JobStatus.QUEUED)
        assert (job.payload, job.max_retries, job.priority, job.deadline) == ({"x": [1]}, 7, -5, 2.5)
        assert (job.attempts, job.result, job.error, job.progress) == (0, None, None, None)
        assert (job.started_at, job.finished_at, job.history) == (None, None, ())
        assert job.run_at == job.created_at

    def test_delayed_job_is_scheduled_until_it_comes_due(self, store: Store, harness: StoreHarness) -> None:
        assert put(store, new_job("a", delay=100)) == [Receipt("a", JobStatus.SCHEDULED, True)]
        job = look(store, "a")
        assert seconds_between(job.created_at, job.run_at) == pytest.approx(100, abs=0.01)
        harness.elapse(50)
        assert look(store, "a").status is JobStatus.SCHEDULED
        harness.elapse(51)
        assert look(store, "a").status is JobStatus.QUEUED

    def test_due_job_reads_as_queued_in_every_verb(self, store: Store, harness: StoreHarness) -> None:
        put(store, new_job("a", delay=10), new_job("b", delay=10))
        harness.elapse(11)
        assert put(store, new_job("a", delay=10)) == [Receipt("a", JobStatus.QUEUED, False)]
        assert page_ids(store) == ["b", "a"]
        assert tally(store) == {JobStatus.QUEUED: 2}
        assert store.ahead("b") == 1
        assert store.retry(["a"]) == [JobStatus.QUEUED]
        assert store.cancel(["a"]) == [JobStatus.QUEUED]

    def test_expiry_unique_name_and_tags_are_kept(self, store: Store) -> None:
        more: dict[str, Any] = {"unique": "report:7", "on_duplicate": OnDuplicate.REPLACE, "max_wait": 2.5}
        tags = ("b", "a", *TAGS)
        put(store, new_job("plain"), new_job("a", expires_in=100.0, tags=tags, **more))
        put(store, new_job("b", expires_at=4e9), new_job("c", tags=("one",)))
        job = look(store, "a")
        assert seconds_between(job.created_at, job.expires_at) == pytest.approx(100, abs=0.01)
        assert (job.unique, job.on_duplicate, job.max_wait) == ("report:7", OnDuplicate.REPLACE, 2.5)
        assert job.tags == tags
        assert look(store, "b").expires_at == instant(4e9)
        assert [(job.unique, job.tags, job.expires_at) for job in store.page(Filter(), 10).jobs] == [
            (None, ("one",), None),
            (None, (), instant(4e9)),
            ("report:7", tags, job.expires_at),
            (None, (), None),
        ]
        plain = look(store, "plain")
        assert (plain.on_duplicate, plain.max_wait, plain.tags) == (None, None, ())
        assert ids(take(store, 10)) == ["plain", "a", "b", "c"]

    def test_run_at_wins_over_delay(self, store: Store) -> None:
        put(store, new_job("now"))
        now = look(store, "now").created_at.timestamp()
        put(store, new_job("past", run_at=now - 1_000, delay=500), new_job("future", run_at=now + 1_000))
        for id, status, at in (
            ("past", JobStatus.QUEUED, now - 1_000),
            ("future", JobStatus.SCHEDULED, now + 1_000),
        ):
            assert look(store, id).status is status
            assert look(store, id).run_at.timestamp() == pytest.approx(at, abs=1e-5)

    def test_receipts_come_in_the_order_of_the_batch(self, store: Store) -> None:
        assert ids(put(store, new_job("b"), new_job("a", delay=60), new_job("c"))) == ["b", "a", "c"]
        assert page_ids(store) == ["c", "a", "b"]

    def test_empty_calls_do_nothing(self, store: Store) -> None:
        assert store.insert([[]]) == [[]]
        for verb in (store.insert, store.settle, store.release, store.cancel, store.retry):
            assert verb([]) == [], verb
        assert store.extend([], 10) == []
        store.progress([])
        assert tally(store) == {}

    def test_lost_reply_and_insert_again_is_one_job(self, store: Store) -> None:
        batch = [new_job("a", {"x": 1}), new_job("b", delay=60)]
        first, again = put(store, *batch), put(store, *batch)
        assert [receipt.is_new for receipt in first] == [True, True]
        assert again == [Receipt(receipt.id, receipt.status, False) for receipt in first]
        assert sum(totals(store).values()) == 2

    def test_same_id_again_changes_nothing_in_any_status(self, store: Store) -> None:
        """The same content is told the status; other content is a conflict."""
        for id in bring_one_to_each(store):
            before = look(store, id)
            more: dict[str, Any] = {"expires_at": 1.0} if id == JobStatus.EXPIRED else {}
            again = new_job(id, delay=3600 if id == JobStatus.SCHEDULED else 0, **more)
            assert put(store, again) == [Receipt(id, JobStatus(id), False)]
            (answer,) = store.insert([[new_job(id, "other")]])
            assert isinstance(answer, JobConflictError), id
            assert answer.id == id
            assert look(store, id) == before

    def test_a_job_that_was_stored_under_a_former_default_is_the_same_job(self, store: Store) -> None:
        put(store, new_job("a", max_retries=3))
        again = new_job("a", max_retries=10, former_retries=(5, 3))
        assert put(store, again) == [Receipt("a", JobStatus.QUEUED, False)]
        assert [(each.id, each.is_new) for each in put(store, new_job("b"), again)] == [
            ("b", True),
            ("a", False),
        ]
        assert look(store, "a").max_retries == 3
        for other in (new_job("a", max_retries=10), new_job("a", "x", max_retries=10, former_retries=(5, 3))):
            (answer,) = store.insert([[other]])
            assert isinstance(answer, JobConflictError)

    def test_ids_differ_by_case_and_the_longest_names_fit(self, store: Store) -> None:
        receipts = put(
            store, new_job("A", 1), new_job("a", 2), new_job("i" * 200, type="t" * 100, queue="q" * 100)
        )
        assert [receipt.is_new for receipt in receipts] == [True] * 3
        assert (look(store, "A").payload, look(store, "a").payload) == (1, 2)
        assert (look(store, "i" * 200).type, look(store, "i" * 200).queue) == ("t" * 100, "q" * 100)

    def test_batch_with_a_conflict_leaves_nothing_behind(self, store: Store) -> None:
        put(store, new_job("a"))
        answers = store.insert(
            [[new_job("b"), new_job("a", "other"), new_job("c")], [new_job("d")], [new_job("a")]]
        )
        assert isinstance(answers[0], JobConflictError)
        assert answers[1:] == [
            [Receipt("d", JobStatus.QUEUED, True)],
            [Receipt("a", JobStatus.QUEUED, False)],
        ]
        assert page_ids(store) == ["d", "a"]

    def test_id_twice_in_a_batch_is_a_conflict_even_with_the_same_content(self, store: Store) -> None:
        (answer,) = store.insert([[new_job("b"), new_job("a"), new_job("a")]])
        assert isinstance(answer, JobConflictError)
        assert answer.id == "a"
        assert "is twice in the batch" in str(answer)
        assert page_ids(store) == []

    def test_batches_see_those_before_them(self, store: Store) -> None:
        first, same, other, rest = store.insert(
            [[new_job("a")], [new_job("a"), new_job("b")], [new_job("b", "other")], [new_job("c")]]
        )
        assert first == [Receipt("a", JobStatus.QUEUED, True)]
        assert same == [Receipt("a", JobStatus.QUEUED, False), Receipt("b", JobStatus.QUEUED, True)]
        assert isinstance(other, JobConflictError)
        assert rest == [Receipt("c", JobStatus.QUEUED, True)]
        refused, accepted = store.insert([[new_job("d", 1), new_job("a", "other")], [new_job("d", 2)]])
        assert isinstance(refused, JobConflictError)
        assert accepted == [Receipt("d", JobStatus.QUEUED, True)], "one that is refused is not seen"
        assert look(store, "d").payload == 2

    def test_full_queue_refuses_the_whole_batch(self, store: Store) -> None:
        put(store, new_job("a"), new_job("b"))
        (answer,) = store.insert([[new_job("c"), new_job("d")]], capacity=3)
        assert type(answer) is QueueFullError
        assert (answer.queue, answer.waiting, answer.needed, answer.capacity) == ("default", 2, 2, 3)
        assert page_ids(store) == ["b", "a"]
        refused, accepted = store.insert([[new_job("c"), new_job("d")], [new_job("c")]], capacity=3)
        assert isinstance(refused, QueueFullError)
        assert accepted == [Receipt("c", JobStatus.QUEUED, True)], "one that is refused takes no room"

    def test_capacity_is_counted_per_queue(self, store: Store) -> None:
        answers = store.insert(
            [
                [new_job("a"), new_job("b", queue="other")],
                [new_job("c"), new_job("d", queue="other")],
                [new_job("e", queue="third")],
            ],
            capacity=1,
        )
        assert [type(answer) for answer in answers] == [list, QueueFullError, list]
        assert page_ids(store) == ["e", "b", "a"]

    def test_full_queue_knows_its_jobs_again(self, store: Store) -> None:
        """A lost reply must not turn into a refusal: only really new jobs need room."""
        put(store, new_job("a"), new_job("b"))
        same, mixed = store.insert([[new_job("a"), new_job("b")], [new_job("a"), new_job("c")]], capacity=2)
        assert same == [Receipt("a", JobStatus.QUEUED, False), Receipt("b", JobStatus.QUEUED, False)]
        assert isinstance(mixed, QueueFullError)
        assert mixed.needed == 1

    def test_only_jobs_that_are_ready_take_room(self, store: Store) -> None:
        for status in JobStatus:
            if status is not JobStatus.QUEUED:
                bring_to(store, status.value, status)
        (answer,) = store.insert([[new_job("a"), new_job("b", delay=60)]], capacity=1)
        assert answer == [Receipt("a", JobStatus.QUEUED, True), Receipt("b", JobStatus.SCHEDULED, True)]
        (answer,) = store.insert([[new_job("c", delay=60)]], capacity=1)
        assert isinstance(answer, list)

    def test_scheduled_jobs_have_one_bound_over_all_queues(self, store: Store, harness: StoreHarness) -> None:
        put(store, new_job("a", delay=60), new_job("b", queue="other", delay=90))
        (answer,) = store.insert([[new_job("c", queue="third", delay=60), new_job("d")]], scheduled=2)
        assert type(answer) is TooManyScheduledError
        assert (answer.queue, answer.waiting, answer.needed, answer.capacity) == ("third", 2, 1, 2)
        assert "JOBPIPE_SCHEDULED_SIZE" in str(answer)
        answers = store.insert(
            [[new_job("d")], [new_job("e", run_at=1.0)], [new_job("f", run_at=1e10)]], scheduled=2
        )
        assert [type(answer) for answer in answers] == [list, list, TooManyScheduledError], "two are ready"
        harness.elapse(61)
        answers = store.insert([[new_job("g", delay=60)], [new_job("h", delay=60)]], scheduled=2)
        assert [type(answer) for answer in answers] == [list, TooManyScheduledError], "one has come due"

    def test_retry_is_never_refused_for_want_of_room(self, store: Store) -> None:
        claim = started(store, "a")
        store.insert([[new_job("b")], [new_job("c", delay=60)]], capacity=1, scheduled=1)
        assert finish(store, claim, Move.RETRY, delay=60)
        assert tally(store) == {JobStatus.QUEUED: 1, JobStatus.SCHEDULED: 2}
        (answer,) = store.insert([[new_job("d")]], capacity=1)
        assert isinstance(answer, QueueFullError)
        assert answer.waiting == 1

    def test_names_are_bounded(self, store: Store) -> None:
        put(store, new_job("a"), new_job("b", type="mail"))
        queue, *others = store.insert(
            [
                [new_job("c", queue="new"), new_job("d")],
                [new_job("e", type="new")],
                [new_job("f"), new_job("a"), new_job("g", type="mail", delay=60)],
                [new_job("h", type="x"), new_job("i", type="y")],
            ],
            names=2,
        )
        assert isinstance(queue, TooManyNamesError)
        assert (queue.queue, queue.type, queue.most, queue.field) == ("new", "work", 2, "queue")
        assert "JOBPIPE_MAX_NAMES" in str(queue)
        assert [type(answer) for answer in others] == [TooManyNamesError, list, TooManyNamesError]
        batches = [[new_job("h", type="x"), new_job("i", type="x")], [new_job("k", type="y")]]
        assert [type(answer) for answer in store.insert(batches, names=3)] == [list, TooManyNamesError]

    def test_names_without_jobs_are_forgotten(self, store: Store, harness: StoreHarness) -> None:
        put(store, *(new_job(f"j{n}", queue=f"q{n}", type=f"t{n}", delay=n % 2 * 60) for n in range(20)))
        put(store, new_job("a"), new_job("b", queue="gone"), new_job("c", queue="stays", type="t0"))
        store.cancel([f"j{n}" for n in range(20)] + ["b"])
        harness.elapse(10)
        assert store.prune(1, limit=5) == 5
        assert len(store.counts().tallies) > 5, "there may be more to delete: not yet"
        assert store.prune(1) == 16
        left = store.counts()
        assert {(row.queue, row.type) for row in left.tallies} == {("default", "work"), ("stays", "t0")}
        assert left.retired == {
            (type, status): 1 for type in ("work", "t0") for status in (JobStatus.QUEUED, JobStatus.CANCELLED)
        }, "the totals of a type do not shrink while it has jobs"
        (full, room) = store.insert(
            [[new_job("d", queue="x"), new_job("e", queue="y")], [new_job("d", queue="x")]], names=3
        )
        assert isinstance(full, TooManyNamesError)
        assert isinstance(room, list), "names that were forgotten make room"
        store.cancel(["a", "c", "d"])
        harness.elapse(10)
        store.prune(1)
        assert store.counts() == Counts([], frozenset(), {})

    def test_payload_and_result_come_back_equal(self, store: Store) -> None:
        put(store, *(new_job(f"j{n}", value) for n, value in enumerate(HOSTILE)))
        for claim, value in zip(take(store, len(HOSTILE)), HOSTILE, strict=True):
            case = ascii(value)[:30]
            assert claim.payload == new_job("a", value).payload, case
            assert finish(store, claim, result=[value]), case
            job = look(store, claim.id)
            assert (job.payload, job.result) == (value, [value]), case
            assert (type(job.payload), repr(job.payload)) == (type(value), repr(value)), case

    def test_foreign_connection_is_refused(self, store: Store) -> None:
        with pytest.raises(BadInputError) as caught:
            store.insert_in(object(), [new_job("a")])
        assert caught.value.field == "connection"
        assert store.get("a") is None

    def test_another_handle_sees_what_was_put_in(self, store: Store, harness: StoreHarness) -> None:
        put(store, new_job("a", "x"))
        with closing(harness.open()) as other, closing(store.sibling()) as sibling:
            assert look(other, "a") == look(sibling, "a") == look(store, "a")
            put(sibling, new_job("b"))
            assert page_ids(other) == page_ids(store) == ["b", "a"]

    def test_store_is_there_until_it_is_closed(self, store: Store, harness: StoreHarness) -> None:
        assert store.migrate() == []
        assert all(isinstance(remark, str) for remark in store.check())
        assert "://" in store.url
        other = harness.open()
        for _ in range(2):
            other.close()
