"""One SQLite file, many processes: each job starts once, and nobody is told of a lock."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
from collections import Counter
from contextlib import closing
from datetime import datetime

from jobpipe.testing.tools import take

from ..support.waiting import LIMIT, eventually
from .programs import Start, script

CLAIM = """
import os, sys, threading, time
from jobpipe.stores import open_store

store = open_store(os.environ["JOBPIPE_STORE"])
claimed, threads = [], []

def claim(number):
    while result := store.claim(f"{os.getpid()}-{number}", ["mark"], 1, 600.0).claims:
        claimed.extend(each.id for each in result)

print("here", flush=True)
while not os.path.exists("go"):
    time.sleep(0.01)
threads = [threading.Thread(target=claim, args=[n]) for n in range(50)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print("claimed", *claimed)
"""

DEAF = """
from pathlib import Path
from jobpipe.stores.sqlite.watch import SqliteWatch
from app import pipe

def wait(self, timeout):
    Path("heard").write_text("deaf")
    self._closed.wait(timeout)
    return False

SqliteWatch.wait = wait
"""

WRITE = """
import sys
from app import pipe

for n in range(60):
    id = f"{sys.argv[1]}-{n}"
    pipe.enqueue_sync("mark", n, id=id)
    print("accepted", id, flush=True)
pipe.close()
"""


def put_in(start: Start, count: int) -> None:
    """So many jobs `j0`, `j1`, …, by a process of its own."""
    code = (
        "import sys\nfrom app import pipe\nfrom jobpipe.model.request import JobRequest\n"
        "numbers = range(int(sys.argv[1]))\n"
        "pipe.enqueue_many_sync(JobRequest(type='mark', id=f'j{n}', payload=n) for n in numbers)\n"
        "pipe.close()"
    )
    assert start.command(script(code, count)).code() == 0


def assert_no_lock_was_met(start: Start) -> None:
    for program in start.programs:
        assert "locked" not in program.output, program.output
        assert "Traceback" not in program.output, program.output


def assert_file_is_sound(start: Start) -> None:
    with closing(sqlite3.connect(start.database, timeout=LIMIT)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_200_claimers_claim_each_of_1000_jobs_once(durable: Start) -> None:
    """Fault 13: four processes with fifty threads each."""
    put_in(durable, 1_000)
    claimers = [durable.command(script(CLAIM)) for _ in range(4)]
    for claimer in claimers:
        claimer.line("here")
    durable.let_go()
    assert [claimer.code() for claimer in claimers] == [0] * 4
    claimed = [id for claimer in claimers for id in claimer.output.split() if id.startswith("j")]
    with durable.store() as store:  # Why: of what others had locked, a claimer sees nothing, and leaves
        claimed += [claim.id for claim in take(store, 100, types=["mark"])]
    assert sorted(claimed) == sorted(f"j{n}" for n in range(1_000))
    assert Counter(job.attempts for job in durable.jobs().values()) == {1: 1_000}
    assert_no_lock_was_met(durable)


def test_processes_on_one_file_share_the_work_and_run_each_job_once(start: Start) -> None:
    """Fault 13: a service and two workers, in five processes, all with many places."""
    put_in(start, 1_000)
    service = start("serve", "--workers", "50", "--lease", "10")
    start("worker", "--workers", "50", "--processes", "2", "--lease", "10")
    start("worker", "--workers", "50", "--processes", "2", "--lease", "10")
    eventually(lambda: service.get("/stats")["done"] == 1_000, lambda: service.get("/stats"))
    assert Counter(id for id, _, _ in start.runs()) == Counter(f"j{n}" for n in range(1_000))
    rows = start.sql("SELECT attempts, history FROM jobs")
    assert all(attempts == 1 and len(json.loads(history)) == 1 for attempts, history in rows)
    assert_no_lock_was_met(start)


def test_eight_writers_of_whom_one_is_killed_meet_no_lock_and_leave_the_file_sound(start: Start) -> None:
    """Fault 19: while the service runs their jobs."""
    service = start.serve("--lease", "10")
    writers = [start.command(script(WRITE, f"w{n}")) for n in range(8)]
    writers[0].line("accepted w0-5")
    writers[0].kill()
    assert [writer.code() for writer in writers] == [-signal.SIGKILL] + [0] * 7
    ids = [
        line.split()[1]
        for writer in writers
        for line in writer.output.splitlines(keepends=True)
        if line.startswith("accepted") and line.endswith("\n")
    ]
    assert len(ids) > 7 * 60
    eventually(lambda: service.get("/stats")["done"] >= len(ids), lambda: service.get("/stats"))
    (unfinished,) = start.sql("SELECT count(*) FROM jobs WHERE status <> 'done'")[0]
    found = {id for (id,) in start.sql("SELECT id FROM jobs")}
    assert set(ids) <= found
    assert len(found) - len(ids) <= 1  # one may have been accepted by the dead writer that could not say so
    assert unfinished <= 1
    assert_no_lock_was_met(start)
    assert_file_is_sound(start)


def test_both_of_two_processes_are_replaced_when_they_are_killed(start: Start) -> None:
    """Fault 9: `--processes 2` stays two."""
    service = start.serve("--processes", "2", "--lease", "0.5")
    first = eventually(lambda: found if len(found := service.children()) == 2 else None)
    ids = [f"j{n}" for n in range(40)]
    for id in ids[:20]:
        service.accept(id)
    for pid in first:
        os.kill(pid, signal.SIGKILL)
    for id in ids[20:]:
        service.accept(id)
    second = eventually(
        lambda: found if len(found := service.children()) == 2 and not set(found) & set(first) else None
    )
    assert service.pid not in second
    service.all_done(ids)
    service.signal(signal.SIGTERM)
    assert service.code() == 0


def test_memory_is_refused_for_two_processes(start: Start) -> None:
    """No fault, but it would be one: two processes cannot share it."""
    for command in ("serve", "worker"):
        program = start(command, "--store", "memory://", "--processes", "2")
        assert program.code() == 2
        assert program.output == "error: --processes must be 1 with memory://, which processes cannot share\n"


def test_jobs_run_within_the_poll_interval_though_nobody_watches_the_file(start: Start) -> None:
    """Fault 17: on SQLite a wake-up is a look at the file; a worker that sees nothing there finds the jobs all the same."""
    (start.folder / "deaf.py").write_text(DEAF)
    service = start.serve("--workers", "0")
    start.worker("deaf:pipe")
    for n in range(3):
        job = service.finished(service.enqueue("mark", n))
        came_at, began_at = (datetime.fromisoformat(job[name]) for name in ("created_at", "started_at"))
        assert (began_at - came_at).total_seconds() < 1.0 + 2.0  # the poll, and a machine that is busy
    assert "deaf" in (start.folder / "heard").read_text()
