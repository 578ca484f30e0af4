"""The built-in types, and which of them a program of one's own has."""

from __future__ import annotations

import pytest

from jobpipe import Jobpipe
from jobpipe.gateway.explain import Reason
from jobpipe.process.loading import load_pipe

from ...support.waiting import run


def test_program_of_ones_own_has_echo_but_not_sleep_and_fail() -> None:
    """Fault 50."""

    async def scenario() -> None:
        async with Jobpipe("memory://") as pipe, pipe.running():
            await pipe.enqueue("echo", 1, id="known")
            assert (await pipe.wait("known", 30)).result == 1
            for type in ("sleep", "fail"):
                job = await pipe.enqueue(type, {"any": "payload"})
                explanation = await pipe.explain(job.id)
                assert explanation.reason == Reason.NO_WORKER
                assert "needs --builtins" in explanation.text
                assert (await pipe.get(job.id)).attempts == 0

    run(scenario())


def test_they_can_be_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert {"sleep", "fail"} <= set(Jobpipe("memory://", builtins=True).types)
    monkeypatch.setenv("JOBPIPE_BUILTINS", "on")
    assert {"sleep", "fail"} <= set(Jobpipe("memory://").types)
    pipe = Jobpipe("memory://")
    pipe.configure(builtins=False)
    assert set(pipe.types) == {"echo", "http"}


def test_without_a_program_they_are_on_unless_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert {"sleep", "fail"} <= set(load_pipe(None).types)
    monkeypatch.setenv("JOBPIPE_BUILTINS", "off")
    assert set(load_pipe(None).types) == {"echo", "http"}


def test_own_type_takes_the_place_of_a_built_in_one() -> None:
    pipe = Jobpipe("memory://", builtins=True)

    @pipe.job
    def sleep(hours: int) -> int:
        return hours

    assert pipe.types["sleep"] is sleep

    @pipe.job
    def fail() -> None: ...

    assert pipe.types["fail"] is fail
