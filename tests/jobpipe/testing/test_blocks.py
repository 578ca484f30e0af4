"""From the begin of a block to its end: what stands in for the store, for whom, and that all is as before afterwards."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from jobpipe import BadInputError, Jobpipe, SettingsError
from jobpipe.testing import JobTester

from ...support.waiting import run


@pytest.fixture
def real(away_from_home: Path) -> Jobpipe:
    """A pipe with a store that can be used."""
    return Jobpipe(f"sqlite:///{away_from_home}/jobs.db")


def ids(jobs: JobTester) -> list[str]:
    return [job.id for job in jobs.all]


def test_nothing_reaches_the_real_store(real: Jobpipe) -> None:
    real.enqueue_sync("echo", id="before")
    store = real.store
    with real.testing() as jobs:
        assert real.store is not store
        real.enqueue_sync("echo", id="within")
        assert ids(jobs) == ["within"]
        assert [job.id for job in real.page_sync().jobs] == ["within"]
    assert real.store is store
    assert [job.id for job in real.page_sync().jobs] == ["before"]
    assert ids(jobs) == ["within"], "it can be looked at afterwards"
    real.close()


def test_the_pipe_is_as_before_also_after_an_error(pipe: Jobpipe) -> None:
    before = dict(pipe.__dict__)
    with pytest.raises(ValueError, match="mine"), pipe.testing() as jobs:
        pipe.enqueue_sync("echo")
        jobs.drain_sync()
        raise ValueError("mine")
    assert pipe.__dict__ == before
    pipe.configure(workers=3)  # refused once the settings were read
    assert pipe.settings.workers == 3
    assert [thread for thread in threading.enumerate() if "jobpipe" in thread.name] == []


def test_wrong_settings_are_refused_as_with_the_real_store() -> None:
    pipe = Jobpipe(wrokers=3)
    before = dict(pipe.__dict__)
    with pytest.raises(SettingsError, match="wrokers"), pipe.testing():
        pytest.fail("it has begun")
    assert pipe.__dict__ == before
    assert pipe._lazy_store.substitute is None


def test_logs_of_jobs_are_kept(pipe: Jobpipe, capsys: pytest.CaptureFixture[str]) -> None:
    pipe.configure(job_logs="all")
    handlers, stdout = list(logging.root.handlers), sys.stdout

    @pipe.job
    def greet(name: str) -> None:
        logging.getLogger("shop").warning("hello %s", name)
        print("printed")

    @pipe.job(logs=False)
    def quiet() -> None:
        logging.getLogger("shop").warning("nothing")

    def lines(id: str) -> list[tuple[str, str, str]]:
        return [(line.level, line.logger, line.message) for line in pipe.logs_sync(id).lines]

    with pipe.testing() as jobs:
        greet.enqueue_sync("ada", id="g")
        quiet.enqueue_sync(id="q")
        with pipe.testing() as inner:
            inner.run_sync(greet, "bob")
        jobs.drain_sync()
        assert lines("g") == [("WARNING", "shop", "hello ada"), ("INFO", "print", "printed")]
        assert lines("q") == []
        (at,) = {line.at for line in pipe.logs_sync("g").lines}
        assert at == jobs.now, "the time is that of the manual clock"
    assert logging.root.handlers == handlers
    assert sys.stdout is stdout
    assert capsys.readouterr().out == "printed\nprinted\n"


def test_a_look_at_the_types_of_workers_does_not_outlive_the_block(real: Jobpipe) -> None:
    with real.testing():
        assert real.enqueue_sync("strange").warning is not None
    worker = Jobpipe(real.settings.store)
    worker.job("strange")(lambda: None)

    async def main() -> None:
        async with worker.running():
            assert (await real.enqueue("strange")).warning is None

    run(main())
    worker.close()
    real.close()


def test_blocks_may_be_nested_and_repeated(pipe: Jobpipe) -> None:
    outer = pipe.testing()
    with outer:
        pipe.enqueue_sync("echo", id="1")
        with pipe.testing() as inner:
            pipe.enqueue_sync("echo", id="2")
            assert ids(inner) == ["2"]
            assert [job.id for job in inner.drain_sync()] == ["2"]
        pipe.enqueue_sync("echo", id="3")
        assert ids(outer) == ["1", "3"]
        with pytest.raises(RuntimeError, match="entered already"):
            outer.__enter__()
    with outer:
        assert outer.all == []
        pipe.enqueue_sync("echo", id="1")
    assert ids(outer) == ["1"]


def test_blocks_of_two_pipes_do_not_know_each_other(pipe: Jobpipe) -> None:
    other = Jobpipe("sqlite:////nowhere/at/all/jobs.db")
    with pipe.testing() as jobs, other.testing() as others:
        pipe.enqueue_sync("echo", id="1")
        other.enqueue_sync("echo", id="2")
        assert (ids(jobs), ids(others)) == (["1"], ["2"])


def test_threads_have_blocks_of_their_own(pipe: Jobpipe) -> None:
    @pipe.job
    async def note(n: int) -> int:
        return n

    together = threading.Barrier(4)

    def test(n: int) -> list[Any]:
        with pipe.testing() as jobs:
            together.wait(60)
            note.enqueue_sync(n)
            together.wait(60)
            results = [job.result for job in jobs.drain_sync()]
            together.wait(60)
            return results

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(test, range(4))) == [[0], [1], [2], [3]]


def test_a_thread_of_the_program_enqueues_into_the_block(pipe: Jobpipe) -> None:
    with pipe.testing() as jobs:
        thread = threading.Thread(target=lambda: pipe.enqueue_sync("echo", id="1"))
        thread.start()
        thread.join()
        assert ids(jobs) == ["1"]


def test_tasks_have_blocks_of_their_own(pipe: Jobpipe) -> None:
    @pipe.job
    async def note(n: int) -> int:
        await asyncio.sleep(0)
        return n

    async def test(n: int) -> list[Any]:
        async with pipe.testing() as jobs:
            await note.enqueue(n)
            await asyncio.sleep(0)
            return [job.result for job in await jobs.drain()]

    async def main() -> None:
        assert await asyncio.gather(*map(test, range(5))) == [[n] for n in range(5)]

    run(main())


def test_a_program_that_runs_its_own_jobs_runs_none_in_a_block(pipe: Jobpipe) -> None:
    @pipe.job
    async def note() -> str:
        return "ran"

    async def main() -> None:
        async with pipe.testing() as jobs, pipe, pipe.running():
            receipt = await note.enqueue()
            assert (await pipe.wait(receipt.id, timeout=0.05)).status == "queued"
            assert [job.result for job in await jobs.drain()] == ["ran"]

    run(main())


def test_a_program_that_closes_its_pipe_keeps_what_was_enqueued(pipe: Jobpipe) -> None:
    with pipe.testing() as jobs:
        pipe.enqueue_sync("echo")
        pipe.close()
        assert len(jobs.drain_sync()) == 1


def test_jobs_run_only_within_the_block(pipe: Jobpipe) -> None:
    jobs = pipe.testing()
    with pytest.raises(RuntimeError, match="enter the block before"):
        jobs.drain_sync()
    with jobs:
        pass
    with pytest.raises(RuntimeError, match="has ended"):
        jobs.drain_sync()
    with pytest.raises(RuntimeError, match="has ended"):
        run(jobs.advance(1))


@pytest.mark.parametrize(
    ("options", "field"),
    [({"workers": 0}, "workers"), ({"workers": True}, "workers"), ({"start": "now"}, "start")],
)
def test_wrong_options_are_refused(pipe: Jobpipe, options: dict[str, Any], field: str) -> None:
    with pytest.raises(BadInputError, match=field):
        pipe.testing(**options).__enter__()
    assert pipe._lazy_store.substitute is None


def test_a_block_that_cannot_begin_leaves_nothing_behind(pipe: Jobpipe) -> None:
    @pipe.every(60, check=lambda _: (_ for _ in ()).throw(BadInputError("payload", "no")))
    def never() -> None: ...

    with pytest.raises(BadInputError, match="payload"):
        pipe.testing().__enter__()
    assert pipe._lazy_store.substitute is None


# What it costs


def test_a_thousand_jobs_take_a_few_steps_each(pipe: Jobpipe) -> None:
    """A second on a quiet machine; the limit is for one that is busy."""

    @pipe.job
    async def note(n: int) -> None: ...

    async def main() -> None:
        async with pipe.testing() as jobs:
            await pipe.enqueue_many([note.request(n) for n in range(1000)])
            turns = 0

            async def count() -> None:
                nonlocal turns
                while True:
                    turns += 1
                    await asyncio.sleep(0)

            counting = asyncio.create_task(count())
            async with asyncio.timeout(20):
                drained = await jobs.drain()
            counting.cancel()
            assert len(drained) == 1000
            assert turns < 20_000

    run(main())


def test_three_days_are_as_many_steps_as_there_are_ticks(pipe: Jobpipe) -> None:
    ran: list[int] = []

    @pipe.every(3600)
    async def hourly() -> None:
        ran.append(1)

    async def main() -> None:
        async with pipe.testing() as jobs:
            looks: list[float] = []
            claim = pipe.store.claim
            pipe.store.claim = lambda *args: looks.append(1) or claim(*args)  # type: ignore[method-assign, func-returns-value]
            async with asyncio.timeout(20):
                await jobs.advance("3 days")
            assert len(looks) < 72 * 4

    run(main())
    assert len(ran) == 72


def test_the_service_log_has_no_line_for_each_tick(pipe: Jobpipe, caplog: pytest.LogCaptureFixture) -> None:
    @pipe.every(60)
    def minutely() -> None: ...

    caplog.set_level("INFO", "jobpipe")
    with pipe.testing() as jobs:
        jobs.advance_sync("5 min")
        assert len(jobs.all) == 5
    assert caplog.messages == []


def test_the_kit_needs_no_pytest_and_an_import_of_jobpipe_no_kit() -> None:
    script = """
import sys, jobpipe
pipe = jobpipe.Jobpipe("sqlite:////nowhere/at/all/jobs.db")
assert not [name for name in sys.modules if name.startswith("jobpipe.testing")]
with pipe.testing() as jobs:
    pipe.enqueue_sync("echo", 1)
    assert [job.result for job in jobs.drain_sync()] == [1]
assert "pytest" not in sys.modules
assert "jobpipe.testing.contract" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
