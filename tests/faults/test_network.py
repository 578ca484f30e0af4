"""A bad network between the programs and a server: lost replies, silence, wake-ups that nobody hears, clocks that differ."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from jobpipe.stores import open_store

from ..support.proxy import Proxy
from ..support.servers_postgres import PostgresServer
from ..support.servers_redis import redis_server
from ..support.waiting import eventually
from .programs import APP, Program, Start, is_one_outcome

POLL = 1.0
"""Seconds after which a worker looks for jobs, whatever it has heard."""
BUSY = 10.0
"""Seconds that a busy machine may be late."""

SKEWED = """
import os, time
real = time.time
time.time = lambda: real() + float(os.environ["SKEW"])
from app import pipe
"""
TELLING = f"""{APP}
@pipe.job("tell")
async def tell(payload):
    note()
    while not os.path.exists("go"):
        await asyncio.sleep(0.01)
    return payload
"""
GREEDY = f"""{APP}
@pipe.job("greedy")
def greedy():
    note()
    watches = [pipe.store.watch("work") for _ in range(20)]  # each has a connection
    until = time.monotonic() + 3.0
    while time.monotonic() < until:
        for watch in watches:
            watch.wait(0.01)
            pipe.store.counts()
    for watch in watches:
        watch.close()
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A server, and the bad network before it."""

    url: str
    """Through the network."""
    direct_url: str
    proxy: Proxy
    wakes: bytes
    """What a wake-up holds, and no answer does."""
    stop: Callable[[], None]
    start: Callable[[], None]


@contextmanager
def redis_place(folder: Path) -> Iterator[Place]:
    settings = {"appendonly": "yes", "appendfsync": "always"}
    with redis_server(folder / "redis", **settings) as server, Proxy(("127.0.0.1", server.port)) as proxy:
        yield Place(
            url=f"redis://127.0.0.1:{proxy.port}",
            direct_url=server.url,
            proxy=proxy,
            wakes=b"\r\nmessage\r\n",
            stop=lambda: server.stop(is_killed=True),
            start=server.start,
        )


@contextmanager
def postgres_place(_: Path) -> Iterator[Place]:
    server = PostgresServer()
    try:
        server.start()
        with Proxy(f"{server.folder}/.s.PGSQL.5432") as proxy:
            yield Place(
                url=f"postgresql://postgres@127.0.0.1:{proxy.port}/postgres",
                direct_url=server.url,
                proxy=proxy,
                wakes=b'"jobpipe".work\0\0',  # the channel, and nothing more to say
                stop=lambda: server.stop("immediate"),
                start=server.start,
            )
    finally:
        server.close()


PLACES = {"redis": redis_place, "postgres": postgres_place}


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    with PLACES[request.param](tmp_path) as place:
        yield place


def seconds(job: Any, since: str, until: str) -> float:
    return (datetime.fromisoformat(job[until]) - datetime.fromisoformat(job[since])).total_seconds()


def cpu(pid: int) -> float:
    """The seconds that a process has worked so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def post(service: Program, id: str) -> int:
    return service.http.post("/enqueue", json={"id": id, "type": "mark", "payload": id}).status_code


def test_enqueue_whose_reply_is_lost_is_one_job_when_it_is_sent_again(start: Start, place: Place) -> None:
    """Fault 12: once, which a caller need not notice, then so often that he is told to come again."""
    service = start.serve("--store", place.url)
    assert post(service, "first") == 202
    place.proxy.lose_replies(1, after=b"lost-once")
    eventually(lambda: post(service, "lost-once") in (200, 202))
    place.proxy.lose_replies(100, after=b"lost-often")
    assert post(service, "lost-often") == 503
    place.proxy.heal()
    assert post(service, "lost-often") == 200
    assert place.proxy.lost >= 2
    ids = ["first", "lost-once", "lost-often"]
    jobs = service.all_done(ids)
    assert all(is_one_outcome(job) for job in jobs)
    assert sorted({id for id, _, _ in start.runs()}) == sorted(ids)
    assert service.get("/stats")["done"] == 3


@pytest.mark.parametrize("times", [1, 3])
def test_outcome_whose_reply_is_lost_is_recorded_once(start: Start, place: Place, times: int) -> None:
    """Fault 12: told again, it is the same outcome."""
    (start.folder / "telling.py").write_text(TELLING)
    service = start.serve("telling:pipe", "--store", place.direct_url, "--workers", "0")
    start.worker("telling:pipe", "--store", place.url, "--lease", "10")
    id = service.enqueue("tell", "the-result")
    start.begun(id)
    before = place.proxy.lost
    place.proxy.lose_replies(times, after=b"the-result")
    start.let_go()
    eventually(lambda: place.proxy.lost == before + times)
    job = service.finished(id)
    assert (job["status"], job["result"], job["attempts"]) == ("done", "the-result", 1)
    service.accept("next")
    service.all_done(["next"])
    assert service.job(id) == job
    assert len(start.runs(id)) == len(job["history"]) == 1
    assert "was lost" not in start.programs[1].output


@pytest.mark.parametrize("place", ["redis"], indirect=True)
def test_half_open_connections_are_given_up_and_work_goes_on(start: Start, place: Place) -> None:
    """Fault 16: nothing comes any more, and nobody hangs up."""
    service = start.serve("--store", place.direct_url, "--workers", "0")
    worker = start.worker("--store", place.url)
    service.accept("before")
    service.all_done(["before"])
    place.proxy.mute()
    lost = place.proxy.lost
    eventually(lambda: place.proxy.lost >= lost + 3)
    place.proxy.heal()
    service.accept("after")
    (job,) = service.all_done(["after"])
    assert seconds(job, "created_at", "started_at") < 5 + BUSY
    assert worker.output.count("WARNING") <= 4, worker.output
    assert "Traceback" not in worker.output


def test_server_that_is_gone_for_a_while_is_not_asked_all_the_time(start: Start, place: Place) -> None:
    """Fault 16: no busy loop, a line or two, and work goes on soon."""
    service = start.serve("--store", place.url)
    service.accept("before")
    service.all_done(["before"])
    pid = service.child()
    place.stop()
    place.proxy.cut()
    eventually(lambda: service.http.get("/readyz").status_code == 503)
    worked, began_at = cpu(pid), time.monotonic()
    time.sleep(2)  # so long it is gone
    assert cpu(pid) - worked < 0.3 * (time.monotonic() - began_at)
    place.start()
    back_at = time.monotonic()
    eventually(lambda: post(service, "after") in (200, 202))
    service.all_done(["before", "after"])
    assert time.monotonic() - back_at < 5 + BUSY
    assert len([line for line in service.output.splitlines() if "WARNING" in line]) <= 8, service.output


def test_jobs_run_within_the_poll_interval_when_no_wake_up_arrives(start: Start, place: Place) -> None:
    """Fault 17."""
    place.proxy.swallow(place.wakes)
    service = start.serve("--store", place.direct_url, "--workers", "0")
    start.worker("--store", place.url)
    jobs = []
    for n in range(5):
        service.accept(f"j{n}")
        jobs.append(service.finished(f"j{n}"))
    assert place.proxy.lost >= 5
    assert max(seconds(job, "created_at", "started_at") for job in jobs) < POLL + BUSY


def test_clocks_that_differ_make_nothing_early(start: Start, place: Place) -> None:
    """Fault 22: ten minutes ahead and ten minutes behind; the clock of the server decides."""
    (start.folder / "skewed.py").write_text(SKEWED)
    service = start.serve("--store", place.url, "--workers", "0", "--lease", "1")
    for skew in ("600", "-600"):
        start.env["SKEW"] = skew
        start.worker("skewed:pipe", "--store", place.url, "--lease", "1")
    held = [service.enqueue("hold") for _ in range(4)]
    for id in held:
        start.begun(id)
    late = [service.enqueue("mark", delay=1.5) for _ in range(4)]
    jobs = service.all_done(late)
    assert all(-0.01 < seconds(job, "run_at", "started_at") < POLL + BUSY for job in jobs)
    assert all(seconds(job, "created_at", "started_at") > 1.49 for job in jobs)
    # The time that these took is longer than a lease: nobody was given up for lost.
    assert {service.job(id)["attempts"] for id in held} == {1}
    start.let_go()
    assert all((job["attempts"], len(job["history"])) == (1, 1) for job in service.all_done(held))
    assert len({pid for _, pid, _ in start.runs()}) == 2


def test_handlers_that_hold_many_connections_keep_their_leases(start: Start, place: Place) -> None:
    """Fault 27: heartbeat and outcome have connections of their own."""
    (start.folder / "greedy.py").write_text(GREEDY)
    service = start.serve("greedy:pipe", "--store", place.url, "--workers", "4", "--lease", "1")
    ids = [service.enqueue("greedy") for _ in range(4)]
    assert all((job["attempts"], len(job["history"])) == (1, 1) for job in service.all_done(ids))
    with closing(open_store(place.direct_url)) as store:
        eventually(lambda: not any(each.running for each in store.workers()))
