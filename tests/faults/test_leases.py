"""Leases: who has one keeps it, who lost it changes nothing, and who knows no type never gets one."""

from __future__ import annotations

import os
import signal

from ..support.waiting import eventually
from .programs import APP, Start

GREEDY = f"""{APP}
import threading

@pipe.job("greedy")
def greedy(seconds: float):
    note()
    until = time.monotonic() + seconds

    def ask():
        while time.monotonic() < until:
            pipe.store.counts()

    threads = [threading.Thread(target=ask) for _ in range(5)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
"""


def test_a_stopped_process_that_wakes_up_after_its_lease_is_refused(durable: Start) -> None:
    """Fault 11: SIGSTOP past the lease, another finishes, SIGCONT."""
    service = durable.serve("--workers", "0", "--lease", "0.5")
    first = durable.worker("--lease", "0.5")
    id = service.enqueue("hold")
    sleeper = durable.begun(id)
    os.kill(sleeper, signal.SIGSTOP)
    durable.worker("--lease", "0.5")
    second = durable.begun(id, attempt=2)
    durable.let_go()
    job = service.finished(id)
    os.kill(sleeper, signal.SIGCONT)
    first.line(f"the lease of job '{id}' was lost")
    first.signal(signal.SIGTERM)
    assert first.code() == 0  # whatever it had to say, it has said
    assert service.job(id) == job
    assert (job["status"], job["attempts"], job["result"]) == ("done", 2, second)
    assert [run["error"] and run["error"]["type"] for run in job["history"]] == ["WorkerLost", None]
    assert second != sleeper


def test_a_stopped_process_that_wakes_up_while_another_runs_the_job_is_refused(durable: Start) -> None:
    """Fault 11: it ends its run at once, and has a result; the other has none yet."""
    service = durable.serve("--workers", "0", "--lease", "0.5")
    first = durable.worker("--lease", "0.5")
    id = service.enqueue("hold")
    sleeper = durable.begun(id)
    os.kill(sleeper, signal.SIGSTOP)
    durable.worker("--lease", "0.5")
    second = durable.begun(id, attempt=2)
    durable.let_go(sleeper)
    os.kill(sleeper, signal.SIGCONT)
    first.line(f"the lease of job '{id}' was lost")
    assert service.job(id)["status"] == "running"
    durable.let_go()
    job = service.finished(id)
    assert (job["status"], job["attempts"], job["result"]) == ("done", 2, second)
    assert len(job["history"]) == 2


def test_a_handler_that_blocks_the_event_loop_keeps_its_lease(durable: Start) -> None:
    """Fault 14: three lease times, half of them with the interpreter to itself; others are eager to rescue."""
    service = durable.serve("--workers", "0", "--lease", "1")
    durable.worker("--workers", "1")
    durable.worker("--workers", "1")
    ids = [service.enqueue("block", 3.0) for _ in range(2)]
    for job in service.all_done(ids):
        assert (job["attempts"], len(job["history"])) == (1, 1)
    assert len(durable.runs()) == 2
    assert "lost" not in "".join(program.output for program in durable.programs)


def test_a_type_that_no_worker_knows_waits_until_one_does(durable: Start) -> None:
    """Fault 24."""
    service = durable.serve()
    id = service.enqueue("rare", {"a": 1})
    other = service.enqueue("mark", 1)
    assert service.finished(other)["status"] == "done"
    why = service.get(f"/jobs/{id}/explain")
    assert why["reason"] == "no_worker"
    assert "'rare'" in why["text"]
    job = service.job(id)
    assert (job["status"], job["attempts"], job["history"]) == ("queued", 0, [])
    knowing = f"{APP}\n@pipe.job('rare')\nasync def rare(payload):\n    return ['known', payload]\n"
    (durable.folder / "knowing.py").write_text(knowing)
    durable.worker("knowing:pipe")
    job = service.finished(id)
    assert (job["status"], job["attempts"], job["result"]) == ("done", 1, ["known", {"a": 1}])


def test_the_last_worker_that_knew_a_type_is_missed_when_it_is_killed(start: Start) -> None:
    """Fault 24: a dead worker is not taken for one that will run the job."""
    service = start.serve("--workers", "0", "--lease", "0.5")
    worker = start.worker("--lease", "0.5")
    service.post("/queues/default/pause")
    id = service.enqueue("mark")
    worker.kill()
    service.post("/queues/default/resume")
    eventually(lambda: service.get(f"/jobs/{id}/explain")["reason"] == "no_worker")
    start.worker()
    assert service.finished(id)["attempts"] == 1


def test_handlers_that_keep_all_connections_busy_keep_their_leases(durable: Start) -> None:
    """Fault 27: more threads of theirs than the handle has connections, for two lease times; then they are settled."""
    (durable.folder / "greedy.py").write_text(GREEDY)
    service = durable.serve("greedy:pipe", "--workers", "4", "--lease", "1")
    ids = [service.enqueue("greedy", 2.0) for _ in range(4)]
    assert all((job["attempts"], len(job["history"])) == (1, 1) for job in service.all_done(ids))
    assert "lost" not in service.output
