"""The checker of histories: it finds nothing in a good one, and names what is wrong with each of the bad ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from .checker import RULES, Rule, check
from .record import (
    TIMED_OUT,
    Bound,
    Effect,
    Event,
    Record,
    Rhythm,
    Run,
    Seen,
    Sent,
    Signalled,
    Slept,
    StoredJob,
    StoredRun,
    load_runs,
    load_sent,
    load_signals,
    load_steps,
    write_line,
)

A, B = "host:1:aaaa", "host:2:bbbb"
ORDER = "order"
TICK = "beat@1970-01-01T00:01:41Z"
NEXT_TICK = "beat@1970-01-01T00:01:42Z"


def stored_run(
    number: int = 1, worker: str = A, began_at: float = 10, ended_at: float = 12, **more: Any
) -> StoredRun:
    return StoredRun(number=number, worker=worker, began_at=began_at, ended_at=ended_at, **more)


def run(
    attempt: int = 1, worker: str = A, began_at: float = 10.1, ended_at: float = 11.9, **more: Any
) -> Run:
    return Run(
        **{"id": ORDER, "how": "done", **more},
        attempt=attempt,
        worker=worker,
        began_at=began_at,
        ended_at=ended_at,
    )


LOST = stored_run(error="WorkerLost")
SECOND = stored_run(2, B, 13, 15)
JOB = StoredJob(
    id=ORDER,
    type="mail",
    status="done",
    attempts=2,
    max_retries=3,
    created_at=9,
    result=[B, 2],
    runs=(LOST, SECOND),
)
KILLED = replace(run(how="killed"), ended_at=None)
STATUSES = ("queued", "running", "queued", "running", "done")
GOOD = Record(
    sent={ORDER: Sent(id=ORDER, type="mail", max_retries=3, not_before=9.5)},
    accepted=frozenset({ORDER}),
    cancelled=frozenset(),
    runs=[KILLED, run(2, B, 13.1, 14.9)],
    jobs={ORDER: JOB},
    lease=2,
    events=[Event(ORDER, status) for status in STATUSES],
    bounds=[Bound(type="mail", interval=3, concurrency=1)],
)
"""A job whose first worker was lost, and whose second has done it."""


def changed(**values: Any) -> Record:
    """The good one, with another job in it."""
    return replace(GOOD, jobs={ORDER: replace(JOB, **values)})


def with_ticks(*ticks: StoredJob, next_at: float = 103) -> Record:
    rhythm = Rhythm(name="beat", every=1, anchor_at=100, next_at=next_at)
    return replace(
        GOOD,
        jobs={ORDER: JOB, **{tick.id: tick for tick in ticks}},
        rhythm=rhythm,
        runs=[*GOOD.runs, *map(tick_run, ticks)],
    )


def tick(id: str, created_at: float) -> StoredJob:
    began = stored_run(1, A, created_at + 0.1, created_at + 0.2)
    return StoredJob(
        id=id,
        type="beat",
        status="done",
        attempts=1,
        max_retries=3,
        created_at=created_at,
        result=[A, 1],
        runs=(began,),
    )


def tick_run(job: StoredJob) -> Run:
    return run(id=job.id, began_at=job.created_at + 0.11, ended_at=job.created_at + 0.19)


def another(id: str, began_at: float, ended_at: float, key: str = "") -> Record:
    """The good one, and a second job of the same type beside it."""
    job = replace(JOB, id=id, attempts=1, result=[B, 1], runs=(stored_run(1, B, began_at, ended_at),))
    sent = Sent(id=id, type="mail", max_retries=3, key=key)
    note = run(1, B, began_at + 0.1, ended_at - 0.1, id=id)
    return replace(
        GOOD,
        sent={**GOOD.sent, id: sent},
        accepted=GOOD.accepted | {id},
        jobs={**GOOD.jobs, id: job},
        runs=[*GOOD.runs, note],
    )


def named(*statuses: tuple[str, str], began_at: float = 15.5, ended_at: float = 16) -> Record:
    """Two jobs of one unique name, and what the store told of them: the second is called x."""
    record = replace(another("x", began_at, ended_at), bounds=[])
    jobs = {id: replace(job, unique="name") for id, job in record.jobs.items()}
    return replace(record, jobs=jobs, events=[Event(id, status) for id, status in statuses])


def effect(mark: str, claimed_at: float, name: str = "charge") -> Effect:
    return Effect(id=ORDER, name=name, mark=mark, claimed_at=claimed_at)


def seen(value: str, name: str = "charge") -> Seen:
    return Seen(id=ORDER, name=name, value=value)


def heard(value: str) -> Seen:
    return Seen(id=ORDER, name="approved", value=value, is_signal=True)


def signalled(payload: str, how: str = "sent") -> Signalled:
    return Signalled(id=ORDER, name="approved", payload=payload, how=how)


def with_steps(**values: Any) -> Record:
    """The good one, whose second run has charged, and was told yes."""
    record = replace(
        changed(steps={"charge": "second"}),
        effects=[effect("first", 10), effect("second", 13)],
        seen=[seen("second"), heard("yes")],
        slept=[Slept(id=ORDER, name="nap", at=14), Slept(id=ORDER, name="nap", at=14.01, is_over=True)],
        signals=[signalled("yes"), signalled("yes", "accepted"), signalled("no"), signalled("no", "refused")],
    )
    return replace(record, **values)


FIRST = [(ORDER, status) for status in STATUSES]


def test_good_history_has_no_violation() -> None:
    assert check(GOOD) == []


GOOD_ONES: dict[str, Record] = {
    "a job that was sent and not accepted is there": replace(GOOD, accepted=frozenset()),
    "a job that was sent and not accepted is not there": replace(
        GOOD, sent={**GOOD.sent, "x": Sent(id="x", type="mail", max_retries=0)}
    ),
    "a stopped process has given a job back that went on for a moment": replace(
        GOOD,
        runs=[run(1, "host:3:cccc", 9.6, 9.9), *GOOD.runs],
        stopped=frozenset({3}),
    ),
    "a worker that was killed had run a short job that was claimed ahead": replace(
        GOOD, runs=[run(1, "host:3:cccc", 9.6, 9.65), *GOOD.runs], lost=frozenset({3})
    ),
    "a short job that was claimed ahead was cancelled while it ran": replace(
        changed(status="cancelled", attempts=0, runs=(), result=None),
        cancelled=frozenset({ORDER}),
        runs=[run(1, A, 10.1, 10.15)],
        events=[Event(ORDER, "queued"), Event(ORDER, "cancelled")],
    ),
    "the lease of a short job that was claimed ahead was over before it was settled": replace(
        GOOD, runs=[run(1, "host:3:cccc", 7.5, 7.55), *GOOD.runs]
    ),
    "a run that was given back was broken off": replace(
        GOOD, runs=[run(1, "host:3:cccc", 9.6, 10.3, how="broken off"), *GOOD.runs]
    ),
    "a worker that was lost goes on without a lease": replace(
        GOOD, runs=[run(1, A, 10.1, 16), run(2, B, 13.1, 14.9)]
    ),
    "a worker that was held up before it began has lost its lease": replace(
        GOOD, runs=[run(2, B, 13.1, 14.9), run(1, A, 14.5, 14.6)]
    ),
    "ticks follow each other": with_ticks(tick(TICK, 101), tick(NEXT_TICK, 102)),
    "a tick was left out since the one before was late": with_ticks(tick(TICK, 102.5)),
    "a tick came after the last look at the schedule": with_ticks(
        tick(TICK, 101), tick(NEXT_TICK, 102), next_at=102
    ),
    "a cancelled job has never run": replace(
        changed(status="cancelled", attempts=0, runs=(), result=None),
        cancelled=frozenset({ORDER}),
        runs=[],
        events=[Event(ORDER, "queued"), Event(ORDER, "cancelled")],
    ),
    "jobs of two keys run at once": replace(
        another("x", 10.5, 11.5, key="k"), bounds=[Bound(type="mail", concurrency=1, is_keyed=True)]
    ),
    "one of a unique name waits until the other has ended": named(
        *FIRST[:2],
        ("x", "queued"),
        *FIRST[2:],
        ("x", "scheduled"),
        ("x", "queued"),
        ("x", "running"),
        ("x", "done"),
    ),
    "a job was replaced, and so runs before its own time": replace(
        GOOD, sent={ORDER: replace(GOOD.sent[ORDER], unique="name", not_before=11, max_retries=9)}
    ),
    "a step was run again since it was not recorded": with_steps(),
    "a run that was claimed before goes on, and runs a step that another has recorded": with_steps(
        effects=[effect("second", 13), effect("first", 10)]
    ),
    "a step was run, and nobody knows whether it was recorded": with_steps(
        effects=[*with_steps().effects, effect("third", 13, "ship")]
    ),
    "a later run got what was recorded": with_steps(seen=[seen("second"), seen("second"), heard("yes")]),
    "a signal was accepted, and nobody was told": with_steps(signals=[signalled("yes")]),
    "a signal came too late": with_steps(
        seen=[seen("second"), heard(TIMED_OUT)], signals=[signalled("yes"), signalled("yes", "refused")]
    ),
    "a signal was accepted, and the job cancelled before it asked for it": with_steps(seen=[seen("second")]),
    "a suspended run has the number of the next one": replace(
        GOOD,
        runs=[KILLED, run(2, B, 12.5, 12.6, how="suspended"), run(2, B, 13.1, 14.9)],
    ),
    "a worker that was frozen was told that its lease is lost": replace(
        GOOD, runs=[run(1, "host:3:cccc", 7.5, 9.9, how="lost"), *GOOD.runs]
    ),
    "a burst is let through": replace(
        another("x", 10.5, 11.5), bounds=[Bound(type="mail", interval=3, burst=2)]
    ),
}

BAD_ONES: dict[str, tuple[str, Record]] = {
    "an accepted job is not there": ("lost", replace(GOOD, jobs={})),
    "a job has not ended": ("lost", changed(status="queued", attempts=1, runs=(LOST,), result=None)),
    "nobody has sent a job": ("made up", replace(GOOD, sent={}, accepted=frozenset())),
    "a job is not as it was sent": ("made up", changed(type="sms")),
    "two runs succeeded": ("two outcomes", changed(runs=(stored_run(), SECOND))),
    "it was told to have ended twice": (
        "two outcomes",
        replace(GOOD, events=[*GOOD.events, Event(ORDER, "failed")]),
    ),
    "it was told to be done and is failed": (
        "two outcomes",
        changed(
            status="failed",
            attempts=4,
            result=None,
            runs=tuple(stored_run(n, A, 10 * n, 10 * n + 2, error="WorkerLost") for n in range(1, 5)),
        ),
    ),
    "it ran again after it was done": (
        "transition",
        replace(GOOD, events=[*GOOD.events, Event(ORDER, "running")]),
    ),
    "it is done without a run": ("outcome", changed(runs=(LOST,), attempts=1)),
    "it is done, and no handler has done it": ("outcome", replace(GOOD, runs=[KILLED])),
    "it is done, and its handler was broken off": (
        "outcome",
        replace(GOOD, runs=[KILLED, run(2, B, 13.1, 14.9, how="broken off")]),
    ),
    "the late one's result was taken": ("outcome", changed(result=[A, 1])),
    "two leases overlap in the store": (
        "overlapping leases",
        changed(runs=(LOST, stored_run(2, B, 11.5, 15))),
    ),
    "a handler began while another had the lease": (
        "overlapping leases",
        replace(GOOD, runs=[KILLED, run(2, B, 11.5, 14.9)]),
    ),
    "a handler ran to its end that the store knows nothing of": (
        "without a lease",
        replace(GOOD, runs=[*GOOD.runs, run(2, "host:3:cccc", 13.2, 14.8)]),
    ),
    "a short job was run twice within the lease": (
        "without a lease",
        replace(GOOD, runs=[run(1, "host:3:cccc", 9.5, 9.55), *GOOD.runs]),
    ),
    "a worker was given up before its lease was over": ("early rescue", replace(GOOD, lease=2.5)),
    "there were more runs than allowed": ("attempts", changed(max_retries=0)),
    "a run was not counted": ("attempts", changed(attempts=1)),
    "a run left no trace": ("attempts", changed(runs=(SECOND,))),
    "it failed with attempts left": ("attempts", changed(status="failed")),
    "a handler saw an attempt beyond the last": (
        "attempts",
        replace(GOOD, runs=[*GOOD.runs, run(5, B, 20, 21)]),
    ),
    "it ran before its time": (
        "early",
        replace(GOOD, sent={ORDER: replace(GOOD.sent[ORDER], not_before=10.2)}),
    ),
    "a handler began before the store let it": (
        "early",
        replace(GOOD, runs=[KILLED, run(2, B, 12.9, 14.9)]),
    ),
    "it was told to be cancelled and is done": ("cancelled", replace(GOOD, cancelled=frozenset({ORDER}))),
    "a tick was left out": ("ticks", with_ticks(tick(TICK, 101))),
    "a tick was left out in the middle": (
        "ticks",
        with_ticks(tick(TICK, 101), tick("beat@1970-01-01T00:01:43Z", 103), next_at=104),
    ),
    "the first tick was left out": ("ticks", with_ticks(tick(NEXT_TICK, 102))),
    "there was no tick at all": ("ticks", with_ticks()),
    "a tick has two jobs": (
        "ticks",
        with_ticks(tick(TICK, 101), tick("beat@1970-01-01T00:01:41.000500Z", 101), tick(NEXT_TICK, 102)),
    ),
    "a job is that of no tick": (
        "ticks",
        with_ticks(tick(TICK, 101), tick(NEXT_TICK, 102), tick("beat@1970-01-01T00:01:42.300000Z", 102.3)),
    ),
    "two jobs started too soon after each other": ("rate", another("x", 15.5, 16)),
    "a burst was too large": (
        "rate",
        replace(another("x", 10.5, 11.5), bounds=[Bound(type="mail", interval=10, burst=2)]),
    ),
    "two of a unique name wait": ("unique", named((ORDER, "queued"), ("x", "scheduled"))),
    "two of a unique name have begun": (
        "unique",
        named(*FIRST[:3], ("x", "queued"), ("x", "running"), *FIRST[3:], ("x", "done")),
    ),
    "two handlers of a unique name ran at once": (
        "unique",
        named(*FIRST, ("x", "queued"), ("x", "running"), ("x", "done"), began_at=14, ended_at=16),
    ),
    "a step that was recorded was run again": (
        "step again",
        with_steps(effects=[*with_steps().effects, effect("third", 16)]),
    ),
    "a run ran a step twice": ("step again", with_steps(effects=[effect("twice", 13), effect("second", 13)])),
    "a step is recorded that no run has done": ("step", with_steps(effects=[])),
    "a run got another result than the one that is recorded": (
        "step",
        with_steps(seen=[seen("first"), seen("second")]),
    ),
    "what a step returned is not recorded": ("step", with_steps(seen=[seen("third", "ship")])),
    "two runs were told different things of one wait": (
        "signal",
        with_steps(seen=[heard("yes"), heard(TIMED_OUT)], signals=[signalled("yes")]),
    ),
    "a signal was accepted, and the wait timed out": ("signal", with_steps(seen=[heard(TIMED_OUT)])),
    "a signal was accepted, and the run got another": ("signal", with_steps(seen=[heard("no")])),
    "a signal was refused, and a run got it": (
        "signal",
        with_steps(signals=[signalled("yes"), signalled("yes", "refused")]),
    ),
    "a run got a signal that nobody sent": ("signal", with_steps(signals=[])),
    "two signals of one name were accepted": (
        "signal",
        with_steps(seen=[], signals=[signalled("yes", "accepted"), signalled("no", "accepted")]),
    ),
    "a job waits, and its signal was accepted": (
        "lost",
        replace(with_steps(), jobs={ORDER: replace(JOB, status="waiting", steps={"charge": "second"})}),
    ),
    "a sleep was too short": (
        "early",
        with_steps(
            slept=[Slept(id=ORDER, name="nap", at=14), Slept(id=ORDER, name="nap", at=13.8, is_over=True)]
        ),
    ),
    "two ran at once where one may": ("concurrency", another("x", 14, 16)),
    "two of one key ran at once": (
        "concurrency",
        replace(another("x", 14, 16), bounds=[Bound(type="mail", concurrency=1, is_keyed=True)]),
    ),
}


@pytest.mark.parametrize("name", GOOD_ONES)
def test_what_is_allowed_is_no_violation(name: str) -> None:
    record = GOOD_ONES[name]
    limits = record.bounds if "key" in name or "burst" in name else []
    assert check(replace(record, bounds=limits)) == []


@pytest.mark.parametrize("name", BAD_ONES)
def test_bad_history_is_rejected_by_name(name: str) -> None:
    rule, record = BAD_ONES[name]
    found = check(record)
    assert rule in {violation.rule for violation in found}, found
    assert all(str(violation).startswith(violation.rule) for violation in found)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_every_rule_rejects_something(rule: Rule) -> None:
    assert any(list(rule(record)) for _, record in BAD_ONES.values())


def test_what_was_written_is_read_again(tmp_path: Path) -> None:
    for what, at in (("begin", 1.0), ("done", 2.0)):
        write_line(tmp_path / "notes", what=what, id="a", attempt=1, worker=A, at=at)
    write_line(tmp_path / "notes", what="begin", id="b", attempt=1, worker=A, at=1.5)
    assert load_runs(tmp_path) == [
        Run(id="a", attempt=1, worker=A, began_at=1, ended_at=2, how="done"),
        Run(id="b", attempt=1, worker=A, began_at=1.5),
    ]
    write_line(tmp_path / "sent", what="sent", id="a", type="mail", max_retries=3, not_before=1.0, key="")
    write_line(tmp_path / "sent", what="accepted", id="a")
    write_line(tmp_path / "sent", what="cancelled", id="a")
    sent = {"a": Sent(id="a", type="mail", max_retries=3, not_before=1)}
    assert load_sent(tmp_path) == (sent, frozenset({"a"}), frozenset({"a"}))


def test_what_steps_and_senders_of_signals_wrote_is_read_again(tmp_path: Path) -> None:
    write_line(tmp_path / "steps", what="effect", id=ORDER, name="charge", mark="m", claimed_at=1.0)
    write_line(tmp_path / "steps", what="seen", id=ORDER, name="approved", value="yes", is_signal=True)
    write_line(tmp_path / "steps", what="slept", id=ORDER, name="nap", at=2.0, is_over=True)
    nap = Slept(id=ORDER, name="nap", at=2, is_over=True)
    assert load_steps(tmp_path) == ([effect("m", 1)], [heard("yes")], [nap])
    write_line(tmp_path / "signals", id=ORDER, name="approved", payload="yes")
    write_line(tmp_path / "signals", id=ORDER, name="approved", payload="yes", how="accepted")
    assert load_signals(tmp_path) == [signalled("yes"), signalled("yes", "accepted")]


def test_line_that_was_cut_off_is_not_there(tmp_path: Path) -> None:
    write_line(tmp_path / "sent", what="accepted", id="a")
    with (tmp_path / "sent").open("a") as file:
        file.write('{"what": "accepted", "id"')
    assert load_sent(tmp_path)[1] == {"a"}
