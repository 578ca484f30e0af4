"""Jobs in the caller's own transaction, from another process; and schemas, which are made once."""

from __future__ import annotations

import hashlib
import sqlite3
from contextlib import closing

import pytest

from ..support.waiting import eventually
from .programs import Start, jobpipe, script

CALL = """
import os, sqlite3, sys
from app import pipe

end = sys.argv[1]
connection = sqlite3.connect("jobs.db", timeout=30)
connection.execute("INSERT INTO orders VALUES (?)", (end,))
pipe.enqueue_sync("mark", end, id=end, connection=connection)
if end == "killed":
    os.kill(os.getpid(), 9)
getattr(connection, end)()
connection.close()
pipe.close()
"""

MIGRATE = """
import os, time
from jobpipe.stores import open_store

store = open_store(os.environ["JOBPIPE_STORE"])
print("here", flush=True)
while not os.path.exists("go"):
    time.sleep(0.001)
print("steps", store.migrate(), store.migrate())
store.close()
"""


def test_a_job_is_there_if_and_only_if_the_callers_transaction_commits(start: Start) -> None:
    """Fault 18: commit, rollback, and death before either, in another process than the service's."""
    service = start.serve()
    start.sql("CREATE TABLE orders (name TEXT)")
    callers = {end: start.command(script(CALL, end)) for end in ("rollback", "killed", "commit")}
    assert {end: caller.code() for end, caller in callers.items()} == {
        "rollback": 0,
        "killed": -9,
        "commit": 0,
    }, [caller.output for caller in callers.values()]
    job = service.finished("commit")
    assert (job["status"], job["attempts"], job["result"]) == ("done", 1, "commit")
    for id in ("rollback", "killed"):
        assert service.call("GET", f"/jobs/{id}").status_code == 404
    assert start.sql("SELECT name FROM orders") == [("commit",)]
    assert [id for id, _, _ in start.runs()] == ["commit"]
    assert service.get("/stats")["done"] == 1
    assert service.get("/queues")["queues"][0]["queued"] == 0


def test_migrators_at_once_make_one_schema(durable: Start) -> None:
    """Fault 21: six processes on a store that is not there yet."""
    migrators = [durable.command(script(MIGRATE)) for _ in range(6)]
    for migrator in migrators:
        migrator.line("here")
    durable.let_go()
    assert [migrator.code() for migrator in migrators] == [0] * 6, [each.output for each in migrators]
    took_steps = [migrator for migrator in migrators if "steps [] []" not in migrator.output]
    assert len(took_steps) == 1, [migrator.output for migrator in migrators]
    with durable.store() as store:
        assert store.check()


def test_services_started_at_once_on_a_new_store_all_work(durable: Start) -> None:
    """Fault 21: the same, by the commands themselves."""
    service, *others = (
        durable("serve"),
        durable("serve"),
        durable("worker"),
        durable("worker", "--processes", "2"),
    )
    ids = [service.enqueue("mark", n) for n in range(10)]
    service.all_done(ids)
    assert others[0].get("/stats")["done"] == 10
    for other in others[1:]:
        other.line("working")
    for program in durable.programs:
        assert "ERROR" not in program.output, program.output
        assert "WARNING" not in program.output, program.output


@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_a_schema_newer_than_the_program_is_refused_and_left_alone(start: Start, mode: str) -> None:
    """Fault 21: one clear line, an exit code, and not a byte of the file is different."""
    with closing(sqlite3.connect(start.database)) as connection:
        connection.execute(f"PRAGMA journal_mode = {mode}")
        connection.execute("CREATE TABLE jobs (future TEXT)")
        connection.execute("PRAGMA user_version = 999")
    before = hashlib.sha256(start.database.read_bytes()).hexdigest()
    commands = [
        start("serve"),
        start("worker", "--processes", "2"),
        start.command(jobpipe("enqueue", "echo", "1", "--store", "sqlite:///jobs.db")),
    ]
    for command in commands:
        assert command.code() == 1
        assert command.output.count("\n") == 1, command.output
        assert command.output.startswith("error: the store ")
        assert "has the schema 999, this program knows" in command.output
    assert hashlib.sha256(start.database.read_bytes()).hexdigest() == before


def test_a_file_that_is_no_database_is_refused_and_left_alone(start: Start) -> None:
    """Fault 21: nor is a file of somebody else's touched."""
    start.database.write_bytes(b"a letter to my aunt\n" * 500)
    service = start("serve")
    assert service.code() == 1
    assert service.output.count("\n") == 1, service.output
    assert service.output.startswith("error: the store ")
    assert start.database.read_bytes() == b"a letter to my aunt\n" * 500
    eventually(lambda: not list(start.folder.glob("jobs.db-*")))
