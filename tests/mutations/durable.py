"""What the promises of steps, sleeps and signals rest on, in each store and in the runner."""

from __future__ import annotations

from .mutation import CONTRACTS, STORES, Mutation

_RUN = "src/jobpipe/jobtypes/durable.py"
_STEPS = "tests/jobpipe/worker/test_steps.py"
_LIVES = "tests/simulation/test_lives.py::test_no_life_breaks_a_promise"
_IN_PYTHON = ("memory", "sqlite", "postgres")
"""The stores that ask the model what becomes of a signal."""


def _of(store: str, name: str, path: str, old: str, new: str, *tests: str) -> Mutation:
    """One of a store, which tests of the contract notice."""
    named = tuple(test if "::" in test else f"{CONTRACTS[store]}::{test}" for test in tests)
    return Mutation(f"{store}: {name}", f"{STORES}/{store}/{path}", old, new, named)


_FENCE = "no fence on steps"
_FENCED = "test_worker_that_lost_its_lease_records_nothing"
_STAYS = "a step of a recorded name takes its place"
_STAYED = "test_step_that_is_recorded_stays_as_it_is"
_WAKES = "a signal does not wake the job that waits for it"
_WOKEN = "test_signal_while_it_waits_queues_the_job"
_LOOKS = "a wait does not look whether the signal is there"
_NOT_LOST = "test_signal_between_the_question_and_the_wait_is_not_lost"
_ENDS = "a wait does not end"
_ENDED = "test_waiting_job_comes_due_when_its_time_is_over"
_FIRST = "test_first_of_a_name_wins"
_LATE = "test_signal_after_the_timeout_is_refused"
_FREE = "test_sleeping_job_is_scheduled_and_goes_on_in_time"

DURABLE = (
    _of(
        *("memory", _FENCE, "store.py"),
        "durable.keep_step(self._held(lease), step)",
        "durable.keep_step(self._ledger.leased.get(lease.id), step)",
        *(_FENCED, f"{_LIVES}[6]"),
    ),
    _of(
        *("sqlite", _FENCE, "sql/write_step.sql"),
        "AND token = ? AND lease_until IS NOT NULL",
        "AND ? IS NOT NULL",
        _FENCED,
    ),
    _of(
        *("redis", _FENCE, "lua/durable.lua"),
        "type(job) == 'table' and is_held(job, token) and seq or nil",
        "type(job) == 'table' and seq or nil",
        _FENCED,
    ),
    _of(
        *("postgres", _FENCE, "sql/write_step.sql"),
        " AND token = %(token)s AND CASE WHEN lease_until IS NOT NULL THEN status IN ('queued', 'running') END",
        " AND %(token)s::text IS NOT NULL",
        _FENCED,
    ),
    _of(
        *("memory", _STAYS, "durable.py"),
        "_of(record).steps.setdefault(step.name, step)",
        "_of(record).steps[step.name] = step",
        _STAYED,
    ),
    _of(
        *("sqlite", _STAYS, "sql/write_step.sql"),
        "ON CONFLICT DO NOTHING",
        "ON CONFLICT DO UPDATE SET result = excluded.result",
        _STAYED,
    ),
    _of(*("redis", _STAYS, "lua/durable.lua"), "'HSETNX'", "'HSET'", _STAYED),
    _of(
        *("postgres", _STAYS, "sql/write_step.sql"),
        "ON CONFLICT DO NOTHING",
        "ON CONFLICT (job, name) DO UPDATE SET result = excluded.result",
        _STAYED,
    ),
    _of(
        *("memory", _WAKES, "durable.py"),
        "        ledger.changes += 1\n        go_on(ledger, record, now)\n",
        "        ledger.changes += 1\n",
        *(_WOKEN, f"{_LIVES}[0]"),
    ),
    _of(
        *("sqlite", _WAKES, "durable.py"),
        '        cursor.execute(sql("go_on"), {"job": job, "now": now})\n    return answer\n',
        "    return answer\n",
        _WOKEN,
    ),
    _of(*("redis", _WAKES, "lua/signal.lua"), "  if is_awaited then go_on(job) end\n", "", _WOKEN),
    _of(
        *("postgres", _WAKES, "verbs/durable.py"),
        '        yield session.step("go_on", job=job)\n',
        "",
        _WOKEN,
    ),
    _of(
        *("memory", _LOOKS, "runs.py"),
        "    if move is Move.WAIT:\n        go_on(ledger, record, now)\n",
        "",
        _NOT_LOST,
    ),
    _of(
        *("sqlite", _LOOKS, "durable.py"),
        "        if move is Move.WAIT:\n            cursor.execute(sql(",
        "        if False:\n            cursor.execute(sql(",
        _NOT_LOST,
    ),
    _of(*("redis", _LOOKS, "lua/settle.lua"), "    if is_signalled then go_on(job) end\n", "", _NOT_LOST),
    _of(
        *("postgres", _LOOKS, "sql/suspended.sql"),
        "until, move = 'wait' AND NOT is_timed_out AND EXISTS (",
        "until, false AND EXISTS (",
        _NOT_LOST,
    ),
    _of(
        *("memory", _ENDS, "durable.py"),
        "own.waits.setdefault(name, Wait(name=name, until=until)).until",
        "own.waits.setdefault(name, Wait(name=name, until=until)).until + 1e9",
        _ENDED,
    ),
    _of(
        *("sqlite", _ENDS, "sql/come_due.sql"),
        "(status = 'scheduled' OR status = 'waiting')",
        "status = 'scheduled'",
        _ENDED,
    ),
    _of(
        *("redis", _ENDS, "lua/suspending.lua"),
        "  return entry[3], kind",
        "  return entry[3] + 1e9, kind",
        _ENDED,
    ),
    _of(
        *("postgres", _ENDS, "sql/come_due.sql"),
        "(status = 'scheduled' OR status = 'waiting')",
        "status = 'scheduled'",
        _ENDED,
    ),
    Mutation(
        "model: a signal of other content takes the place of the first",
        "src/jobpipe/model/durable.py",
        "    if known is not None:\n",
        "    if known == fingerprint:\n",
        tuple(f"{CONTRACTS[store]}::{_FIRST}" for store in _IN_PYTHON),
    ),
    _of(
        *("redis", "a signal of other content takes the place of the first", "lua/signal.lua"),
        "  if known then return",
        "  if known == fingerprint then return",
        _FIRST,
    ),
    Mutation(
        "model: a signal is accepted after the timeout",
        "src/jobpipe/model/durable.py",
        "    if is_timed_out:\n        return SignalAnswer.TIMED_OUT\n",
        "",
        tuple(f"{CONTRACTS[store]}::{_LATE}" for store in _IN_PYTHON),
    ),
    _of(
        *("redis", "a signal is accepted after the timeout", "lua/signal.lua"),
        "  if is_timed_out then return 'timed out' end\n",
        "",
        _LATE,
    ),
    Mutation(
        "model: a suspension costs an attempt",
        "src/jobpipe/model/lease.py",
        "frozenset({Move.SNOOZE, Move.SLEEP, Move.WAIT, Move.RELEASE})",
        "frozenset({Move.SNOOZE, Move.RELEASE})",
        tuple(f"{CONTRACTS[store]}::{test}" for store in _IN_PYTHON for test in (_FREE, _ENDED)),
    ),
    _of(
        *("redis", "a suspension costs an attempt", "lua/runs.lua"),
        "snooze = true, sleep = true, wait = true,",
        "snooze = true,",
        *(_FREE, _ENDED),
    ),
    Mutation(
        "run: a recorded step is run again",
        _RUN,
        "        if recorded is not None:\n            return decode(recorded, name)\n",
        "",
        (f"{_STEPS}::test_recorded_step_is_not_called_again[memory]", f"{_LIVES}[0]"),
    ),
    Mutation(
        "run: a refused step is taken for recorded",
        _RUN,
        "            self._keep((await self._insist(self._store.write_steps, [(lease, step)]))[0])\n",
        "            await self._insist(self._store.write_steps, [(lease, step)])\n",
        (f"{_STEPS}::test_worker_that_lost_its_lease_records_nothing",),
    ),
)
