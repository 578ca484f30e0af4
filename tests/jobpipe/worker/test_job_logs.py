"""What handlers log is kept with the job: from tasks and threads, by level, within bounds, in few calls of the store."""

from __future__ import annotations

import asyncio
import contextvars
import json
import logging
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import psycopg
import pytest

from jobpipe import BadInputError, Job, Jobpipe, JobStatus, StoreError, current_job
from jobpipe.model.logs import MOST_OF_ATTEMPT, JobLogs, LogChunk
from jobpipe.stores.memory import MemoryStore
from jobpipe.worker import held_jobs
from jobpipe.worker.capture import Capture, Captures
from jobpipe.worker.held_jobs import HeldJobs
from jobpipe.worker.run_log import RunLog

from ...support.gates import AsyncGate
from ...support.jobs import finished, reached, seen
from ...support.waiting import LIMIT, run, until

log = logging.getLogger("tests.app")


@pytest.fixture(autouse=True)
def info() -> Iterator[None]:
    """As the service sets it."""
    before = logging.root.level
    logging.root.setLevel(logging.INFO)
    yield
    logging.root.setLevel(before)


def run_one(pipe: Jobpipe, type: str) -> tuple[Job, JobLogs]:
    """Run a job; what became of it, and what it logged."""

    async def scenario() -> tuple[Job, JobLogs]:
        async with pipe, pipe.running():
            await pipe.enqueue(type, id="x")
            return await finished(pipe, "x"), await pipe.logs("x")

    return run(scenario())


def texts(logs: JobLogs) -> list[str]:
    return [line.message for line in logs.lines]


@pytest.mark.parametrize("is_async", [True, False], ids=["async", "sync"])
def test_lines_are_kept_with_the_job(pipe: Jobpipe, is_async: bool) -> None:
    def work() -> None:
        log.debug("no")
        log.info("one %d", 1)
        try:
            raise ValueError("broken")
        except ValueError:
            logging.getLogger("other").exception("two")

    async def awork() -> None:
        work()

    pipe.job("work")(awork if is_async else work)
    job, logs = run_one(pipe, "work")
    first, second = logs.lines
    assert (first.attempt, first.level, first.logger, first.message) == (1, "INFO", "tests.app", "one 1")
    assert (second.level, second.logger, second.message.splitlines()[0]) == ("ERROR", "other", "two")
    assert second.message.endswith("ValueError: broken")
    assert job.started_at is not None
    assert job.started_at <= first.at <= second.at


def test_lines_come_from_tasks_and_threads_of_the_run(memory: Jobpipe) -> None:
    @memory.job
    async def work() -> None:
        async def child() -> None:
            log.info("from a task")

        await asyncio.create_task(child())
        await asyncio.to_thread(log.info, "from to_thread")
        context = contextvars.copy_context()
        thread = threading.Thread(target=lambda: context.run(log.info, "with the context"))
        thread.start()
        thread.join()
        stranger = threading.Thread(target=lambda: log.info("without it"))
        stranger.start()
        stranger.join()

    assert texts(run_one(memory, "work")[1]) == ["from a task", "from to_thread", "with the context"]


def test_jobs_that_run_at_once_keep_their_lines_apart(memory: Jobpipe) -> None:
    async def scenario() -> None:
        gate = AsyncGate()

        @memory.job
        async def work(name: str) -> None:
            log.info("begin %s", name)
            await gate.pass_through()
            log.info("end %s", name)

        async with memory, memory.running(2):
            for id in ("a", "b"):
                await memory.enqueue("work", id, id=id)
                await reached(memory, id, JobStatus.RUNNING)
            gate.go.set()
            for id in ("a", "b"):
                await finished(memory, id)
                assert texts(await memory.logs(id)) == [f"begin {id}", f"end {id}"]

    run(scenario())


def test_levels_hold_as_they_are_set(memory: Jobpipe) -> None:
    loud, quiet = logging.getLogger("tests.loud"), logging.getLogger("tests.quiet")

    @memory.job
    def work() -> None:
        loud.debug("debug is not kept, though it is logged")
        loud.info("info")
        quiet.info("not even logged")
        quiet.warning("warning")

    loud.setLevel(logging.DEBUG)
    quiet.setLevel(logging.WARNING)
    try:
        _, logs = run_one(memory, "work")
    finally:
        loud.setLevel(logging.NOTSET)
        quiet.setLevel(logging.NOTSET)
    assert texts(logs) == ["info", "warning"]


def test_lines_of_each_attempt_and_of_failures_are_kept(memory: Jobpipe) -> None:
    @memory.job(base=0.001, jitter=False, max_retries=1)
    def work() -> None:
        log.info("attempt %d", current_job().attempts)
        raise ValueError

    job, logs = run_one(memory, "work")
    assert job.status is JobStatus.FAILED
    assert [(line.attempt, line.message) for line in logs.lines] == [
        (1, "attempt 1"),
        (2, "attempt 2"),
    ]


def test_lines_are_seen_while_it_runs(pipe: Jobpipe) -> None:
    async def scenario() -> None:
        gate = AsyncGate()

        @pipe.job
        async def work() -> None:
            log.info("begin")
            await gate.pass_through()
            log.info("end")

        async with pipe, pipe.running():
            await pipe.enqueue("work", id="x")
            await seen(pipe, lambda: pipe.logs("x"), lambda logs: logs.lines)
            assert (await pipe.get("x")).status is JobStatus.RUNNING
            gate.go.set()
            await finished(pipe, "x")
            assert texts(await pipe.logs("x")) == ["begin", "end"]

    run(scenario())


def test_lines_of_a_run_that_is_stopped_are_kept(memory: Jobpipe) -> None:
    async def scenario() -> None:
        @memory.job
        async def work() -> None:
            log.info("begin")
            await asyncio.sleep(LIMIT)

        service = memory.make_service()
        await service.start()
        await memory.enqueue("work", id="x")
        await reached(memory, "x", JobStatus.RUNNING)
        await service.stop(grace=0)
        assert (await memory.get("x")).status is JobStatus.QUEUED
        assert texts(await memory.logs("x")) == ["begin"]
        memory.close()

    run(scenario())


def test_a_job_is_given_back_though_its_lines_are_refused(
    memory: Jobpipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: MemoryStore, chunks: object) -> None:
        raise StoreError("no room")

    async def scenario() -> None:
        @memory.job
        async def work() -> None:
            log.info("begin")
            await asyncio.sleep(LIMIT)

        service = memory.make_service()
        await service.start()
        await memory.enqueue("work", id="x")
        await reached(memory, "x", JobStatus.RUNNING)
        monkeypatch.setattr(MemoryStore, "write_logs", refuse)
        await service.stop(grace=0)
        job = await memory.get("x")
        assert (job.status, job.attempts) == (JobStatus.QUEUED, 0)
        memory.close()

    run(scenario())


def test_short_jobs_store_their_lines_with_their_outcomes(
    memory: Jobpipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    monkeypatch.setattr(held_jobs, "_LOG_LATER", LIMIT)  # a busy machine makes long jobs of short ones
    monkeypatch.setattr(memory.store, "write_logs", lambda _: calls.append("write_logs"))

    async def scenario() -> None:
        @memory.job
        async def work(n: int) -> None:
            for line in range(5):
                log.info("line %d", line)

        async with memory:
            receipts = await memory.enqueue_many([memory.types["work"].request(n) for n in range(100)])
            async with memory.running():
                for receipt in receipts:
                    await finished(memory, receipt.id)
            assert [len((await memory.logs(each.id)).lines) for each in receipts] == [5] * 100

    run(scenario())
    assert calls == []


# Switching it off, and print


def test_type_without_logs_keeps_none(memory: Jobpipe) -> None:
    @memory.job(logs=False)
    def work() -> None:
        log.info("secret")

    assert texts(run_one(memory, "work")[1]) == []


def test_logs_of_a_type_must_be_a_switch(memory: Jobpipe) -> None:
    with pytest.raises(BadInputError, match="logs must be True or False, got 'no'"):
        memory.job(logs="no")(lambda: None)  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("mode", "kept"),
    [("off", []), ("logging", ["logged"]), ("all", ["printed", "a b", "logged", "no end"])],
)
def test_setting_says_what_is_kept(mode: str, kept: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    pipe = Jobpipe("memory://", job_logs=mode)
    before = sys.stdout

    @pipe.job
    def work() -> None:
        print("printed")
        print("a", end=" ")
        print("b")
        log.info("logged")
        print("no end", end="")

    assert texts(run_one(pipe, "work")[1]) == kept
    assert capsys.readouterr().out == "printed\na b\nno end"
    assert sys.stdout is before
    assert not [each for each in logging.root.handlers if isinstance(each, Capture)]


def test_warnings_of_a_program_without_handlers_still_go_to_stderr(
    memory: Jobpipe, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.root, "handlers", [])

    @memory.job
    def work() -> None:
        log.info("quiet")
        log.warning("careful")

    assert texts(run_one(memory, "work")[1]) == ["quiet", "careful"]
    assert capsys.readouterr().err == "careful\n"


def test_wrong_arguments_do_not_cost_the_line(memory: Jobpipe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging, "raiseExceptions", False)

    @memory.job
    def work() -> None:
        log.info("%d", "no number")

    assert texts(run_one(memory, "work")[1]) == ["%d (its arguments do not fit: ('no number',))"]


class Unspeakable:
    def __str__(self) -> str:
        raise RuntimeError("no words")


class Name(str):
    __slots__ = ()


def test_lines_that_cannot_be_shown_do_not_cost_the_job(
    memory: Jobpipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging, "raiseExceptions", False)

    @memory.job
    def work() -> None:
        log.info(Unspeakable())
        logging.getLogger(Name("named")).info("two")

    job, logs = run_one(memory, "work")
    assert job.status is JobStatus.DONE
    assert [line.logger for line in logs.lines] == ["tests.app", "named"]


def test_log_handlers_of_the_program_that_raise_cost_no_outcome(
    memory: Jobpipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise RuntimeError("the tracker is away")

    monkeypatch.setattr(logging, "raiseExceptions", False)
    monkeypatch.setattr(logging.getLogger("jobpipe.jobs"), "handlers", [Broken()])

    @memory.job(max_retries=0)
    def work() -> None:
        raise ValueError("broken")

    assert run_one(memory, "work")[0].status is JobStatus.FAILED


def test_lines_are_kept_again_after_logging_was_set_up_anew(memory: Jobpipe) -> None:
    captures = Captures("logging")
    captures.start()
    (own,) = [handler for handler in logging.root.handlers if isinstance(handler, Capture)]
    try:
        logging.root.removeHandler(own)  # as dictConfig does with all
        captures.renew()
        assert own in logging.root.handlers
    finally:
        captures.stop()
    assert own not in logging.root.handlers


def test_filters_of_handlers_hold_for_what_is_kept(memory: Jobpipe) -> None:
    @memory.job
    async def work() -> None:
        (own,) = [handler for handler in logging.root.handlers if isinstance(handler, Capture)]
        own.addFilter(lambda record: "secret" not in record.getMessage())
        log.info("my secret")
        log.info("open")

    assert texts(run_one(memory, "work")[1]) == ["open"]


def test_print_is_kept_while_any_service_wants_it() -> None:
    before = sys.stdout
    first, second = Captures("all"), Captures("all")
    first.start()
    second.start()
    first.stop()
    assert sys.stdout is not before
    second.stop()
    assert sys.stdout is before


# The lines of one run


def joined(chunks: list[LogChunk] | tuple[LogChunk, ...]) -> tuple[int, int]:
    return sum(chunk.count for chunk in chunks), sum(chunk.cut for chunk in chunks)


def test_run_that_logs_too_much_keeps_the_newest_lines() -> None:
    log = RunLog(lambda: 0.0, 0.0)
    for number in range(3_000):
        log.add("INFO", "app", f"line {number}")
    chunks = log.close()
    assert sum(chunk.size for chunk in chunks) <= MOST_OF_ATTEMPT
    count, cut = joined(chunks)
    assert count + cut == 3_000
    assert cut == chunks[0].cut == chunks[0].start
    assert "line 2999" in chunks[-1].lines


def test_line_in_the_middle_of_another_is_kept() -> None:
    """As when garbage is collected whose end is logged."""
    inner = ["two", "three"]

    def now() -> float:
        if inner:
            lines.add("WARNING", "gc", inner.pop())
        return 0.0

    lines = RunLog(now, 0.0)
    lines.add("INFO", "app", "one")
    assert joined(lines.close()) == (3, 0)


def test_chunks_are_handed_over_again_until_they_are_stored() -> None:
    log = RunLog(lambda: 0.0, 0.0)
    log.add("INFO", "app", "1")
    (first,) = log.unstored()
    log.add("INFO", "app", "2")
    assert log.unstored()[0] == first
    log.stored(first)
    (second,) = log.close()
    assert (second.start, second.count, "2" in second.lines) == (1, 1, True)
    log.add("INFO", "app", "too late")
    assert log.close() == (second,)


def test_chunks_for_a_store_that_is_away_do_not_grow_without_end() -> None:
    log = RunLog(lambda: 0.0, 0.0)
    for _ in range(10):
        for _ in range(100):
            log.add("INFO", "app", "x" * 100)
        log.unstored()
    chunks = log.close()
    assert sum(chunk.size for chunk in chunks) <= MOST_OF_ATTEMPT
    assert sum(joined(chunks)) == 1_000


def test_message_of_any_length_and_content_fits() -> None:
    log = RunLog(lambda: 0.0, 0.0)
    log.add("INFO", "app", "\x01" * 1_000_000)
    log.add("INFO", "app", "\x00\ud800")
    long, odd = log.close()
    assert long.size <= MOST_OF_ATTEMPT
    assert json.loads(odd.lines)[0][3] == "\\x00\\ud800"


def test_logs_of_a_job_that_is_finishing_hold_up_no_heartbeat(
    postgres_url: str, postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`finish` has locked the job, so they wait for its end; nothing is lost if that is rolled back."""
    monkeypatch.setattr(held_jobs, "_LOG_LATER", 0.0)
    pipe = Jobpipe(postgres_url)
    taken, take = list[list[Any]](), HeldJobs.unstored_logs

    def take_and_tell(held: HeldJobs) -> Any:
        taken.append(take(held))
        return taken[-1]

    @pipe.job("finish", max_retries=0)
    async def finish() -> None:
        with closing(psycopg.connect(postgres)) as own:
            await current_job().finish("undone", connection=own)
            log.info("after")
            monkeypatch.setattr(HeldJobs, "unstored_logs", take_and_tell)
            current_job().progress(0.5)
            await until(lambda: len(taken) > 1)

    job, logs = run_one(pipe, "finish")
    assert (job.status, texts(logs)) == (JobStatus.FAILED, ["after"])
    assert taken[:2] == [[], []]
