"""Logs and traces of jobs: what runs logged is stored in order, with the attempt, within bounds, and only by who has the lease."""

from __future__ import annotations

from contextlib import closing

import pytest
from msgspec import json
from msgspec.structs import replace

from ..model.job import Move, OnDuplicate, instant
from ..model.lease import Claim, Outcome, Settlement
from ..model.logs import LARGEST_CHUNK, MOST_OF_ATTEMPT, MOST_OF_JOB, JobLogs, LogChunk
from ..model.newjob import NewJob
from ..stores.base import News, Store
from ..stores.memory import MemoryStore
from .harness import StoreHarness
from .tools import BOOM, finish, move_away_and_back, new_job, put, rescue_after, started, take, take_one

AT = 1_800_000_000.25


def chunk(*messages: str, start: int = 0, cut: int = 0) -> LogChunk:
    """A chunk as the runner makes it."""
    lines = json.encode([(AT, "INFO", "app", message) for message in messages])
    return LogChunk(start=start, cut=cut, count=len(messages), size=len(lines), lines=lines.decode())


def settle(store: Store, claim: Claim, *chunks: LogChunk, move: Move = Move.SUCCEED) -> bool:
    error = BOOM if move in (Move.RETRY, Move.FAIL) else None
    (is_recorded,) = store.settle([Settlement(claim.lease, Outcome(move=move, error=error), 0.0, chunks)])
    return is_recorded


def logs(store: Store, id: str = "a", after: int = 0) -> JobLogs:
    found = store.logs(id, after)
    assert found is not None
    return found


def messages(store: Store, id: str = "a", after: int = 0) -> list[tuple[int, str]]:
    return [(line.attempt, line.message) for line in logs(store, id, after).lines]


def fill(size: int, start: int = 0) -> list[LogChunk]:
    """Chunks of one line each, with at least that many bytes together."""
    line = "x" * (LARGEST_CHUNK - 200)
    return [chunk(line, start=start + n) for n in range(-(-size // chunk(line).size))]


def size_of(store: Store, attempt: int | None = None) -> int:
    return sum(len(line.message) for line in logs(store).lines if attempt in (None, line.attempt))


class Logging:
    def test_lines_come_with_the_outcome(self, store: Store) -> None:
        put(store, new_job("a"), new_job("b"))
        first, second = take(store, 2)
        done, lines = Outcome(move=Move.SUCCEED), chunk("eins", "zwei ✓ \x1b\n", "\\x00")
        settlements = [Settlement(first.lease, done, 0.0, (lines,)), Settlement(second.lease, done)]
        assert store.settle(settlements) == [True, True]
        line = logs(store).lines[1]
        assert (line.attempt, line.at, line.level, line.logger) == (1, instant(AT), "INFO", "app")
        assert messages(store) == [(1, "eins"), (1, "zwei ✓ \x1b\n"), (1, "\\x00")]
        assert store.logs("b") == JobLogs([], 0, 0)
        assert store.logs("unknown") is None

    def test_lines_of_a_run_under_way_are_kept_in_order(self, store: Store) -> None:
        claim = started(store, "a")
        store.write_logs([(claim.lease, chunk("1", "2")), (claim.lease, chunk("3", start=2))])
        assert messages(store) == [(1, "1"), (1, "2"), (1, "3")]
        settle(store, claim, chunk("4", start=3))
        assert [message for _, message in messages(store)] == ["1", "2", "3", "4"]

    def test_lines_have_the_number_of_their_attempt(self, store: Store) -> None:
        settle(store, started(store, "a"), chunk("first"), move=Move.RETRY)
        settle(store, take_one(store), chunk("second"), move=Move.FAIL)
        store.retry(["a"])
        settle(store, take_one(store), chunk("by hand"))
        assert messages(store) == [(1, "first"), (2, "second"), (3, "by hand")]

    def test_run_that_is_given_back_keeps_its_lines(self, store: Store) -> None:
        settle(store, started(store, "a"), chunk("snoozes"), move=Move.SNOOZE)
        claim = take_one(store)
        store.write_logs([(claim.lease, chunk("stops"))])
        store.release([claim.lease])
        settle(store, take_one(store), chunk("ends"))
        assert messages(store) == [(1, "snoozes"), (1, "stops"), (1, "ends")]

    def test_job_that_was_claimed_ahead_logs_with_its_first_attempt(self, store: Store) -> None:
        put(store, new_job("a"), new_job("b"))
        first, second = take(store, 2, begin=0)
        settle(store, first, chunk("ended at once"))
        store.write_logs([(second.lease, chunk("not begun"))])
        assert messages(store) == [(1, "ended at once")]
        assert messages(store, "b") == [(1, "not begun")]

    def test_chunk_told_twice_is_stored_once(self, store: Store) -> None:
        claim = started(store, "a")
        store.write_logs([(claim.lease, chunk("1"))])
        store.write_logs([(claim.lease, chunk("1")), (claim.lease, chunk("2", start=1))])
        for _ in range(2):
            assert settle(store, claim, chunk("2", start=1), chunk("3", start=2))
        assert [message for _, message in messages(store)] == ["1", "2", "3"]

    def test_worker_that_lost_its_lease_stores_nothing(self, store: Store, harness: StoreHarness) -> None:
        late = started(store, "a", lease=10)
        rescue_after(store, harness, 11)
        store.write_logs([(late.lease, chunk("too late"))])
        assert not settle(store, late, chunk("too late"))
        assert messages(store) == []
        claim = take_one(store, worker="w2")
        store.write_logs([(late.lease, chunk("too late")), (claim.lease, chunk("mine"))])
        assert not settle(store, late, chunk("too late"))
        assert messages(store) == [(2, "mine")]
        settle(store, claim)
        store.write_logs([(claim.lease, chunk("after the end", start=1))])
        assert messages(store) == [(2, "mine")]

    def test_only_new_lines_are_given_to_who_knows_the_others(self, store: Store) -> None:
        claim = started(store, "a")
        store.write_logs([(claim.lease, chunk("1", "2", "3")), (claim.lease, chunk("4", start=3))])
        assert [message for _, message in messages(store, after=2)] == ["3", "4"]
        assert messages(store, after=4) == messages(store, after=99) == []
        assert [logs(store, after=after).last for after in (0, 2, 4, 99)] == [4] * 4

    def test_who_follows_is_told_each_line_once_where_lines_between_are_cut(self, store: Store) -> None:
        settle(store, started(store, "a"), chunk("first", "attempt"), move=Move.RETRY)
        claim = take_one(store)
        told = messages(store)
        last = logs(store).last
        # Five lines that the runner dropped, and then more than is kept of an attempt.
        steps = [[chunk("1", "2", start=5, cut=5)], fill(MOST_OF_ATTEMPT + 10_000, 7), [chunk("3", start=99)]]
        for step in steps:
            store.write_logs([(claim.lease, each) for each in step])
            found = logs(store, after=last)
            told += [(line.attempt, line.message) for line in found.lines]
            assert found.last == logs(store).last > last
            last = found.last
            assert messages(store, after=last) == []
        short = [message for _, message in told if message[0] != "x"]
        assert short == ["first", "attempt", "1", "2", "3"]
        assert messages(store) == [each for each in told if each[1] not in "12"]
        assert last == 2 + 5 + 2 + len(steps[1]) + 1 == logs(store).cut + len(messages(store))

    def test_newest_chunk_is_kept_however_long(self, store: Store) -> None:
        claim = started(store, "a")
        longer = "x" * (MOST_OF_ATTEMPT + 10)
        store.write_logs([(claim.lease, chunk("1", "2")), (claim.lease, chunk(longer, start=2))])
        assert messages(store) == [(1, longer)]
        settle(store, claim, chunk("4", start=3))
        assert (messages(store), logs(store).cut, logs(store).last) == ([(1, "4")], 3, 4)

    @pytest.mark.parametrize("with_outcome", [False, True])
    def test_oldest_lines_of_an_attempt_are_cut(self, store: Store, with_outcome: bool) -> None:
        settle(store, started(store, "a"), chunk("first attempt"), move=Move.RETRY)
        claim = take_one(store)
        chunks = fill(MOST_OF_ATTEMPT + 10_000)
        if with_outcome:
            settle(store, claim, *chunks)
        else:
            store.write_logs([(claim.lease, each) for each in chunks])
        assert messages(store)[0] == (1, "first attempt")
        found = logs(store)
        assert found.cut > 0
        assert found.cut + len(found.lines) == len(chunks) + 1
        assert MOST_OF_ATTEMPT - 2 * LARGEST_CHUNK < size_of(store, 2) <= MOST_OF_ATTEMPT
        # What comes after a cut is cut in the same way, and numbers go on.
        if not with_outcome:
            store.write_logs([(claim.lease, chunk("newest", start=len(chunks)))])
            assert messages(store, after=found.last) == [(2, "newest")]
            assert logs(store).cut + len(logs(store).lines) == len(chunks) + 2

    def test_oldest_lines_of_a_job_are_cut(self, store: Store) -> None:
        put(store, new_job("a", max_retries=10))
        chunks = fill(60_000)
        for _ in range(5):
            settle(store, take_one(store), *chunks, move=Move.RETRY)
        found = logs(store)
        assert found.cut + len(found.lines) == 5 * len(chunks)
        assert MOST_OF_JOB - 2 * LARGEST_CHUNK < size_of(store) <= MOST_OF_JOB
        assert {line.attempt for line in found.lines} == {1, 2, 3, 4, 5}
        assert size_of(store, 1) < size_of(store, 2) == size_of(store, 5)

    @pytest.mark.parametrize("snoozes", [False, True])
    def test_lines_of_a_job_that_is_given_back_are_cut(self, store: Store, snoozes: bool) -> None:
        put(store, new_job("a"))
        (line,) = fill(1)
        count = MOST_OF_ATTEMPT // line.size + 3
        for _ in range(count):
            claim = take_one(store)
            if snoozes:
                settle(store, claim, line, move=Move.SNOOZE)
            else:
                store.write_logs([(claim.lease, line)])
                store.release([claim.lease])
        found = logs(store)
        assert found.cut + len(found.lines) == count
        assert MOST_OF_ATTEMPT - 2 * LARGEST_CHUNK < size_of(store, 1) <= MOST_OF_ATTEMPT

    def test_lines_that_were_never_stored_count_as_cut(self, store: Store) -> None:
        settle(store, started(store, "a"), chunk("last", start=7, cut=7))
        assert logs(store).cut == 7
        assert messages(store) == messages(store, after=7) == [(1, "last")]

    def test_lines_go_with_their_job(self, store: Store, harness: StoreHarness) -> None:
        for id in ("deleted", "pruned"):
            settle(store, started(store, id), chunk(f"of {id}"))
            if id == "deleted":
                assert store.delete([id])
        harness.elapse(10)
        assert store.prune(5) == 1
        assert store.logs("deleted") is store.logs("pruned") is None
        for id in ("deleted", "pruned"):
            put(store, new_job(id))
            assert store.logs(id) == JobLogs([], 0, 0)

    def test_lines_move_with_their_job(self, store: Store) -> None:
        put(store, new_job("a"), new_job("b"))
        claim = next(claim for claim in take(store, 2) if claim.id == "a")
        store.write_logs([(claim.lease, chunk("1", "2", cut=3, start=3))])
        settle(store, claim, chunk("3", start=5), move=Move.RETRY)
        before = logs(store)
        between = MemoryStore()
        exported = store.export(10)
        assert store.adopt(exported) == 0
        assert logs(store) == before
        between.adopt(exported)
        assert between.logs("a") == before
        store.discard(["a"])
        assert store.logs("a") is None
        assert store.adopt(between.export(10)) == 1
        assert logs(store) == before
        settle(store, take_one(store), chunk("again"))
        assert messages(store) == [(1, "1"), (1, "2"), (1, "3"), (2, "again")]

    def test_new_lines_are_news(self, store: Store) -> None:
        claim = started(store, "a")
        with closing(store.watch(News.CHANGES)) as watch:
            while watch.wait(0):
                pass
            store.write_logs([(claim.lease, chunk("1"))])
            assert watch.wait(30)
        finish(store, claim)


TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 vendor=a=b,other= ä"
OTHER = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"


def traced(id: str, trace: str = TRACE, **options: object) -> NewJob:
    return replace(new_job(id, **options), trace=trace)  # type: ignore[arg-type]


class Traces:
    """The trace of a job: kept as it was given, and told by each claim with whether the job ran before."""

    def test_trace_is_told_by_the_claim(self, store: Store) -> None:
        put(
            store,
            new_job("plain"),
            traced("a"),
            traced("b", OTHER, tags=("t",)),
            new_job("tagged", tags=("t",)),
        )
        claims = take(store, 9)
        assert [(claim.id, claim.trace, claim.has_run) for claim in claims] == [
            ("plain", None, False),
            ("a", TRACE, False),
            ("b", OTHER, False),
            ("tagged", None, False),
        ]
        assert all(claim.problem is None for claim in claims)

    def test_trace_of_what_is_claimed_ahead_is_told(self, store: Store) -> None:
        put(store, traced("a", expires_in=50.0))
        (claim,) = take(store, begin=0)
        assert (claim.trace, claim.has_run, claim.expires_at is not None) == (TRACE, False, True)
        store.release([claim.lease])
        assert take_one(store).has_run is False  # it never began

    def test_claim_knows_that_the_job_ran_before(self, store: Store, harness: StoreHarness) -> None:
        for move in (Move.RETRY, Move.SNOOZE, Move.RELEASE, Move.RESCUE, Move.REVIVE):
            put(store, traced(move.value))
            claim = take_one(store)
            if move is Move.RELEASE:
                store.release([claim.lease])
            elif move is Move.RESCUE:
                assert rescue_after(store, harness, 100)
            elif move is Move.REVIVE:
                finish(store, claim, Move.FAIL, error=BOOM)
                store.retry([claim.id])
            else:
                finish(store, claim, move, error=BOOM if move is Move.RETRY else None)
            again = take_one(store)
            assert (again.trace, again.has_run, again.problem) == (TRACE, True, None), move
            finish(store, again)

    def test_trace_is_no_part_of_the_content(self, store: Store) -> None:
        put(store, traced("a"))
        (receipt,) = put(store, traced("a", OTHER))
        assert not receipt.is_new
        assert take_one(store).trace == TRACE

    def test_who_replaces_a_job_gives_it_another_trace(self, store: Store) -> None:
        options = {"unique": "name", "on_duplicate": OnDuplicate.REPLACE}
        put(store, traced("a", **options))
        put(store, traced("b", OTHER, **options))
        assert (claim := take_one(store)).trace == OTHER
        assert claim.id == "a"

    def test_trace_moves_with_its_job(self, store: Store) -> None:
        put(store, traced("a"), new_job("plain"), traced("b", OTHER))
        finish(store, take_one(store), Move.SNOOZE)
        move_away_and_back(store, "a", "plain", "b")
        assert {claim.id: (claim.trace, claim.has_run) for claim in take(store, 9)} == {
            "a": (TRACE, True),
            "plain": (None, False),
            "b": (OTHER, False),
        }
