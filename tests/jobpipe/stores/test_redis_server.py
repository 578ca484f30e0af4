"""What a Redis server is to its store: full, forgetful, meddled with, unfit, or faced with very much."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from jobpipe import (
    BadInputError,
    JobStatus,
    QueueFullError,
    StoreAwayError,
    StoreRefusedError,
    TooManyNamesError,
)
from jobpipe.model.gate import Limit
from jobpipe.model.job import Move, OnDuplicate, Progress
from jobpipe.stores.base import ExportedJob, Filter, LeaseState, News, Rescued, ScheduleEntry, WorkerInfo
from jobpipe.stores.memory import MemoryStore
from jobpipe.stores.redis import RedisStore
from jobpipe.stores.redis.records import Record
from jobpipe.stores.redis.scripts import names, script
from jobpipe.stores.redis.store import STEPS
from jobpipe.stores.redis.verbs import Call
from jobpipe.testing import ManualTime
from jobpipe.testing.reading import look, page_ids, tally
from jobpipe.testing.tools import BOOM, finish, new_job, put, take, take_one

from ...support.redis_tools import one_round, opened
from ...support.servers_redis import RedisServer, redis_server, with_own_keys
from ...support.waiting import LIMIT, eventually

BIG = "x" * 100_000


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    """One that a test may do anything to."""
    with redis_server(tmp_path / "redis") as server:
        yield server


@pytest.fixture
def store(server: RedisServer) -> Iterator[RedisStore]:
    with closing(opened(server)) as store:
        yield store


def test_unique_name_that_an_older_program_did_not_note_holds_nobody_up(
    store: RedisStore, server: RedisServer
) -> None:
    """It begins and ends jobs without a word about their names."""
    put(store, new_job("first", unique="name"))
    noted = server.ask("HGETALL", "{jobpipe}:unique")
    finish(store, take_one(store))
    server.ask("HSET", "{jobpipe}:unique", *(each for pair in noted.items() for each in pair))
    for on_duplicate in OnDuplicate:
        put(store, new_job(on_duplicate.value, unique="name", on_duplicate=on_duplicate))
    assert [claim.id for claim in take(store)] == ["keep"]


def test_a_round_uses_every_script(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the tests which go round miss none."""
    used = set()
    real = RedisStore._run

    def noted(self: RedisStore, call: Call) -> Any:
        used.add(call.script)
        return real(self, call)

    monkeypatch.setattr(RedisStore, "_run", noted)
    with closing(RedisStore(with_own_keys(redis_url))) as store:
        store.migrate()
        one_round(store)
        store.counts()
    assert used == set(names())


# Scripts


def test_flushed_scripts_are_loaded_again(server: RedisServer, store: RedisStore) -> None:
    put(store, new_job("a"))
    for _ in range(3):
        server.ask("SCRIPT", "FLUSH")
        store.release([take_one(store).lease])
        server.ask("SCRIPT", "FLUSH")
    one_round_of_one(store)


def one_round_of_one(store: RedisStore) -> None:
    assert finish(store, take_one(store))
    assert tally(store) == {JobStatus.DONE: 1}


@pytest.mark.parametrize("begin", [None, 0], ids=["begun", "claimed ahead"])
def test_record_in_the_wrong_place_holds_nobody_up(
    server: RedisServer, store: RedisStore, begin: int | None
) -> None:
    """A record that says done, though it stands among those that are ready."""
    put(store, new_job("a"), new_job("b"))
    seq = min(server.ask("HKEYS", "{jobpipe}:jobs"))
    record = server.ask("HGET", "{jobpipe}:jobs", seq)
    server.ask("HSET", "{jobpipe}:jobs", seq, record.replace(b"\xa6queued", b"\xa4done"))
    assert [claim.id for claim in store.claim("w1", ["work"], 2, 60, (), begin).claims] == ["b"]
    assert server.ask("HGET", "{jobpipe}:jobs", seq) == record.replace(b"\xa6queued", b"\xa4done")


def dump(server: RedisServer) -> dict[bytes, bytes]:
    return {key: server.ask("DUMP", key) for key in server.ask("KEYS", "*")}


def test_record_that_cannot_be_read_holds_nobody_up(server: RedisServer, store: RedisStore) -> None:
    put(store, new_job("a"), new_job("b"))
    seqs = sorted(server.ask("HKEYS", "{jobpipe}:jobs"))
    server.ask("HSET", "{jobpipe}:jobs", seqs[0], b"\x80\x04\x95pickle")
    assert store.get("a") is None
    assert [claim.id for claim in take(store, 2)] == ["b"]
    assert take(store, 2) == []
    assert page_ids(store) == ["b"]


def test_schedule_of_an_older_program_can_be_paused(server: RedisServer, store: RedisStore) -> None:
    """Its record has no place for it."""
    entry = ScheduleEntry(name="s", type="work", queue="q", payload=b"null", every=1.0, next_at=1.5)
    store.put_schedule(entry)
    record = msgspec.msgpack.decode(server.ask("HGET", "{jobpipe}:schedules", "s"))
    server.ask("HSET", "{jobpipe}:schedules", "s", msgspec.msgpack.encode(record[:6]))
    assert store.schedules().entries == [entry]
    assert store.put_schedule(entry) == entry
    server.ask("HSET", "{jobpipe}:schedules", "s", msgspec.msgpack.encode(record[:6]))
    assert store.fire_tick("s", 1.5, 2.5, new_job("a"))
    assert store.pause_schedule("s")
    assert store.fire_tick("s", 2.5, 3.5, new_job("b")) is None
    assert store.put_schedule(entry).is_paused


# Memory


def fill(server: RedisServer) -> None:
    """Leave the server not a byte."""
    server.ask("CONFIG", "SET", "maxmemory", "1")


def make_room(server: RedisServer) -> None:
    server.ask("CONFIG", "SET", "maxmemory", "0")


def _exported() -> list[ExportedJob]:
    elsewhere = MemoryStore()
    put(elsewhere, new_job("new"))
    return elsewhere.export(1)


EXPORTED = _exported()
ASKING_FOR_MORE: dict[str, Callable[[RedisStore], object]] = {
    "insert": lambda store: store.insert([[new_job("new")]]),
    "insert when something is due": lambda store: store.insert([[new_job("new", delay=9)]]),
    "tick": lambda store: store.fire_tick("s", 1.0, 2.0, new_job("new")),
    "adopt": lambda store: store.adopt(EXPORTED),
    "put_schedule": lambda store: store.put_schedule(
        ScheduleEntry(name="new", type="work", queue="q", payload=b"null", every=1.0)
    ),
}


@pytest.mark.parametrize("ask", ASKING_FOR_MORE.values(), ids=ASKING_FOR_MORE)
def test_full_server_refuses_what_asks_for_more_and_writes_nothing(
    server: RedisServer, store: RedisStore, ask: Callable[[RedisStore], object]
) -> None:
    put(store, new_job("a"), new_job("due", run_at=time.time() + 0.05))
    store.put_schedule(
        ScheduleEntry(name="s", type="work", queue="q", payload=b"null", every=1.0, next_at=1.0)
    )
    fill(server)
    time.sleep(0.1)  # until it is due
    before = dump(server)
    with pytest.raises(StoreAwayError, match="no memory left"):
        ask(store)
    assert dump(server) == before
    make_room(server)
    ask(store)


def test_full_server_lets_jobs_run_and_end(server: RedisServer, store: RedisStore) -> None:
    put(store, *(new_job(f"j{n}", max_retries=0) for n in range(8)), new_job("later", delay=60))
    held = take(store, 2, lease=0.001)
    store.put_schedule(
        ScheduleEntry(name="s", type="work", queue="q", payload=b"null", every=1.0, next_at=1.0)
    )
    fill(server)
    assert store.extend([held[0].lease], 60) == [LeaseState.HELD]
    store.progress([(held[0].lease, Progress(value=0.5))])
    (lost,) = eventually(store.rescue)
    assert (lost.id, lost.status) == ("j1", JobStatus.FAILED)
    assert finish(store, held[0], result=BIG)
    done, failed, retried, snoozed, released = store.claim("w1", ["work"], 5, 60, (), begin=2).claims
    assert store.begin([retried.lease], [0.0]) == [LeaseState.HELD]
    assert finish(store, done)
    assert finish(store, failed, Move.FAIL, error=BOOM)
    assert finish(store, retried, Move.RETRY, error=BOOM, delay=60)
    assert finish(store, snoozed, Move.SNOOZE, delay=60, cools=0.001)
    assert store.release([released.lease]) == [True]
    assert store.cancel(["later", "j7"]) == [JobStatus.SCHEDULED, JobStatus.QUEUED]
    assert store.retry(["later"]) == [JobStatus.CANCELLED]
    store.pause("default")
    store.resume("default")
    assert store.pause_schedule("s")
    assert store.resume_schedule("s", 1.0, 2.0)
    store.beat(WorkerInfo(name="w1", types=("work",), slots=1, running=(), started_at=1.0), 60)
    assert look(store, "j0").result == BIG
    assert tally(store) == {
        JobStatus.DONE: 2,
        JobStatus.FAILED: 2,
        JobStatus.SCHEDULED: 2,
        JobStatus.QUEUED: 2,
        JobStatus.CANCELLED: 1,
    }
    pruned = 0
    while pruned < 5:
        pruned += eventually(lambda: store.prune(0.01))
    assert store.discard(["later"]) == 1


def test_full_server_can_be_read_though_something_came_due(server: RedisServer, store: RedisStore) -> None:
    put(store, new_job("due", delay=0.05))
    fill(server)
    eventually(lambda: look(store, "due").status is JobStatus.QUEUED)
    assert page_ids(store) == ["due"]


# Fitness


POLICIES = ["allkeys-lru", "allkeys-lfu", "allkeys-random", "volatile-lru", "volatile-ttl"]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("limit", ["0", "100mb"])
def test_evicting_server_is_refused_with_the_command_that_mends_it(
    server: RedisServer, policy: str, limit: str
) -> None:
    server.ask("CONFIG", "SET", "maxmemory", limit)
    server.ask("CONFIG", "SET", "maxmemory-policy", policy)
    with closing(RedisStore(server.url)) as store:
        for ask in (store.migrate, store.check):
            with pytest.raises(StoreRefusedError, match=f"{policy}.*CONFIG SET maxmemory-policy noeviction"):
                ask()
        assert server.ask("KEYS", "*") == []
        server.ask("CONFIG", "SET", "maxmemory-policy", "noeviction")
        store.migrate()


def test_full_server_lets_a_program_declare_its_schedules_again_and_check_says_that_it_is_full(
    server: RedisServer, store: RedisStore
) -> None:
    entry = ScheduleEntry(name="s", type="work", queue="q", payload=b"null", every=1.0)
    store.put_schedule(entry)
    fill(server)
    assert store.put_schedule(entry).name == "s"
    assert any("it is full (maxmemory)" in remark for remark in store.check())
    make_room(server)
    assert not any("it is full (maxmemory)" in remark for remark in store.check())


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"appendonly": "yes", "appendfsync": "always"}, "on disk before it is acknowledged"),
        ({"appendonly": "yes", "appendfsync": "everysec"}, "the last second"),
        ({"appendonly": "yes", "appendfsync": "no"}, "some 30 s"),
        ({"save": "60 1"}, "snapshots only"),
        ({}, "keeps nothing on disk"),
    ],
)
def test_check_says_what_the_settings_keep(tmp_path: Path, settings: dict[str, str], words: str) -> None:
    with redis_server(tmp_path / "redis", **settings) as server, closing(RedisStore(server.url)) as store:
        assert words in store.check()[0]


def test_server_that_tells_nothing_of_its_settings_is_checked_all_the_same(tmp_path: Path) -> None:
    """As those of cloud providers: INFO tells the policy, CONFIG is forbidden."""
    with (
        redis_server(tmp_path / "redis", rename_command="CONFIG ''") as server,
        closing(opened(server)) as store,
    ):
        assert "no append-only file" in store.check()[0]
    settings = {"rename_command": "CONFIG ''", "maxmemory_policy": "allkeys-lru"}
    with (
        redis_server(tmp_path / "other", **settings) as server,
        closing(RedisStore(server.url)) as store,
        pytest.raises(StoreRefusedError, match="allkeys-lru"),
    ):
        store.check()


def test_newer_schema_is_refused_before_any_work(server: RedisServer, store: RedisStore) -> None:
    server.ask("SET", "{jobpipe}:version", "99")
    before = dump(server)
    with pytest.raises(StoreRefusedError, match="schema 99"):
        store.migrate()
    assert dump(server) == before


NEW_IN_SECOND = 2
"""Fields at the end of a record that the first schema did not have."""


def test_jobs_of_the_first_schema_go_on(server: RedisServer, store: RedisStore) -> None:
    put(store, *(new_job(id, key="k") for id in ("held", "lost", "queued")), new_job("later", delay=60))
    limits = (Limit(type="work", concurrency=2, is_keyed=True),)
    held, lost = store.claim("w1", ["work"], 3, 60, limits).claims
    store.extend([lost.lease], 0.001)
    before = [look(store, id) for id in page_ids(store)]
    for seq, record in server.ask("HGETALL", "{jobpipe}:jobs").items():
        kept = msgspec.msgpack.decode(record)[:-NEW_IN_SECOND]
        server.ask("HSET", "{jobpipe}:jobs", seq, msgspec.msgpack.encode(kept))
    server.ask("SET", "{jobpipe}:version", "1")
    assert store.migrate() == list(STEPS[1:])
    assert store.migrate() == []
    assert [look(store, id) for id in page_ids(store)] == before
    assert [job.job.id for job in store.export(9)] == ["queued", "later"]
    assert eventually(store.rescue) == [Rescued("lost", "w1", JobStatus.QUEUED, "work", 1)]
    assert finish(store, held)
    claims = store.claim("w2", ["work"], 9, 60, (), begin=0).claims
    assert [(claim.id, claim.attempts, claim.has_begun) for claim in claims] == [
        ("lost", 2, False),
        ("queued", 1, False),
    ]
    assert all(finish(store, claim) for claim in claims)


def test_job_that_an_older_program_cancelled_keeps_no_place(server: RedisServer) -> None:
    """It knows no job that is queued and leased: lease and place are left behind, until the lease has run out."""
    limits = (Limit(type="work", concurrency=1, is_keyed=True),)
    clock = ManualTime()
    with closing(RedisStore(server.url, clock=clock)) as store:
        store.migrate()
        put(store, new_job("a", key="k"), new_job("b", key="k"))
        (claim,) = store.claim("w1", ["work"], 2, 60, limits, begin=0).claims
        seq = server.ask("HGET", "{jobpipe}:ids", "a")
        record = msgspec.msgpack.decode(server.ask("HGET", "{jobpipe}:jobs", seq), type=Record)
        cancelled = msgspec.structs.replace(record, status="cancelled", gate="", finished_at=clock())
        server.ask("HSET", "{jobpipe}:jobs", seq, msgspec.msgpack.encode(cancelled))
        assert store.begin([claim.lease], [0.0]) == [LeaseState.LOST]
        clock.elapse(61)
        assert store.rescue() == []
        assert server.ask("EXISTS", "{jobpipe}:claimed-ahead") == 0
        (claim,) = store.claim("w1", ["work"], 2, 60, limits).claims
        assert claim.id == "b"


def test_migration_is_named_once_however_many_migrate(server: RedisServer) -> None:
    def migrate(_: int) -> list[str]:
        with closing(RedisStore(server.url)) as store:
            return store.migrate()

    with ThreadPoolExecutor(8) as pool:
        steps = list(pool.map(migrate, range(8)))
    assert sorted(map(len, steps)) == [0] * 7 + [len(STEPS)]


def test_store_of_an_older_program_is_brought_up_to_date(server: RedisServer, store: RedisStore) -> None:
    """One that counted scheduled and queued jobs of a queue together, and knew no names."""
    store.migrate()
    put(store, new_job("a"), new_job("b"), new_job("c", delay=60), new_job("d", queue="q"))
    server.ask("DEL", "{jobpipe}:queued", "{jobpipe}:names")
    server.ask("HSET", "{jobpipe}:waiting", "default", "3", "q", "1")
    server.ask("SET", "{jobpipe}:version", "1")
    assert store.migrate() == list(STEPS[1:])
    full, room = store.insert([[new_job("e")], [new_job("f", queue="q")]], capacity=2, names=2)
    assert isinstance(full, QueueFullError)
    assert full.waiting == 2
    assert isinstance(room, list)
    (names,) = store.insert([[new_job("g", queue="other")]], names=2)
    assert isinstance(names, TooManyNamesError)
    assert not server.ask("EXISTS", "{jobpipe}:waiting")


def test_replica_is_a_store_that_is_away(tmp_path: Path, server: RedisServer, store: RedisStore) -> None:
    with redis_server(tmp_path / "replica", replicaof=f"127.0.0.1 {server.port}") as replica:
        with closing(RedisStore(replica.url)) as other:
            with pytest.raises(StoreAwayError, match="replica"):
                other.migrate()
            with pytest.raises(StoreAwayError, match="read-only replica"):
                put(other, new_job("a"))
        replica.ask("REPLICAOF", "NO", "ONE")
        with closing(opened(replica)) as other:
            put(other, new_job("a"))


def test_wrong_password_is_refused_and_not_shown(tmp_path: Path) -> None:
    with redis_server(tmp_path / "redis") as server:
        server.ask("CONFIG", "SET", "requirepass", "right")
        url = server.url.replace("://", "://:wrong-one@")
        with closing(RedisStore(url)) as store, pytest.raises(StoreRefusedError) as caught:
            store.migrate()
        assert "wrong-one" not in str(caught.value)
        with closing(RedisStore(server.url)) as store, pytest.raises(StoreRefusedError):
            store.migrate()
        with closing(RedisStore(server.url.replace("://", "://:right@"))) as store:
            store.migrate()
            one_round(store)
            with closing(store.watch(News.WORK)) as watch:
                put(store, new_job("news"))
                assert watch.wait(LIMIT)


RIGHTS = "~{jobpipe}* resetchannels &{jobpipe}* +@read +@write +@pubsub +@connection +select +eval +evalsha +info +time"
"""As the docs name them."""


def test_user_with_the_rights_that_the_docs_name_can_do_all(server: RedisServer) -> None:
    assert RIGHTS in (Path(__file__).parents[3] / "docs" / "jobpipe" / "redis.md").read_text(encoding="utf-8")
    server.ask("ACL", "SETUSER", "jobs", "on", ">secret", *RIGHTS.split())
    with closing(RedisStore(server.url.replace("://", "://jobs:secret@"))) as store:
        store.migrate()
        one_round(store)
        with closing(store.watch(News.WORK)) as watch:
            put(store, new_job("news"))
            assert watch.wait(LIMIT)
    foreign = RedisStore(server.url.replace("://", "://jobs:secret@") + "?prefix=other")
    with closing(foreign), pytest.raises(StoreRefusedError, match="rights"):
        foreign.migrate()


def test_time_of_the_server_decides_not_that_of_the_client(
    store: RedisStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fault 22: a client whose clock is ten minutes off runs nothing early, and rescues nobody early."""
    real = time.time
    put(store, new_job("now"), new_job("later", delay=300))
    for skew in (600, -600):
        monkeypatch.setattr(time, "time", lambda skew=skew: real() + skew)
        (claim,) = take(store, 9, lease=300)
        assert claim.id == "now"
        assert abs(claim.started_at - real()) < 60
        assert store.rescue() == []
        store.release([claim.lease])


# Amounts


def test_long_payloads_are_claimed_by_and_by(redis_url: str) -> None:
    with closing(RedisStore(with_own_keys(redis_url))) as store:
        store.migrate()
        store.insert([[new_job(f"j{n}", "x" * 250_000)] for n in range(100)])
        results = [store.claim("w1", ["work"], 100, 60) for _ in range(2)]
        assert [(result.due_in, result.has_more) for result in results] == [(0, True), (None, False)]
        claims = [claim for result in results for claim in result.claims]
        assert len(claims) == 100
        assert len(results[0].claims) < 80
        assert all(len(claim.payload) == 250_002 for claim in claims)


def test_batch_that_would_keep_the_server_busy_for_long_is_refused(redis_url: str) -> None:
    with closing(RedisStore(with_own_keys(redis_url))) as store:
        store.migrate()
        with pytest.raises(BadInputError, match="10,000"):
            store.insert([[new_job("a")] * 10_001])
        answers = store.insert(
            [[new_job(f"j{n}") for n in range(1_500)], [new_job("a")], [new_job("a", 1)]] * 2
        )
        assert [isinstance(answer, list) for answer in answers] == [True, True, False] * 2
        assert tally(store) == {JobStatus.QUEUED: 1_501}


def test_many_jobs_that_come_due_at_once_are_queued_by_and_by(redis_url: str) -> None:
    clock = ManualTime()
    with closing(RedisStore(with_own_keys(redis_url), clock=clock)) as store:
        store.migrate()
        store.insert([[new_job(f"j{n}", delay=10) for n in range(1_200)]])
        clock.elapse(11)
        result = store.claim("w1", ["work"], 1, 60)
        assert ([claim.id for claim in result.claims], result.due_in) == (["j0"], 0)
        assert tally(store) == {JobStatus.RUNNING: 1, JobStatus.QUEUED: 999, JobStatus.SCHEDULED: 200}
        assert store.claim("w1", ["work"], 1, 60).due_in is None


def test_filter_that_fits_few_of_many_is_answered_in_pieces(redis_url: str) -> None:
    with closing(RedisStore(with_own_keys(redis_url))) as store:
        store.migrate()
        put(store, new_job("first", type="rare"), *(new_job(f"j{n}") for n in range(2_500)))
        put(store, new_job("last", type="rare"))
        assert page_ids(store, Filter(type="rare"), limit=1) == ["last", "first"]
        assert page_ids(store, Filter(type="rare", status=JobStatus.QUEUED)) == ["last", "first"]


def test_a_script_is_sent_with_no_more_than_it_uses() -> None:
    """The server makes all that stands before it anew with every call."""
    for name in names():
        text = script(name).text
        for defined in re.findall(r"^local function (\w+)", text, re.MULTILINE):
            assert len(re.findall(rf"\b{defined}\b", text)) > 1, f"{name} does not use {defined}"
    assert "come_due" not in script("write_steps").text
