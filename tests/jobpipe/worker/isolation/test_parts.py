"""The parts: which types can be isolated, what crosses between the processes, and what the system tells of them."""

from __future__ import annotations

import os
import resource
import sys
from typing import Any

import msgspec
import pytest

from jobpipe import BadInputError, Jobpipe, JobStatus, SettingsError, errors
from jobpipe.gateway.async_store import AsyncStore
from jobpipe.gateway.feed import Feed
from jobpipe.gateway.lazy_store import Gateway
from jobpipe.gateway.signals import Signals
from jobpipe.model.durable import JobSignal
from jobpipe.model.newjob import NewJob, Receipt
from jobpipe.stores.memory import open_memory
from jobpipe.testing.tools import take
from jobpipe.worker.isolation import address, usage
from jobpipe.worker.isolation.address import ALL, isolated, warnings_of
from jobpipe.worker.isolation.answers import Answers
from jobpipe.worker.isolation.messages import (
    LARGEST,
    Call,
    Fault,
    Frames,
    Lost,
    Reply,
    encode,
    error_of,
    fault_of,
    frame,
)
from jobpipe.worker.isolation.verbs import FORWARDED, READING, verb_of

from ....support.each import for_each
from ....support.waiting import run
from . import handlers

NEW = NewJob(
    id="a",
    type="t",
    queue="q",
    payload=b"1",
    max_retries=0,
    priority=0,
    delay=0.0,
    run_at=None,
    deadline=None,
    fingerprint="f",
)
HERE = f"{handlers.__name__}:pipe"


def work() -> None:
    """A handler."""


# Which types


def test_types_are_isolated_where_they_or_the_settings_say_so() -> None:
    pipe = Jobpipe("memory://")
    pipe.job("yes", isolate=True)(work)
    pipe.job("no", isolate=False)(work)
    pipe.job("unsaid")(work)
    assert set(isolated(pipe.types, "none", "app:pipe")) == {"yes"}
    found = isolated(pipe.types, ALL, "app:pipe")
    assert found == {"yes": "app:pipe", "unsaid": "app:pipe"}, "and no built-in one"


def test_an_embedded_type_is_found_in_the_module_of_its_handler() -> None:
    assert isolated(handlers.pipe.types, "none", None)["pid"] == HERE


def test_a_handler_of_the_main_program_is_refused_at_start() -> None:
    pipe = Jobpipe("memory://")
    handler = type("Handler", (), {"__module__": "__main__", "__call__": lambda self: None})()
    pipe.job("main", isolate=True)(handler)
    with pytest.raises(SettingsError, match="'main': its handler is in the main program"):
        pipe.make_service()


def test_a_type_that_no_child_could_find_is_refused_at_start() -> None:
    pipe = Jobpipe("memory://")
    pipe.job("lost", isolate=True)(work)
    with pytest.raises(SettingsError, match="has neither the job type nor its Jobpipe"):
        pipe.make_service()
    pipe.make_service(workers=0)  # it runs nothing


@pytest.mark.parametrize(("name", "value"), [("CAN_MEASURE", False), ("executable", "")])
def test_it_is_refused_where_it_cannot_be_had(name: str, value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(address if name == "CAN_MEASURE" else sys, name, value)
    with pytest.raises(SettingsError, match="JOBPIPE_ISOLATE"):
        isolated(handlers.pipe.types, "none", HERE)
    assert isolated({}, ALL, HERE) == {}


def test_options_of_children_without_isolation_are_told_at_the_start(
    caplog: pytest.LogCaptureFixture,
) -> None:
    pipe = Jobpipe("memory://")
    pipe.job("bounded", memory="64M", max_jobs_per_child=5)(work)
    pipe.job("never", isolate=False, max_jobs_per_child=5)(work)
    pipe.job("plain")(work)

    async def scenario() -> None:
        async with pipe, pipe.running(workers=1):
            pass

    run(scenario())
    bounded, never = (each.getMessage() for each in caplog.records if each.levelname == "WARNING")
    assert bounded == (
        "the type 'bounded' is not isolated and ignores memory and max_jobs_per_child: "
        "give it isolate=True, or set JOBPIPE_ISOLATE=all"
    )
    assert never == "the type 'never' is not isolated and ignores max_jobs_per_child: give it isolate=True"
    assert not list(warnings_of(pipe.types, {"bounded", "never"}))


@for_each(["512X", "", "1.5G", "15M", -1, True, 2.5])
def test_a_bound_of_memory_must_be_a_size(memory: Any) -> None:
    with pytest.raises(BadInputError, match="memory must be"):
        Jobpipe("memory://").job("x", memory=memory)


@for_each([("512M", 2**29), ("2g", 2**31), ("64 MiB", 2**26), (10**8, 10**8), ("20000K", 20_480_000)])
def test_a_bound_of_memory_may_have_a_unit(case: tuple[Any, int]) -> None:
    memory, size = case
    assert Jobpipe("memory://").job("x", memory=memory)(work).memory == size


@for_each([0, -1, True, 1.5, "10"])
def test_the_jobs_of_a_child_are_a_whole_number(value: Any) -> None:
    with pytest.raises(BadInputError, match="max_jobs_per_child must be"):
        Jobpipe("memory://").job("x", max_jobs_per_child=value)


def test_the_switch_is_one() -> None:
    with pytest.raises(BadInputError, match="isolate must be True or False"):
        Jobpipe("memory://").job("x", isolate="yes")  # type: ignore[call-overload]


# What crosses


@for_each(
    [
        errors.BadInputError("payload", "is wrong"),
        errors.JobConflictError("a"),
        errors.LeaseLostError("a"),
        errors.QueueFullError("mail", waiting=3, needed=2, capacity=4),
        errors.StoreAwayError("gone"),
        errors.DuplicateError("a", "name", "wait"),
    ]
)
def test_an_error_of_ours_is_the_same_on_the_other_side(error: Exception) -> None:
    found = error_of(msgspec.msgpack.decode(encode(fault_of(error)), type=Fault))
    assert (type(found), str(found), vars(found)) == (type(error), str(error), vars(error))


def test_an_error_of_others_is_one_of_the_store() -> None:
    found = error_of(fault_of(ZeroDivisionError("by zero")))
    assert (type(found), str(found)) == (errors.StoreError, "ZeroDivisionError: by zero")


def test_an_error_of_others_may_have_any_fields() -> None:
    """Else there would be no reply, and the handler would wait for ever."""
    error = OSError("no such file: \udce9")
    error.connection = object()  # type: ignore[attr-defined]
    found = error_of(msgspec.msgpack.decode(encode(fault_of(error)), type=Fault))
    assert str(found) == "OSError: no such file: \\udce9"


@for_each(sorted(FORWARDED))
def test_every_verb_can_be_called_from_a_child(name: str) -> None:
    verb_of(name)


def test_verbs_that_read_are_verbs() -> None:
    assert READING <= FORWARDED


def test_no_verb_that_leases_jobs_can_be_called_from_a_child() -> None:
    assert {"insert", "get", "write_steps", "receive", "signal", "durable", "cancel"} <= FORWARDED
    assert not FORWARDED & {"claim", "settle", "extend", "insert_in", "settle_in", "write_step_in"}


def test_arguments_and_results_of_an_insert_cross() -> None:
    store, job = open_memory("memory://"), NEW
    verb = verb_of("insert")
    other = msgspec.structs.replace(job, fingerprint="g")
    arguments = verb.decode_arguments(verb.encode_arguments(([[job], [other]],), {"capacity": 5}))
    assert arguments == {"batches": [[job], [other]], "capacity": 5}
    done, refused = verb.decode_result(encode(store.insert(**arguments)))
    assert done == [Receipt("a", JobStatus.QUEUED, is_new=True)]
    assert type(refused) is errors.JobConflictError


def test_the_runner_is_told_what_children_do() -> None:
    store, signals, told = open_memory("memory://"), Signals(), list[object]()
    signals.on_work(lambda: told.append("work"))
    signals.on_cancel(told.append)
    signals.on_pause(told.append)
    async_store = AsyncStore(store, 0, signals.notify_work)
    answers = Answers(Gateway(store, async_store, Feed(store)), signals)

    async def call(verb: str, *args: Any) -> Reply:
        return await answers.answer(Call(1, verb, verb_of(verb).encode_arguments(args, {})))

    async def scenario() -> None:
        await call("insert", [[NEW]])
        await call("signal", "a", JobSignal(name="go", payload=b"1", fingerprint="f"))
        await call("pause", "q")
        await call("resume", "q")
        take(store, types=["t"])
        await call("cancel", ["a", "unknown"])
        assert told == ["work", "work", "q", "work", ["a"]]
        refused = await answers.answer(Call(1, "settle", b""))
        assert refused.fault is not None
        assert refused.fault.text == "a child cannot call 'settle'"

    run(scenario())


def test_messages_are_cut_out_of_what_arrives() -> None:
    frames, data = Frames(), frame(Lost(1)) + frame(Lost(2))
    found = [body for at in range(len(data)) for body in frames.feed(data[at : at + 1])]
    assert found == [encode(Lost(1)), encode(Lost(2))]
    with pytest.raises(ValueError, match="too large"):
        frames.feed((LARGEST + 1).to_bytes(4, "big"))


# What the system tells


def test_memory_and_cpu_of_a_process_are_those_that_it_sees_itself() -> None:
    own = resource.getrusage(resource.RUSAGE_SELF)
    assert usage.cpu_seconds(os.getpid()) >= own.ru_utime + own.ru_stime - 0.1
    before = usage.resident(os.getpid())
    held = bytearray(b"x") * 2**26
    assert usage.resident(os.getpid()) - before > 2**25
    del held


def test_a_process_that_is_gone_uses_nothing() -> None:
    pid = os.posix_spawn(sys.executable, [sys.executable, "-S", "-c", ""], os.environ)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert usage.has_ended(pid)
    assert usage.resident(pid) == 0
    os.waitpid(pid, 0)
    assert usage.has_ended(pid)
    assert usage.cpu_seconds(pid) == 0
