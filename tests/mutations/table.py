"""The mutations: what is taken out of the source, and the tests that must fail without it.

The text to be replaced must be there exactly once: code that moves takes its mutation along.
"""

from __future__ import annotations

from .durable import DURABLE
from .mutation import CONTRACTS, STORES, Mutation

_WORKER = "src/jobpipe/worker"
_MEMORY, _SQLITE = CONTRACTS["memory"], CONTRACTS["sqlite"]
_RUNS = "tests/jobpipe/worker/test_runner.py"
_STOPS = "tests/jobpipe/worker/test_runner_stop.py"
_MARKS = "tests/faults/test_marks.py"

MUTATIONS = (
    Mutation(
        "memory: no fence on settle",
        f"{STORES}/memory/store.py",
        "        record = self._held(lease)\n        if record is None:\n            known =",
        "        record = self._ledger.leased.get(lease.id)\n        if record is None:\n            known =",
        (
            f"{_MEMORY}::test_same_worker_with_its_old_lease_is_refused_too",
            f"{_MEMORY}::test_old_settlement_is_refused_while_the_next_run_is_under_way",
        ),
    ),
    Mutation(
        "sqlite: no fence on settle",
        f"{STORES}/sqlite/sql/settle.sql",
        "WHERE jobs.id = told.id AND jobs.token = told.token AND jobs.lease_until IS NOT NULL",
        "WHERE jobs.id = told.id AND jobs.lease_until IS NOT NULL",
        (
            f"{_SQLITE}::test_same_worker_with_its_old_lease_is_refused_too",
            f"{_SQLITE}::test_old_settlement_is_refused_while_the_next_run_is_under_way",
        ),
    ),
    Mutation(
        "memory: a claim does not count the attempt",
        f"{STORES}/memory/runs.py",
        "    record.attempts += 1\n    record.runs += 1\n",
        "    record.runs += 1\n",
        (
            f"{_MEMORY}::test_lost_worker_costs_the_attempt",
            f"{_MEMORY}::test_poison_job_fails_at_its_last_attempt",
        ),
    ),
    Mutation(
        "sqlite: a claim does not count the attempt",
        f"{STORES}/sqlite/sql/claim.sql",
        "    attempts = attempts + told.begins,\n",
        "",
        (
            f"{_SQLITE}::test_lost_worker_costs_the_attempt",
            f"{_SQLITE}::test_poison_job_fails_at_its_last_attempt",
        ),
    ),
    Mutation(
        "memory: a rescue does not look at the lease",
        f"{STORES}/memory/runs.py",
        "lost = [record for record in ledger.leased.values() if record.lease_until <= now]",
        "lost = list(ledger.leased.values())",
        (
            f"{_MEMORY}::test_live_lease_is_not_rescued",
            f"{_MEMORY}::test_only_the_lease_that_was_extended_lives_on",
        ),
    ),
    Mutation(
        "sqlite: a rescue does not look at the lease again",
        f"{STORES}/sqlite/leasing.py",
        'cursor.execute(sql("expired"), {"now": now, "limit": limit}).fetchall()',
        'cursor.execute(sql("expired"), {"now": 1e12, "limit": limit}).fetchall()',
        (f"{_SQLITE}::test_only_the_lease_that_was_extended_lives_on",),
    ),
    Mutation(
        "memory: a tick fires as often as it is asked for",
        f"{STORES}/memory/entries.py",
        "return entry is not None and not entry.is_paused and entry.next_at == tick_at",
        "return entry is not None and not entry.is_paused",
        (f"{_MEMORY}::test_tick_fires_once", f"{_MEMORY}::test_tick_from_all_sides_is_one_job"),
    ),
    Mutation(
        "sqlite: a tick fires as often as it is asked for",
        f"{STORES}/sqlite/sql/is_next_tick.sql",
        "AND next_at = ?",
        "AND ? IS NOT NULL",
        (f"{_SQLITE}::test_tick_fires_once", f"{_SQLITE}::test_tick_from_all_sides_is_one_job"),
    ),
    Mutation(
        "runner: a stop gives nothing back that has begun",
        f"{_WORKER}/runner.py",
        "            await self.held.give_back(late, also_begun=True)\n",
        "",
        (
            f"{_STOPS}::test_a_graceful_stop_gives_long_jobs_back_with_their_attempt_and_they_run_later[memory]",
            f"{_STOPS}::test_a_graceful_stop_gives_long_jobs_back_with_their_attempt_and_they_run_later[sqlite]",
        ),
    ),
    Mutation(
        "claim loop: what came while there was no room is forgotten",
        f"{_WORKER}/claim_loop.py",
        "            pool.prefetch.has_more = True  # Why: what it was woken for is for when there is room\n",
        "            pass\n",
        (f"{_RUNS}::test_a_job_that_came_while_all_places_were_taken_begins_as_soon_as_one_is_free",),
    ),
    Mutation(
        "claim loop: no look without a wake-up",
        f"{_WORKER}/claim_loop.py",
        "            pause = POLL * random.uniform(0.75, 1.0)  # noqa: S311\n",
        "            pause = 1e6\n",
        ("tests/simulation/test_lives.py::test_no_life_breaks_a_promise[0]",),
    ),
    Mutation(
        "held jobs: leases are unknown until the event loop knows them",
        f"{_WORKER}/held_jobs.py",
        "        return [*self._held, *self._arriving]\n",
        "        return list(self._held)\n",
        (
            "tests/jobpipe/worker/test_heartbeat.py::test_a_job_that_is_claimed_while_a_handler_blocks_the_event_loop_keeps_its_lease",
        ),
    ),
    Mutation(
        "held jobs: a job begins though its lease has run out",
        f"{_WORKER}/held_jobs.py",
        "            if now <= run.held_until and not is_expired:\n",
        "            if not is_expired:\n",
        (
            "tests/jobpipe/worker/test_heartbeat.py::test_a_job_whose_lease_has_run_out_before_it_could_begin_does_not_begin",
        ),
    ),
    Mutation(
        "isolation: nobody kills what a child has started when its worker is killed",
        f"{_WORKER}/isolation/children.py",
        "            self._guard.add(child.pid)\n",
        "",
        ("tests/faults/test_isolation.py::test_kill_9_leaves_no_process[worker]",),
    ),
    Mutation(
        "isolation: the resident set is not bounded",
        f"{_WORKER}/isolation/process.py",
        "            self._fail(MemoryExceeded(self.memory, most))\n",
        "            pass\n",
        ("tests/jobpipe/worker/isolation/test_kills.py::test_too_much_memory_kills_it",),
    ),
    Mutation(
        "isolation: a run that is broken off goes on",
        f"{_WORKER}/isolation/children.py",
        "        except BaseException:\n            child.kill()\n            self._bury(child, child.bury())\n            raise\n        if",
        "        except BaseException:\n            raise\n        if",
        ("tests/jobpipe/worker/isolation/test_kills.py::test_on_cancel_it_is_killed[spins]",),
    ),
    Mutation(
        "sqlite: a schedule goes on before the job of its tick is in",
        f"{STORES}/sqlite/ticking.py",
        "    receipt = None\n    if job is not None:\n",
        '    values = {"name": name, "tick_at": tick_at, "next_at": next_at, "job": job and job.id}\n'
        '    cursor.execute(sql("advance"), values)\n'
        '    cursor.execute("COMMIT")\n'
        '    cursor.execute("BEGIN IMMEDIATE")\n'
        "    receipt = None\n    if job is not None:\n",
        (f"{_MARKS}::test_tick_may_die_at_every_mark_among_five_schedulers[sqlite]",),
    ),
    Mutation(
        "sqlite: jobs are there before the batch is whole",
        f"{STORES}/sqlite/store.py",
        '            reach("enqueue-inside")\n',
        '            cursor.execute("COMMIT")\n'
        '            cursor.execute("BEGIN IMMEDIATE")\n'
        '            reach("enqueue-inside")\n',
        (f"{_MARKS}::test_enqueue_may_die_at_every_mark[sqlite]",),
    ),
    *DURABLE,
)
