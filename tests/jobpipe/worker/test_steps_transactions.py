"""Steps and `finish` in a transaction of the handler's own: with what else it writes there, all or nothing."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from inspect import isawaitable
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from jobpipe import (
    BadInputError,
    Fail,
    Job,
    Jobpipe,
    JobStatus,
    LeaseLostError,
    Retry,
    StoreAwayError,
    StoreError,
    current_job,
)
from jobpipe.model.durable import MOST_STEPS
from jobpipe.model.lease import Lease, LeaseState

from ...support.jobs import finished
from ...support.proxy import Proxy
from ...support.servers_postgres import PostgresStores
from ...support.transactions import ASYNC, WAYS, Database, Transaction
from ...support.waiting import run, until


class Undo(Exception):
    """Rolls back."""


class Shop(NamedTuple):
    """A pipe, the database of its store, and what its handlers did."""

    pipe: Jobpipe
    database: Database
    did: list[str]

    def once(self, what: str) -> bool:
        """Is it the first time?"""
        self.did.append(what)
        return self.did.count(what) == 1

    async def charge(self, transaction: Transaction) -> int:
        """A step with an effect."""
        self.did.append("charge")
        written = transaction.write("charge")
        if isawaitable(written):
            await written
        return 7

    def run(self, handler: Callable[[], Any], id: str = "o", **options: Any) -> Job:
        """Run a job with that handler, and another afterwards: whatever the first did, its slot is free again."""
        pipe = self.pipe
        pipe.job("order", base=0, **options)(handler)
        pipe.job("next")(lambda: None)

        async def scenario() -> Job:
            async with pipe, pipe.running(workers=1):
                await pipe.enqueue("order", id=id)
                job = await finished(pipe, id)
                await pipe.enqueue("next", id="next")
                assert (await finished(pipe, "next")).status is JobStatus.DONE
                return job

        return run(scenario())

    def steps(self, id: str = "o") -> list[str]:
        """Those that are recorded."""
        return [step.name for step in self.pipe.steps_sync(id)]


Way = tuple[str, str]
EACH: list[Way] = [(store, way) for store, ways in WAYS.items() for way in ways]
PLAIN: list[Way] = [("sqlite", "sqlite3"), ("postgres", "psycopg")]
AWAITED: Way = ("postgres", "psycopg-async")


def on(*ways: Way) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("shop", ways, indirect=True, ids="-".join)


@pytest.fixture(params=EACH, ids="-".join)
def shop(request: pytest.FixtureRequest, away_from_home: Path) -> Iterator[Shop]:
    store, way = request.param
    if store == "sqlite":
        pipe = Jobpipe("sqlite:///jobs.db", queue_size=0)
        pipe.store.migrate()
        database = Database(str(away_from_home / "jobs.db"), way)
        database.make_table()
        yield Shop(pipe, database, [])
        pipe.close()
        return
    stores: PostgresStores = request.getfixturevalue("postgres_stores")
    with stores.one() as open:
        given = open()
        pipe = Jobpipe(given, queue_size=0)
        database = Database(request.getfixturevalue("postgres"), way)
        database.make_table()
        yield Shop(pipe, database, [])
        pipe.close()
        given.close()


def test_step_is_recorded_with_what_it_wrote(shop: Shop) -> None:
    async def order() -> int:
        async with shop.database.transaction() as own:
            charged = await current_job().step("charge", shop.charge, own, connection=own.connection)
        if shop.once("after the commit"):
            raise Retry(after=0)
        return charged

    job = shop.run(order)
    assert (job.result, job.attempts) == (7, 2)
    assert shop.did == ["charge", "after the commit", "after the commit"]
    assert (shop.steps(), shop.database.effects()) == (["charge"], ["charge"])


def test_step_of_a_transaction_that_is_rolled_back_is_run_again(shop: Shop) -> None:
    """In a later run, and in the same."""

    async def order() -> None:
        for _ in range(2):
            with suppress(Undo):
                async with shop.database.transaction() as own:
                    await current_job().step("charge", shop.charge, own, connection=own.connection)
                    if len(shop.did) < 4:
                        raise Undo
                return
        raise Retry(after=0)

    job = shop.run(order)
    assert (job.status, job.attempts, shop.did) == (JobStatus.DONE, 2, ["charge"] * 4)
    assert (shop.steps(), shop.database.effects()) == (["charge"], ["charge"])


def test_error_after_a_step_undoes_it_with_its_transaction(shop: Shop) -> None:
    async def order() -> None:
        async with shop.database.transaction() as own:
            await current_job().step("charge", shop.charge, own, connection=own.connection)
            raise Undo

    job = shop.run(order, max_retries=0)
    assert (job.status, job.error and job.error.type) == (JobStatus.FAILED, "Undo")
    assert (shop.steps(), shop.database.effects()) == ([], [])


def test_outcome_is_recorded_with_what_the_handler_wrote(shop: Shop) -> None:
    async def order() -> str:
        async with shop.database.transaction() as own:
            await shop.charge(own)
            await current_job().finish({"paid": 7}, connection=own.connection)
        return "does not count"

    job = shop.run(order)
    assert (job.status, job.result, job.attempts, len(job.history)) == (JobStatus.DONE, {"paid": 7}, 1, 1)
    assert shop.database.effects() == ["charge"]


def test_return_after_an_outcome_that_was_rolled_back_is_an_error(shop: Shop) -> None:
    async def order() -> str:
        with suppress(Undo):
            async with shop.database.transaction() as own:
                await shop.charge(own)
                await current_job().finish("paid", connection=own.connection)
                if shop.once("rolled back"):
                    raise Undo
        return "does not count"

    job = shop.run(order)
    assert (job.status, job.result, job.attempts) == (JobStatus.DONE, "paid", 2)
    first = job.history[0].error
    assert first is not None
    assert "`finish` was not committed" in first.message
    assert shop.database.effects() == ["charge"]


@on(*PLAIN)
def test_what_is_raised_after_the_outcome_does_not_count(shop: Shop) -> None:
    failures: list[str] = []
    shop.pipe.on_failure(lambda job: failures.append(job.id))

    async def order() -> None:
        async with shop.database.transaction() as own:
            await current_job().finish("paid", connection=own.connection)
        raise Fail("broken")

    job = shop.run(order)
    assert (job.status, job.result, job.error, failures) == (JobStatus.DONE, "paid", None, [])


@on(PLAIN[0])
def test_store_that_is_away_when_the_outcome_is_looked_for_is_asked_again(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures: list[str] = []
    shop.pipe.on_failure(lambda job: failures.append(job.id))

    async def order() -> None:
        async with shop.database.transaction() as own:
            await current_job().finish("paid", connection=own.connection)

        def extend(leases: Sequence[Lease], seconds: float) -> list[LeaseState]:
            monkeypatch.undo()
            shop.did.append("away")
            raise StoreAwayError("away")

        monkeypatch.setattr(shop.pipe.store, "extend", extend)

    job = shop.run(order, max_retries=0)
    assert (job.status, job.result, failures, shop.did) == (JobStatus.DONE, "paid", [], ["away"])


@on(PLAIN[0])
def test_wrong_connection_is_final_since_the_step_was_run(shop: Shop) -> None:
    job = shop.run(lambda: current_job().step_sync("s", shop.did.append, "run", connection="o.db"))
    assert (job.status, job.error and job.error.type) == (JobStatus.FAILED, "StepResultError")
    assert shop.did == ["run"]


@on(PLAIN[0])
def test_outcome_that_is_no_json_is_final(shop: Shop) -> None:
    async def order() -> None:
        shop.did.append("run")
        async with shop.database.transaction() as own:
            await current_job().finish(object(), connection=own.connection)

    job = shop.run(order)
    assert (job.status, job.error and job.error.type) == (JobStatus.FAILED, "StepResultError")
    assert shop.did == ["run"]


@on(*PLAIN)
def test_finished_job_records_nothing_more(shop: Shop) -> None:
    async def order() -> None:
        job = current_job()
        async with shop.database.transaction() as own:
            await job.finish("paid", connection=own.connection)
        for call in (lambda: job.step("s", int), lambda: job.wait_for("go")):
            with pytest.raises(RuntimeError, match="has finished its job"):
                await call()
        async with shop.database.transaction() as own:
            with pytest.raises(RuntimeError, match="has finished its job"):
                await job.step("t", int, connection=own.connection)
        shop.did.append("refused")  # Why noted: what a handler raises after it has finished does not count
        await job.sleep("nap", 60)

    job = shop.run(order)
    assert (job.status, job.result, shop.steps(), shop.did) == (JobStatus.DONE, "paid", [], ["refused"])


@on(*PLAIN, AWAITED)
def test_handler_is_not_held_up_by_its_own_transaction(shop: Shop) -> None:
    """What would wait for its end is refused at once."""
    pipe = shop.pipe

    async def order() -> None:
        job = current_job()
        async with shop.database.transaction() as own:
            await job.step("s", shop.charge, own, connection=own.connection)
            for call in (lambda: pipe.cancel("o"), lambda: pipe.signal("o", "go")):
                with pytest.raises(StoreError, match="has its own transaction open"):
                    await call()
        await pipe.signal("o", "go")
        with suppress(Undo):
            async with shop.database.transaction() as own:
                await job.finish("undone", connection=own.connection)
                raise Undo
        assert await job.step("t", int) == 0
        async with shop.database.transaction() as own:
            await job.finish("paid", connection=own.connection)
            await job.finish("paid", connection=own.connection)
            for late in (
                lambda: job.step("u", shop.once, "late"),
                lambda: job.wait_for("go"),
                lambda: job.sleep("nap", 60),
            ):
                with pytest.raises(StoreError, match="has its own transaction open"):
                    await late()

    job = shop.run(order, max_retries=0)
    assert (job.status, job.result, shop.steps(), shop.did) == (
        JobStatus.DONE,
        "paid",
        ["s", "t"],
        ["charge"],
    )


@on(*PLAIN)
def test_deadline_undoes_what_is_not_committed_and_no_more(shop: Shop) -> None:
    async def order() -> None:
        async with shop.database.transaction() as own:
            await shop.charge(own)
            await current_job().finish("paid", connection=own.connection)
            if shop.once("before the commit"):
                await asyncio.Event().wait()
        await asyncio.Event().wait()

    job = shop.run(order, deadline=0.3)
    assert (job.status, job.result, job.attempts) == (JobStatus.DONE, "paid", 2)
    first = job.history[0].error
    assert (first and first.type, shop.database.effects()) == ("DeadlineExceeded", ["charge"])


@on(PLAIN[1])
def test_progress_within_a_transaction_is_seen_after_it(shop: Shop) -> None:
    """The store passes over a job that is locked, and is told again."""
    go_on, told = asyncio.Event(), list[Any]()

    async def order() -> None:
        async with shop.database.transaction() as own:
            await current_job().step("s", int, connection=own.connection)
            current_job().progress(0.5)
            await until(lambda: len(told) > 1)
        await go_on.wait()

    shop.pipe.job("order")(order)

    async def scenario() -> None:
        async with shop.pipe as pipe, pipe.running():
            assert pipe.service is not None
            assert pipe.service.runner is not None
            held = pipe.service.runner.held
            take = held.take_progress

            def take_and_tell() -> Any:
                taken = take()
                told.extend(taken)
                return taken

            held.take_progress = take_and_tell  # type: ignore[method-assign]
            await pipe.enqueue("order", id="o")
            await until(lambda: (job := pipe.store.get("o")) and job.progress)
            go_on.set()
            assert (await finished(pipe, "o")).status is JobStatus.DONE

    run(scenario())


@on(*PLAIN, AWAITED)
@pytest.mark.parametrize("call", ["step", "finish"])
def test_lost_lease_fails_the_transaction(shop: Shop, call: str) -> None:
    async def order() -> str:
        job = current_job()
        if not shop.once("run"):
            return "by another run"
        await job.step("before", int)
        await asyncio.to_thread(shop.pipe.store.release, [job._claim.lease])
        async with shop.database.transaction() as own:
            await shop.charge(own)
            with pytest.raises(LeaseLostError):
                if call == "step":
                    await job.step("late", int, connection=own.connection)
                else:
                    await job.finish("late", connection=own.connection)
            with pytest.raises(LeaseLostError):
                await job.step("before", int)
            shop.did.append("refused")
            raise Undo
        raise AssertionError

    job = shop.run(order)
    assert (job.status, job.result) == (JobStatus.DONE, "by another run")
    assert (shop.did, shop.steps(), shop.database.effects()) == (
        ["run", "charge", "refused", "run"],
        ["before"],
        [],
    )


@on(*PLAIN, AWAITED)
def test_name_is_used_once_in_a_transaction(shop: Shop) -> None:
    """Who uses it twice undoes all of it."""

    async def order() -> None:
        async with shop.database.transaction() as own:
            for _ in range(2):
                await current_job().step("charge", shop.charge, own, connection=own.connection)

    job = shop.run(order, max_retries=0)
    assert job.error is not None
    assert (job.error.type, "must be used once" in job.error.message) == ("BadInputError", True)
    assert (shop.steps(), shop.database.effects()) == ([], [])


@on(*PLAIN)
def test_step_of_a_savepoint_that_is_rolled_back_may_be_called_again(shop: Shop) -> None:
    async def order() -> int:
        async with shop.database.transaction() as own:
            own.write("order")
            own.execute("SAVEPOINT first")
            await current_job().step("charge", shop.charge, own, connection=own.connection)
            own.execute("ROLLBACK TO SAVEPOINT first")
            return await current_job().step("charge", shop.charge, own, connection=own.connection)

    assert shop.run(order, max_retries=0).result == 7
    assert (shop.steps(), shop.database.effects()) == (["charge"], ["charge", "order"])


@on(*PLAIN)
def test_step_that_was_rolled_back_may_do_without_a_transaction(shop: Shop) -> None:
    async def order() -> int:
        with suppress(Undo):
            async with shop.database.transaction() as own:
                await current_job().step("s", int, connection=own.connection)
                raise Undo
        return await current_job().step("s", lambda: 1)

    assert shop.run(order, max_retries=0).result == 1


@on(PLAIN[0])
def test_steps_of_one_transaction_are_bounded_like_others(shop: Shop) -> None:
    async def order() -> None:
        job = current_job()
        async with shop.database.transaction() as own:
            for n in range(MOST_STEPS):
                await job.step(f"{n}", int, connection=own.connection)
            with pytest.raises(BadInputError, match="at most 1,000 steps"):
                await job.step("more", int, connection=own.connection)

    assert shop.run(order, max_retries=0).status is JobStatus.DONE
    assert len(shop.steps()) == MOST_STEPS


@on(*(each for each in EACH if each[1] not in ASYNC))
def test_plain_handler_has_a_transaction_of_its_own(shop: Shop) -> None:
    def order() -> None:
        job, thread = current_job(), threading.get_ident()

        def charge(own: Transaction) -> int:
            assert threading.get_ident() == thread
            own.write("charge")
            return 7

        with suppress(Undo), shop.database.transaction_sync() as own:
            job.step_sync("charge", charge, own, connection=own.connection)
            raise Undo
        with shop.database.transaction_sync() as own:
            charged = job.step_sync("charge", charge, own, connection=own.connection)
        with shop.database.transaction_sync() as own:
            own.write("outcome")
            job.finish_sync(charged, connection=own.connection)

    job = shop.run(order)
    assert (job.status, job.result, job.attempts) == (JobStatus.DONE, 7, 1)
    assert (shop.steps(), shop.database.effects()) == (["charge"], ["charge", "outcome"])


@on(*PLAIN)
def test_plain_step_in_a_transaction_is_called_in_the_thread_of_the_handler(shop: Shop) -> None:
    async def order() -> bool:
        async with shop.database.transaction() as own:
            thread = await current_job().step("s", threading.get_ident, connection=own.connection)
        return thread == threading.get_ident()

    assert shop.run(order).result is True


@on(AWAITED)
def test_connection_that_is_awaited_is_none_for_a_plain_handler(shop: Shop) -> None:
    def order() -> None:
        async def lend() -> None:
            async with shop.database.transaction() as own:
                with pytest.raises(BadInputError, match="asynchronous"):
                    current_job().step_sync("s", int, connection=own.connection)

        run(lend())

    assert shop.run(order, max_retries=0).status is JobStatus.DONE


@on(*PLAIN)
def test_connection_to_elsewhere_records_nothing(shop: Shop) -> None:
    async def order() -> None:
        other = sqlite3.connect(":memory:")
        for call in (
            lambda: current_job().step("s", int, connection=other),
            lambda: current_job().finish(1, connection=other),
        ):
            with pytest.raises(BadInputError, match=r"^connection must be"):
                await call()
        other.close()

    job = shop.run(order, max_retries=0)
    assert (job.status, job.result, shop.steps()) == (JobStatus.DONE, None, [])


@on(PLAIN[1], AWAITED)
@pytest.mark.parametrize("is_committed", [True, False])
@pytest.mark.parametrize("call", ["step", "finish"])
def test_effect_and_record_agree_when_the_answer_to_the_commit_is_lost(
    shop: Shop, call: str, is_committed: bool
) -> None:
    server = conninfo_to_dict(shop.database.address)
    with Proxy(f"{server['host']}/.s.PGSQL.5432") as proxy:
        far = replace(shop.database, address=f"postgresql://postgres@127.0.0.1:{proxy.port}/postgres")

        async def order() -> str:
            job = current_job()
            async with (far if shop.once("run") else shop.database).transaction() as own:
                if call == "step":
                    await job.step("charge", shop.charge, own, connection=own.connection)
                else:
                    await shop.charge(own)
                    await job.finish("paid", connection=own.connection)
                if is_committed:
                    proxy.lose_replies(1, after=b"COMMIT")
                else:
                    proxy.cut()
            return "paid"

        job = shop.run(order)
        assert proxy.lost == is_committed
    assert (job.status, job.result) == (JobStatus.DONE, "paid")
    is_run_again = call == "step" or not is_committed
    assert (job.attempts, shop.did.count("charge")) == (1 + is_run_again, 1 + (not is_committed))
    assert shop.database.effects() == ["charge"]


@on(*PLAIN)
def test_connection_that_commits_each_statement_is_refused(shop: Shop) -> None:
    """What it has written would be there without the step."""
    address = shop.database.address

    async def order() -> None:
        own: Any = (
            psycopg.connect(address, autocommit=True)
            if address.startswith("postgresql:")
            else sqlite3.connect(address, isolation_level=None)
        )
        with closing(own):
            for call in (
                lambda: current_job().step("s", int, connection=own),
                lambda: current_job().finish(1, connection=own),
            ):
                with pytest.raises(BadInputError, match="must be in a transaction"):
                    await call()
            own.execute("BEGIN")
            await current_job().step("s", int, connection=own)
            own.execute("COMMIT")

    job = shop.run(order, max_retries=0)
    assert (job.status, shop.steps()) == (JobStatus.DONE, ["s"]), job.error


@on(*PLAIN)
def test_job_that_is_given_back_before_the_commit_runs_again(shop: Shop) -> None:
    """A graceful stop breaks the handler off; its transaction is undone."""

    async def order() -> None:
        async with shop.database.transaction() as own:
            await shop.charge(own)
            await current_job().finish("paid", connection=own.connection)
            if len(shop.did) == 1:
                at_work.set()
                await asyncio.Event().wait()

    shop.pipe.job("order")(order)
    at_work = asyncio.Event()

    async def scenario() -> Job:
        async with shop.pipe as pipe:
            service = pipe.make_service()
            await service.start()
            await pipe.enqueue("order", id="o")
            await at_work.wait()
            await service.stop(grace=0)
            assert (await pipe.get("o")).status is JobStatus.QUEUED
            async with pipe.running():
                return await finished(pipe, "o")

    job = run(scenario())
    assert (job.status, job.result, job.attempts) == (JobStatus.DONE, "paid", 1)
    assert shop.database.effects() == ["charge"]
