"""Many enqueue under one unique name at once, over several handles."""

from __future__ import annotations

from functools import partial
from threading import Event

from ...model.counts import Filter
from ...model.job import FINISHED, JobStatus, Move, OnDuplicate
from ...model.newjob import Receipt
from ...stores.base import Store
from ..harness import StoreHarness, from_all_sides, handles, together
from ..reading import look, page_ids, tally
from ..tools import finish, put, take, take_one
from .jobs import REPLACE, unique_job

ENQUEUERS = 200


class Crowd:
    def test_crowd_of_enqueuers_leaves_one_that_waits(self, store: Store, harness: StoreHarness) -> None:
        rounds = 2

        def send(handle: Store, name: int) -> int:
            new = 0
            for turn in range(rounds):
                (receipt,) = put(handle, unique_job(f"j{name}-{turn}", [name, turn], REPLACE))
                new += receipt.is_new
            return new

        assert sum(from_all_sides(harness, send, ENQUEUERS)) == 1
        (id,) = page_ids(store)
        assert look(store, id).payload[1] == rounds - 1, "the last payload wins"
        assert put(store, unique_job("last", "last", REPLACE)) == [Receipt(id, JobStatus.QUEUED, False)]
        assert take_one(store).payload == b'"last"'

    def test_crowd_never_has_two_that_wait_or_two_that_run(self, store: Store, harness: StoreHarness) -> None:
        is_over = Event()
        faults: list[object] = []

        def send(handle: Store, number: int) -> None:
            put(handle, unique_job(f"j{number}", number, list(OnDuplicate)[number % 2]))

        def work(handle: Store, worker: str) -> None:
            while not is_over.is_set():
                claims = take(handle, 3, worker=worker)
                if claims and (len(claims) > 1 or (claims := claims + take(handle, 3, worker=worker))[1:]):
                    faults.append(claims)  # a second one runs while the first does
                for claim in claims:
                    is_first = claim.attempts == 1 and len(claim.id) % 2 == 1
                    assert finish(handle, claim, Move.RETRY if is_first else Move.SUCCEED)

        def watch(handle: Store) -> None:
            while not is_over.is_set():
                waits = [
                    job.id
                    for job in handle.page(Filter(), 500).jobs
                    if job.status not in FINISHED and job.started_at is None
                ]
                if len(waits) > 1:
                    faults.append(waits)

        def send_all(handle: Store, all: list[Store]) -> None:
            try:
                together([partial(send, all[n % len(all)], n) for n in range(ENQUEUERS)])
            finally:
                is_over.set()

        with handles(harness) as several:
            together(
                [
                    partial(send_all, store, several),
                    partial(watch, several[0]),
                    *(partial(work, each, f"w{n}") for n, each in enumerate(several)),
                ]
            )
        assert faults == []
        for _ in range(2 * ENQUEUERS):
            for claim in take(store, 3):
                finish(store, claim)
            if set(tally(store)) == {JobStatus.DONE}:
                break
        assert set(tally(store)) == {JobStatus.DONE}
