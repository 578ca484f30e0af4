"""Processes that are killed with a transaction of their own open, in which they have recorded a step or an outcome."""

from __future__ import annotations

import json

import pytest

from .programs import Start, script

LIVES = """
import asyncio, json, os, sqlite3, sys

import psycopg
from jobpipe import Jobpipe, current_job

URL = os.environ["JOBPIPE_STORE"]
IS_SQLITE = URL.startswith("sqlite:")
SCHEMA = "" if IS_SQLITE else URL.rpartition("schema=")[2] + "."

def connect():
    if IS_SQLITE:
        return sqlite3.connect(URL.removeprefix("sqlite:///"), timeout=30)
    return psycopg.connect(URL.rpartition("schema=")[0].rstrip("?&"))

def sql(statement):
    with connect() as connection:
        cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []

def live(id, deadly):
    "One process: it runs the job, and dies where it is told to."
    pipe = Jobpipe(URL)

    def reach(place):
        if place == deadly:
            os.kill(os.getpid(), 9)

    def charge(connection):
        connection.execute(f"INSERT INTO {SCHEMA}effects VALUES ('{id}')")
        with open(f"calls-{id}", "a") as file:
            file.write("x")
        reach("step")
        return 7

    @pipe.job("pay", base=0)
    async def pay():
        job = current_job()
        with connect() as connection:
            paid = await job.step("charge", charge, connection, connection=connection)
            reach("step-recorded")
        reach("step-committed")
        with connect() as connection:
            connection.execute(f"INSERT INTO {SCHEMA}effects VALUES ('{id}')")
            await job.finish({"paid": paid}, connection=connection)
            reach("outcome-recorded")
        reach("outcome-committed")

    async def main():
        async with pipe, pipe.running():
            await pipe.enqueue("pay", id=id)
            job = await pipe.wait(id, 60)
            assert job.is_finished, job

    asyncio.run(main())
    pipe.close()

def fork(*life):
    child = os.fork()
    if not child:
        live(*life)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

with open("places") as file:
    places = json.load(file)
sql(f"CREATE TABLE {SCHEMA}effects (id TEXT)")
for place in places:
    assert fork(place, place) == -9, place
    sql(f"UPDATE {SCHEMA}jobs SET lease_until = 1 WHERE id = '{place}' AND lease_until IS NOT NULL")
    assert fork(place, None) == 0, place
    with open(f"calls-{place}") as file:
        calls = len(file.read())
    ((effects,),) = sql(f"SELECT count(*) FROM {SCHEMA}effects WHERE id = '{place}'")
    print("lived", json.dumps([place, calls, effects]), flush=True)
"""

PLACES = {
    "step": 2,
    "step-recorded": 2,
    "step-committed": 1,
    "outcome-recorded": 1,
    "outcome-committed": 1,
}
"""Where a process dies, and how often its step is called in all."""


@pytest.fixture(params=["sqlite", "postgres"])
def transactional(request: pytest.FixtureRequest, start: Start) -> Start:
    """Programs on a store that is a database of theirs, too."""
    if request.param == "postgres":
        start.env["JOBPIPE_STORE"] = request.getfixturevalue("postgres_url")
    else:
        start.env["JOBPIPE_STORE"] = f"sqlite:///{start.database}"
    return start


def test_effects_and_steps_are_there_together_wherever_a_process_dies(transactional: Start) -> None:
    with transactional.store():
        (transactional.folder / "places").write_text(json.dumps(list(PLACES)))
        program = transactional.command(script(LIVES))
        assert program.code() == 0, program.output
    lived = [json.loads(line[6:]) for line in program.output.splitlines() if line.startswith("lived ")]
    assert lived == [[place, calls, 2] for place, calls in PLACES.items()], program.output
    with transactional.store() as store:
        for place in PLACES:
            job, state = store.get(place), store.durable(place)
            assert job is not None
            assert state is not None
            assert (job.status, job.result, len(state.steps)) == ("done", {"paid": 7}, 1), place
            assert job.attempts == (1 if place == "outcome-committed" else 2), place
