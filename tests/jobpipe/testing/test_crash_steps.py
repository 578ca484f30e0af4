"""Crash tests of handlers with steps, sleeps and signals: a process dies at each thing that is recorded."""

from __future__ import annotations

import asyncio
import logging
import re
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from jobpipe import BadInputError, Jobpipe, SignalTimeout, current_job
from jobpipe.testing import JobTester

from ...support.waiting import run

DAY = timedelta(days=1)
SIGNALS = {"approved": {"by": "ada"}}
PLACES = [
    "before the handler",
    *(f"{when} step 'charge' is recorded" for when in ("before", "after")),
    *(f"{when} sleep 'cool-off' is recorded" for when in ("before", "after")),
    *(f"{when} the wait for 'approved' is recorded" for when in ("before", "after")),
    *(f"{when} signal 'approved' is received" for when in ("before", "after")),
    *(f"{when} step 'ship' is recorded" for when in ("before", "after")),
    "after the handler",
    "before the settle",
    "after the settle",
]


class World:
    """What jobs do to it; the effect of one name counts once if it is idempotent."""

    def __init__(self, *, is_idempotent: bool = True) -> None:
        self._is_idempotent = is_idempotent
        self.effects: Counter[str] = Counter()
        self.calls: list[str] = []

    def do(self, what: str) -> None:
        self.calls.append(what)
        if not (self._is_idempotent and self.effects[what]):
            self.effects[what] += 1

    async def do_async(self, what: str) -> None:
        self.do(what)

    def clear(self) -> None:
        self.effects.clear()

    def check(self) -> None:
        assert self.effects == {"charge": 1, "ship": 1}, dict(self.effects)


def order_of(pipe: Jobpipe, world: World, *, between: Callable[[str], object] = lambda _: None) -> Any:
    """A handler, with something that it does between its steps."""

    @pipe.job
    async def order(id: str) -> Any:
        job = current_job()
        await job.step("charge", world.do, "charge")
        between("charged")
        await job.sleep("cool-off", DAY)
        between("slept")
        answer = await job.wait_for("approved", timeout=10)
        between("approved")
        await job.step("ship", world.do_async, "ship")
        between("shipped")
        return answer

    return order


def plain_of(pipe: Jobpipe, world: World) -> Any:
    """The same as a plain function."""

    @pipe.job
    def order(id: str) -> Any:
        job = current_job()
        job.step_sync("charge", world.do, "charge")
        job.sleep_sync("cool-off", DAY)
        answer = job.wait_for_sync("approved", timeout=10)
        job.step_sync("ship", world.do, "ship")
        return answer

    return order


def crash(jobs: JobTester, job_type: Any, world: World, **options: Any) -> str:
    """At which place the handler does not stand a crash, and why; without what pytest adds."""
    given: dict[str, Any] = {"check": world.check, "setup": world.clear, "signals": SIGNALS, **options}
    with pytest.raises(AssertionError) as caught:
        jobs.crash_everywhere_sync(job_type, "17", **given)
    return str(caught.value).splitlines()[0]


@pytest.mark.parametrize("make", [order_of, plain_of])
def test_idempotent_steps_stand_a_crash_everywhere(pipe: Jobpipe, make: Callable[..., Any]) -> None:
    world = World()
    order = make(pipe, world)
    with pipe.testing() as jobs:
        jobs.crash_everywhere_sync(order, "17", check=world.check, setup=world.clear, signals=SIGNALS)
        assert len(jobs.all) == 1 + len(PLACES)
        assert [(job.status, job.result) for job in jobs.all] == [("done", SIGNALS["approved"])] * 15
    assert Counter(world.calls) == {"charge": 16, "ship": 16}, (
        "each ran again once: where it was not recorded"
    )

    async def main() -> None:
        async with pipe.testing() as jobs:
            await jobs.crash_everywhere(order, "17", check=world.check, setup=world.clear, signals=SIGNALS)
            assert len(jobs.all) == 1 + len(PLACES)

    run(main())


def test_each_place_is_a_crash(pipe: Jobpipe) -> None:
    """A check that fails with the nth job is told the nth place."""
    told = []
    for n in range(1 + len(PLACES)):
        world, checks = World(), iter(range(100))

        def check(n: int = n, checks: Any = checks) -> None:
            assert next(checks) != n, "it is this one"

        name = f"order-{n}"
        order = pipe.job(name)(order_of(Jobpipe("memory://"), world).__wrapped__)
        with pipe.testing() as jobs:
            told.append(crash(jobs, order, world, check=check).removeprefix(f"{name} "))
            lost = [job.attempts for job in jobs.all]
            assert set(lost[:-1]) <= {1, 2}
    assert told == [
        "without a crash: it is this one",
        *(f"with a crash {place}: it is this one" for place in PLACES),
    ]


def test_a_step_that_is_not_idempotent_is_named(pipe: Jobpipe) -> None:
    world = World(is_idempotent=False)
    with pipe.testing() as jobs:
        assert crash(jobs, order_of(pipe, world), world) == (
            "order with a crash before step 'charge' is recorded: {'charge': 2, 'ship': 1}"
        )


@pytest.mark.parametrize(
    ("after", "place"),
    [
        # Why without a crash: the sleep and the wait end a run each, so that it is done again.
        ("charged", "without a crash"),
        ("slept", "without a crash"),
        ("approved", "with a crash before step 'ship' is recorded"),
        ("shipped", "with a crash after the handler"),
    ],
)
def test_an_effect_outside_of_a_step_is_found(pipe: Jobpipe, after: str, place: str) -> None:
    world = World()
    effects: list[str] = []

    def between(where: str) -> None:
        if where == after:
            effects.append(where)

    def check() -> None:
        world.check()
        assert len(effects) == 1, f"done {len(effects)} times"

    def clear() -> None:
        world.clear()
        effects.clear()

    order = order_of(pipe, world, between=between)
    with pipe.testing() as jobs:
        told = crash(jobs, order, world, check=check, setup=clear)
    assert told.startswith(f"order {place}: done ")


def test_steps_side_by_side(pipe: Jobpipe) -> None:
    world = World()

    @pipe.job
    async def gathering() -> None:
        job = current_job()
        await asyncio.gather(*(job.step(name, world.do_async, name) for name in ("charge", "ship")))

    @pipe.job
    async def grouped() -> None:
        job = current_job()
        async with asyncio.TaskGroup() as group:
            for name in ("charge", "ship"):
                group.create_task(job.step(name, world.do, name))

    async def main() -> None:
        async with pipe.testing() as jobs:
            for job_type in (gathering, grouped):
                await jobs.crash_everywhere(job_type, check=world.check, setup=world.clear)
            assert len(jobs.all) == 2 * 9

    run(main())
    assert Counter(world.calls)["charge"] >= 18 + 2, "again where it was not recorded"


def test_a_timeout_is_waited_for(pipe: Jobpipe) -> None:
    ended: list[float] = []

    @pipe.job
    async def patient() -> None:
        with suppress(SignalTimeout):
            await current_job().wait_for("never", timeout=DAY)
        ended.append(jobs.now.timestamp() - current_job().created_at.timestamp())

    with pipe.testing() as jobs:
        jobs.crash_everywhere_sync(patient, check=lambda: None, signals={"another": 1})
        lease = pipe.settings.lease
        assert len(jobs.all) == 7
    assert {round(seconds - 86_400) for seconds in ended} <= {0, round(lease)}


def test_a_signal_that_is_missing_is_named(pipe: Jobpipe) -> None:
    @pipe.job
    async def patient(id: str) -> None:
        await current_job().wait_for("approved")

    with pipe.testing() as jobs:
        told = crash(jobs, patient, World(), signals={"aproved": 1})
        assert told == (
            "patient without a crash: the job waits for the signal 'approved': give it as signals={'approved': …}"
        )


def test_another_job_may_send_the_signal(pipe: Jobpipe) -> None:
    @pipe.job
    async def parent() -> Any:
        job = current_job()
        await job.step("ask", ask, job.id)
        return await job.wait_for("answer")

    async def ask(id: str) -> None:
        await child.enqueue(id, delay=DAY, id=f"child-of-{id}")

    @pipe.job
    async def child(id: str) -> None:
        await pipe.signal(id, "answer", 42)

    with pipe.testing() as jobs:
        jobs.crash_everywhere_sync(parent, check=lambda: None)
        assert {job.result for job in jobs.of(parent)} == {42}
        assert {job.status.value for job in jobs.all} == {"done"}
        assert len(jobs.of(parent)) == len(jobs.of(child)) == 11


def test_only_the_job_itself_dies(pipe: Jobpipe) -> None:
    """Not another of its type that it enqueues."""
    ran: list[tuple[str, int]] = []

    @pipe.job
    async def twin(n: int) -> None:
        job = current_job()
        ran.append((job.id, n))
        await job.step("work", len, "abc")
        if n:
            await twin.enqueue(n - 1, id=f"{job.id}-twin")

    with pipe.testing() as jobs:
        jobs.crash_everywhere_sync(twin, 1, check=lambda: None)
        assert {job.attempts for job in jobs.all if job.id.endswith("-twin")} == {1}
        assert Counter(job.attempts for job in jobs.all if not job.id.endswith("-twin")) == {1: 2, 2: 5}


def test_a_handler_that_catches_everything_does_not_outlive_its_process(pipe: Jobpipe) -> None:
    world = World()

    @pipe.job
    async def stubborn() -> None:
        job = current_job()
        for name in ("charge", "ship"):
            with suppress(BaseException):
                await job.step(name, world.do_async, name)

    with pipe.testing() as jobs:
        jobs.crash_everywhere_sync(stubborn, check=world.check, setup=world.clear)
        assert Counter(job.attempts for job in jobs.all) == {1: 2, 2: 7}


def test_only_the_rescue_has_something_to_tell(pipe: Jobpipe, caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    with caplog.at_level(logging.INFO), pipe.testing() as jobs:
        jobs.crash_everywhere_sync(order_of(pipe, world), "17", check=world.check, signals=SIGNALS)
    told = {re.sub("^job [^ ]+ ", "", record.getMessage()) for record in caplog.records}
    assert told == {"was lost by its worker testing: it is queued now"}


@pytest.mark.parametrize("signals", [["approved"], "approved", {"no spaces please": 1}, {5: 1}])
def test_wrong_signals_are_refused(pipe: Jobpipe, signals: Any) -> None:
    @pipe.job
    async def work() -> None: ...

    with pipe.testing() as jobs, pytest.raises(BadInputError, match="signals"):
        jobs.crash_everywhere_sync(work, check=print, signals=signals)
