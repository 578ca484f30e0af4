"""Fault 44. Values that no call lets in: somebody else has put them into the store. They harm nobody but their own job."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from math import inf, nan
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
import psycopg
import pytest
import redis

from jobpipe import Jobpipe, JobStatus
from jobpipe.stores.redis.records import Record

from ...support.jobs import finished, seen
from ...support.servers_redis import with_own_keys
from ...support.waiting import run

Plant = Callable[[str, str, Any], None]
"""Sets a field of the job with this id, by its name, to a value."""

TIMES: dict[str, tuple[str, Any]] = {
    "run_at-inf": ("run_at", -inf),
    "created_at-inf": ("created_at", inf),
    "deadline-inf": ("deadline", inf),
    "created_at-far": ("created_at", 1e17),
    "deadline-negative": ("deadline", -1.0),
}
NANS: dict[str, tuple[str, Any]] = {
    "created_at-nan": ("created_at", nan),
    "deadline-nan": ("deadline", nan),
    "started_at-nan": ("started_at", nan),
}
SHAPES: dict[str, tuple[str, Any]] = {
    "error": ("error", "5"),
    "progress": ("progress", '"half"'),
    "status": ("status", "weird"),
}
JUNK: dict[str, tuple[str, Any]] = {
    "error-junk": ("error", "{"),
    "progress-junk": ("progress", "{"),
    "result-junk": ("result", "{"),
    "payload-junk": ("payload", "{"),
    "history-junk": ("history", "junk"),
}
KINDS: dict[str, tuple[str, Any]] = {
    "attempts-text": ("attempts", "many"),
    "max_retries-text": ("max_retries", "x"),
    "run_at-text": ("run_at", "nan"),
    "deadline-text": ("deadline", "soon"),
}
SQLITE = TIMES | SHAPES | JUNK | KINDS | {
    "priority-text": ("priority", "high"),
    "payload-bytes": ("payload", b"\x80\x04\x95"),
    "history-kind": ("history", '[{"number": "x"}]'),
}  # fmt: skip
POSTGRES = TIMES | NANS | SHAPES | {"history-junk": ("history", ["junk"])}
REDIS = TIMES | NANS | SHAPES | JUNK | KINDS | {"payload-number": ("payload", 5)}
NOT_IN_LISTS = ("payload", "result", "history")


def in_sqlite(path: Path) -> Plant:
    def plant(id: str, name: str, value: Any) -> None:
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(f"UPDATE jobs SET {name} = ? WHERE id = ?", (value, id))

    return plant


def in_postgres(url: str) -> Plant:
    schema, server = parse_qs(urlsplit(url).query)["schema"][0], url.partition("schema=")[0].rstrip("?&")

    def plant(id: str, name: str, value: Any) -> None:
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute("SET session_replication_role = replica")  # else a trigger would refuse some
            connection.execute(f'UPDATE "{schema}".jobs SET {name} = %s WHERE id = %s', [value, id])

    return plant


def in_redis(url: str) -> Plant:
    prefix, server = parse_qs(urlsplit(url).query)["prefix"][0], url.partition("?")[0]

    def plant(id: str, name: str, value: Any) -> None:
        with redis.Redis.from_url(server) as client:
            (keys,) = {key.rpartition(b":")[0] for key in client.keys(f"*{prefix}*:ids")}
            seq: Any = client.hget((keys + b":ids").decode(), id)
            record = msgspec.msgpack.decode(client.hget((keys + b":jobs").decode(), seq))
            record[Record.__struct_fields__.index(name)] = value
            client.hset((keys + b":jobs").decode(), seq, msgspec.msgpack.encode(record))

    return plant


@pytest.fixture(params=["sqlite", "postgres", "redis"])
def planting(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, Plant, dict[str, Any]]]:
    if request.param == "sqlite":
        path = tmp_path / "jobs.db"
        yield f"sqlite:///{path}", in_sqlite(path), SQLITE
    elif request.param == "postgres":
        url = request.getfixturevalue("postgres_url")
        yield url, in_postgres(url), POSTGRES
    else:
        url = with_own_keys(request.getfixturevalue("redis_url"))
        yield url, in_redis(url), REDIS


def test_planted_values_harm_their_own_job_alone(planting: tuple[str, Plant, dict[str, Any]]) -> None:
    url, plant, values = planting
    ran: list[str] = []

    async def scenario() -> None:
        pipe = Jobpipe(url, lease=2.0)

        @pipe.job("note", max_retries=0)
        async def note(id: str) -> None:
            ran.append(id)

        async with pipe:
            for id in values:
                await note.enqueue(id, id=id)
            for id, (name, value) in values.items():
                plant(id, name, value)
            good = ["good0", "good1", "good2"]
            for id in good:
                await note.enqueue(id, id=id)
            listed = {job.id: job for job in (await pipe.page(limit=100)).jobs}
            for id, (name, _) in values.items():
                for job in (await pipe.get(id), *([] if name in NOT_IN_LISTS else [listed[id]])):
                    assert job.error is not None, id
                    assert (job.status, job.error.type) == (JobStatus.FAILED, "BrokenJob"), id
                    assert f"stored {name}" in job.error.message, id
                assert (await pipe.explain(id)).reason == "finished"
            async with pipe.running():
                for id in good:
                    assert (await finished(pipe, id)).status is JobStatus.DONE
                # Why one may be left: what has no status that is one, is in nobody's way.
                stats = await seen(pipe, pipe.stats, lambda stats: stats.queued <= 1 and not stats.running)
            assert stats.done == len(good)
            assert sorted(ran) == good
            for id in values:
                assert (await pipe.get(id)).status is JobStatus.FAILED, id
            assert len((await pipe.page(limit=100)).jobs) == len(values) + len(good)
            broken = [group for group in (await pipe.failures()).failures if group.error == "BrokenJob"]
            assert sum(group.count for group in broken) > 0
            for id, (name, value) in values.items():
                plant(id, name, value)
            assert (await pipe.failures()).counted > 0
            assert len((await pipe.page(limit=100, error="BrokenJob")).jobs) > 0

    run(scenario())
