"""Several real processes on one PostgreSQL server that crashes, ends sessions, and says nothing."""

from __future__ import annotations

import os
import socket
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, TypeAlias

import httpx
import psycopg
import pytest

from ..support.servers_postgres import PostgresServer
from ..support.waiting import eventually
from .programs import Start, jobpipe, script

Sql: TypeAlias = Callable[[str], list[Any]]

RESUMED = 15.0
"""Seconds in which everything goes on after the server is back."""

CALL = """
import os, sys, psycopg
from app import pipe

url, end = sys.argv[1:]
pipe.configure(store=url)
with psycopg.connect(url) as connection:
    connection.execute("INSERT INTO orders VALUES (%s)", [end])
    pipe.enqueue_sync("mark", end, id=end, connection=connection)
    if end == "killed":
        os.kill(os.getpid(), 9)
    getattr(connection, end)()
pipe.close()
"""

PUT = """
import sys
from app import pipe
from jobpipe.model.request import JobRequest

pipe.configure(store=sys.argv[1])
pipe.enqueue_many_sync(JobRequest(type="mark", id=f"{sys.argv[2]}{n}", payload=n) for n in range(int(sys.argv[3])))
pipe.close()
"""


@pytest.fixture
def sql(own_postgres: PostgresServer) -> Sql:
    """Asks the server, through a session of its own each time."""

    def ask(statement: str) -> list[Any]:
        with psycopg.connect(own_postgres.url, autocommit=True, application_name="test") as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    return ask


END_SESSIONS = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'jobpipe'"


def test_jobs_of_all_processes_run_once(start: Start, postgres_url: str) -> None:
    """Fault 13: a service and two workers, of which one has two processes."""
    store = ("--store", postgres_url)
    service = start.serve(*store)
    start.worker(*store)
    start.worker(*store, "--processes", "2")
    putters = [start.command(script(PUT, postgres_url, name, 200)) for name in "ab"]
    assert [putter.code() for putter in putters] == [0, 0], [putter.output for putter in putters]
    ids = [f"{name}{n}" for name in "ab" for n in range(200)]
    eventually(lambda: service.get("/stats")["done"] == 400, lambda: service.get("/stats"))
    assert Counter(id for id, _, _ in start.runs()) == Counter(ids)
    assert len({pid for _, pid, _ in start.runs()}) > 1
    for program in start.programs:
        assert "ERROR" not in program.output, program.output
        assert "Traceback" not in program.output, program.output


def test_ended_sessions_cost_nothing(start: Start, own_postgres: PostgresServer, sql: Sql) -> None:
    """Fault 16: also those that listen and those of the heartbeat, again and again."""
    store = ("--store", own_postgres.url)
    service = start.serve(*store)
    start.worker(*store)
    holding = service.enqueue("hold")
    start.begun(holding)
    for n in range(5):
        service.accept(f"before-{n}")
        sql(END_SESSIONS)
        service.accept(f"after-{n}")
    service.all_done(f"{when}-{n}" for n in range(5) for when in ("before", "after"))
    start.let_go()
    assert service.finished(holding)["attempts"] == 1
    for program in start.programs:
        assert "Traceback" not in program.output, program.output


def test_everything_goes_on_after_the_server_crashed(start: Start, own_postgres: PostgresServer) -> None:
    """Fault 16: an immediate stop; nothing accepted is lost, one line tells of it, and it does not spin."""
    store = ("--store", own_postgres.url)
    service = start.serve(*store)
    worker = start.worker(*store)
    holding = service.enqueue("hold", max_retries=5)
    start.begun(holding)
    service.accept("before")
    service.all_done(["before"])
    own_postgres.stop("immediate")
    eventually(lambda: service.http.get("/readyz").status_code == 503)
    refused = service.http.post("/enqueue", json={"type": "mark"})
    assert refused.status_code == 503, refused.text
    cpu = sum(map(seconds_of, (service.child(), worker.child())))
    time.sleep(2)  # Why: what it does in that time is what is asked for
    spent = sum(map(seconds_of, (service.child(), worker.child()))) - cpu
    assert spent < 1.0, "it spins while the server is away"
    own_postgres.start()
    back_at = time.monotonic()
    service.accept("after")
    service.all_done(["after"])
    assert time.monotonic() - back_at < RESUMED
    start.let_go()
    assert service.finished(holding)["status"] == "done"
    for program in (service, worker):
        assert "Traceback" not in program.output, program.output
        assert program.output.count("the heartbeat waits for the store") == 1, program.output
        assert program.output.count("the event feed (work) waits for the store") == 1, program.output


def seconds_of(pid: int) -> float:
    """The processor time that a process has used."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_service_waits_for_a_server_that_is_not_there_yet(start: Start, own_postgres: PostgresServer) -> None:
    own_postgres.stop()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    service = start("serve", "--store", own_postgres.url, "--port", str(port))
    service.line("the store is away, and waited for")
    with httpx.Client(verify=False, base_url=f"http://127.0.0.1:{port}") as http:
        assert eventually(lambda: _status(http, "/health")) == 200
        assert _status(http, "/readyz") == 503
        own_postgres.start()
        eventually(lambda: _status(http, "/readyz") == 200)
    service.accept("a")
    service.all_done(["a"])
    assert service.output.count("WARNING") == 1, service.output


def _status(http: httpx.Client, path: str) -> int | None:
    try:
        return http.get(path).status_code
    except httpx.TransportError:
        return None


def test_job_is_there_if_and_only_if_the_callers_transaction_commits(
    start: Start, own_postgres: PostgresServer, sql: Sql
) -> None:
    """Fault 18: commit, rollback, and death before either, in another process than the service's."""
    service = start.serve("--store", own_postgres.url)
    service.get("/stats")
    sql("CREATE TABLE orders (name text)")
    callers = {
        end: start.command(script(CALL, own_postgres.url, end)) for end in ("rollback", "killed", "commit")
    }
    assert {end: caller.code() for end, caller in callers.items()} == {
        "rollback": 0,
        "killed": -9,
        "commit": 0,
    }, [caller.output for caller in callers.values()]
    assert service.finished("commit")["status"] == "done"
    for id in ("rollback", "killed"):
        assert service.call("GET", f"/jobs/{id}").status_code == 404
    assert sql("SELECT name FROM orders") == [("commit",)]


def test_jobs_run_within_the_poll_interval_though_no_word_is_heard(
    start: Start, own_postgres: PostgresServer, sql: Sql
) -> None:
    """Fault 17: nobody is told of anything."""
    store = ("--store", own_postgres.url)
    service = start.serve(*store, "--workers", "0")
    start.worker(*store)
    sql(
        "CREATE FUNCTION jobpipe.pg_notify(text, text) RETURNS void LANGUAGE sql AS 'SELECT';"
        "ALTER ROLE postgres SET search_path = jobpipe, pg_catalog, public"
    )
    sql(END_SESSIONS)
    ids = [service.enqueue("mark", n) for n in range(3)]
    service.all_done(ids)


def test_secrets_of_the_url_are_shown_nowhere(start: Start, own_postgres: PostgresServer) -> None:
    """Fault 36."""
    url = own_postgres.url.replace("postgres@", "postgres:s3cret@")
    service = start.serve("--store", url)
    service.accept("a")
    own_postgres.stop("immediate")
    eventually(lambda: service.http.get("/readyz").status_code == 503)
    answer = service.http.get("/jobs/a")
    commands = [
        start.command(jobpipe("check", "--store", url)),
        start.command(jobpipe("jobs", "--store", url)),
        start.command(jobpipe("jobs", "--store", url.replace("postgresql://", "postgresql://[::1:"))),
    ]
    for command in commands:
        assert command.code() != 0
        assert "s3cret" not in command.output, command.output
        assert "Traceback" not in command.output, command.output
    assert "s3cret" not in answer.text
    assert "s3cret" not in service.output
