"""What a Redis server does to its clients: it is full, forgets scripts, hangs up, restarts, moves, or is unfit."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from jobpipe import Jobpipe, JobStatus, StoreAwayError, StoreError, StoreRefusedError
from jobpipe.job import Move, Progress
from jobpipe.stores.base import Filter, LeaseState, Outcome, Parcel, ScheduleEntry, Settlement, WorkerInfo
from jobpipe.stores.limits import Limit
from jobpipe.stores.memory import MemoryStore
from jobpipe.stores.redis import RedisStore
from jobpipe.stores.redis.scripts import names
from jobpipe.testing.tools import BOOM, finish, look, new_job, page_ids, put, take, take_one, tally

from ..servers_redis import RedisServer, redis_server, with_own_keys
from .conftest import finished, run

PATIENCE = 20.0
BIG = "x" * 100_000


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    """One that a test may do anything to."""
    with redis_server(tmp_path / "redis") as server:
        yield server


def opened(server: RedisServer, query: str = "") -> RedisStore:
    store = RedisStore(server.url + query)
    store.migrate()
    return store


@pytest.fixture
def store(server: RedisServer) -> Iterator[RedisStore]:
    with closing(opened(server)) as store:
        yield store


def one_round(store: RedisStore) -> None:
    """Every verb once."""
    limits = (Limit(type="work", interval=0.001, concurrency=1, is_keyed=True),)
    put(store, *(new_job(f"j{n}", key="k") for n in range(4)), new_job("later", delay=60))
    (claim,) = store.claim("w1", ["work"], 9, 60, limits).claims
    assert store.claim("w2", ["work"], 9, 60, limits).claims == []
    assert [gate.key for gate in store.limits().gates] == ["k"]
    assert store.extend([claim.lease], 60) == [LeaseState.HELD]
    store.progress([(claim.lease, Progress(value=0.5))])
    assert finish(store, claim, Move.FAIL, error=BOOM)
    released, settled = take(store, 2)
    assert store.release([released.lease]) == [True]
    assert store.settle(
        [Settlement(settled.lease, Outcome(move=Move.SUCCEED, result=b'"' + b"x" * 999 + b'"'))]
    )
    assert store.rescue() == []
    assert store.cancel(["later"]) == [JobStatus.SCHEDULED]
    assert store.retry(["j0"]) == [JobStatus.FAILED]
    store.pause("default")
    store.resume("default")
    assert look(store, settled.id).result == "x" * 999
    assert len(page_ids(store, Filter(type="work"))) == 5
    assert store.ahead("j0") >= 1
    assert store.key_of("j0") == "k"
    assert store.last_event() == store.events(0, 100)[-1].number
    store.beat(WorkerInfo(name="w1", types=("work",), slots=1, running=(), started_at=1.0), 60)
    assert len(store.workers()) == 1
    store.put_schedule(
        ScheduleEntry(name="s", type="work", queue="q", payload=b"null", every=1.0, next_at=1.0)
    )
    assert store.fire_tick("s", 1.0, 2.0, new_job("tick"), capacity=99)
    assert [entry.last_job for entry in store.schedules().entries] == ["tick"]
    assert store.drop_schedule("s")
    parcels = store.export(100)
    store.discard([parcel.job.id for parcel in parcels])
    assert store.adopt(parcels) == len(parcels) > 0
    time.sleep(0.001)  # what has just finished is not older than 0 s by the server's clock
    assert store.prune(0) == 2
    assert store.check()


def test_a_round_uses_every_script(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the tests which go round miss none."""
    used = set()
    real = RedisStore._run

    def noted(self: RedisStore, verb: str, *args: Any, **kwargs: Any) -> Any:
        used.add(verb)
        return real(self, verb, *args, **kwargs)

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


def test_illegal_move_is_refused_and_changes_nothing(server: RedisServer, store: RedisStore) -> None:
    """A record that says done, though it stands among those that are ready."""
    put(store, new_job("a"))
    (seq,) = server.ask("HKEYS", "{jobpipe}:jobs")
    record = server.ask("HGET", "{jobpipe}:jobs", seq)
    server.ask("HSET", "{jobpipe}:jobs", seq, record.replace(b"\xa6queued", b"\xa4done"))
    before = dump(server)
    with pytest.raises(StoreError, match="the transition table knows no claim of a job that is done"):
        store.claim("w1", ["work"], 1, 60)
    assert dump(server) == before


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


# Memory


def fill(server: RedisServer) -> None:
    """Leave the server not a byte."""
    server.ask("CONFIG", "SET", "maxmemory", "1")


def make_room(server: RedisServer) -> None:
    server.ask("CONFIG", "SET", "maxmemory", "0")


def _parcels() -> list[Parcel]:
    elsewhere = MemoryStore()
    put(elsewhere, new_job("new"))
    return elsewhere.export(1)


PARCELS = _parcels()
ASKING_FOR_MORE: dict[str, Callable[[RedisStore], object]] = {
    "insert": lambda store: store.insert([[new_job("new")]]),
    "insert when something is due": lambda store: store.insert([[new_job("new", delay=9)]]),
    "tick": lambda store: store.fire_tick("s", 1.0, 2.0, new_job("new")),
    "adopt": lambda store: store.adopt(PARCELS),
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
    fill(server)
    assert store.extend([held[0].lease], 60) == [LeaseState.HELD]
    store.progress([(held[0].lease, Progress(value=0.5))])
    (lost,) = wait_for(store.rescue)
    assert (lost.id, lost.status) == ("j1", JobStatus.FAILED)
    assert finish(store, held[0], result=BIG)
    done, failed, retried, snoozed, released = take(store, 5)
    assert finish(store, done)
    assert finish(store, failed, Move.FAIL, error=BOOM)
    assert finish(store, retried, Move.RETRY, error=BOOM, delay=60)
    assert finish(store, snoozed, Move.SNOOZE, delay=60, cools=0.001)
    assert store.release([released.lease]) == [True]
    assert store.cancel(["later", "j7"]) == [JobStatus.SCHEDULED, JobStatus.QUEUED]
    assert store.retry(["later"]) == [JobStatus.CANCELLED]
    store.pause("default")
    store.resume("default")
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
        pruned += wait_for(lambda: store.prune(0.01))
    assert store.discard(["later"]) == 1


def wait_for(look: Callable[[], Any]) -> Any:
    """What a look finds, as soon as it is something."""
    until = time.monotonic() + PATIENCE
    while not (found := look()):
        assert time.monotonic() < until
        time.sleep(0.002)
    return found


def test_full_server_can_be_read_though_something_came_due(server: RedisServer, store: RedisStore) -> None:
    put(store, new_job("due", delay=0.05))
    fill(server)
    wait_for(lambda: look(store, "due").status is JobStatus.QUEUED)
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


def test_migration_is_named_once_however_many_migrate(server: RedisServer) -> None:
    def migrate(_: int) -> list[str]:
        with closing(RedisStore(server.url)) as store:
            return store.migrate()

    with ThreadPoolExecutor(8) as pool:
        steps = list(pool.map(migrate, range(8)))
    assert sorted(steps) == [[]] * 7 + [["0001_jobs"]]


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
        with closing(RedisStore(server.url.replace("://", "://:right@"))) as store:
            store.migrate()
            one_round(store)
            with closing(store.watch()) as watch:
                put(store, new_job("news"))
                assert watch.wait(PATIENCE)


RIGHTS = (
    "~{jobpipe}* resetchannels &{jobpipe}* +@read +@write +@pubsub +@connection +eval +evalsha +info +time"
)
"""As the docs name them."""


def test_user_with_the_rights_that_the_docs_name_can_do_all(server: RedisServer) -> None:
    assert RIGHTS in (Path(__file__).parents[2] / "docs" / "jobpipe" / "redis.md").read_text(encoding="utf-8")
    server.ask("ACL", "SETUSER", "jobs", "on", ">secret", *RIGHTS.split())
    with closing(RedisStore(server.url.replace("://", "://jobs:secret@"))) as store:
        store.migrate()
        one_round(store)
        with closing(store.watch()) as watch:
            put(store, new_job("news"))
            assert watch.wait(PATIENCE)
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


# Connections


def test_store_goes_on_after_its_connections_were_killed(server: RedisServer, store: RedisStore) -> None:
    put(store, new_job("a"))
    with closing(store.watch()) as watch:
        for n in range(5):
            server.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            server.ask("CLIENT", "KILL", "TYPE", "pubsub")
            store.release([take_one(store).lease])
            assert watch.wait(PATIENCE)
            while watch.wait(0.01):
                pass
            put(store, new_job(f"j{n}"))
            assert watch.wait(PATIENCE)


def test_store_goes_on_after_a_restart_with_all_it_had(tmp_path: Path) -> None:
    settings = {"appendonly": "yes", "appendfsync": "always"}
    with redis_server(tmp_path / "redis", **settings) as server, closing(opened(server)) as store:
        put(store, new_job("a"), new_job("b"))
        claim = take_one(store)
        with closing(store.watch()) as watch:
            server.stop(is_killed=True)
            with pytest.raises(StoreAwayError, match="cannot be reached"):
                put(store, new_job("c"))
            with pytest.raises(StoreAwayError, match="cannot be reached"):
                watch.wait(PATIENCE)
            server.start()
            assert watch.wait(PATIENCE)
            assert finish(store, claim)
            put(store, new_job("c"))
            assert watch.wait(PATIENCE)
        assert tally(store) == {JobStatus.DONE: 1, JobStatus.QUEUED: 2}


def test_server_that_is_not_there_is_away(tmp_path: Path) -> None:
    with closing(RedisStore(f"unix://{tmp_path}/none.sock")) as store:
        for ask in (store.migrate, store.check, store.last_event, store.watch):
            with pytest.raises(StoreAwayError, match="cannot be reached"):
                ask()


def test_unix_socket_leads_to_the_store(tmp_path: Path) -> None:
    path = tmp_path / "redis.sock"
    with redis_server(tmp_path / "redis", unixsocket=str(path)):
        for url in (f"unix://{path}", f"redis+unix://{path}?db=3"):
            with closing(RedisStore(url)) as store:
                store.migrate()
                one_round(store)


def test_databases_of_a_server_are_different_stores(server: RedisServer, store: RedisStore) -> None:
    put(store, new_job("a"))
    with closing(RedisStore(f"{server.url}/1")) as other:
        other.migrate()
        assert other.get("a") is None


def test_closed_store_says_so(server: RedisServer) -> None:
    store = opened(server)
    store.close()
    with pytest.raises(StoreError, match="was closed"):
        store.last_event()


class Mute:
    """Stands between a client and the server, until it falls silent without hanging up."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"redis://127.0.0.1:{self._listener.getsockname()[1]}"
        self._sockets: list[socket.socket] = [self._listener]
        self._threads: list[threading.Thread] = []
        self._begin(self._accept)

    def _begin(self, do: Callable[..., None], *args: Any) -> None:
        thread = threading.Thread(target=do, args=args)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            there = socket.create_connection(("127.0.0.1", self._port))
            self._sockets += [client, there]
            lost = threading.Event()
            self._lost = lost
            self._begin(self._carry, client, there, lost)
            self._begin(self._carry, there, client, lost)

    def _carry(self, source: socket.socket, target: socket.socket, lost: threading.Event) -> None:
        try:
            while data := source.recv(65536):
                if not lost.is_set():
                    target.sendall(data)
        except OSError:
            pass

    def fall_silent(self) -> None:
        """Carry nothing more for the connection that came last."""
        self._lost.set()

    def close(self) -> None:
        for each in self._sockets:
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            each.close()
        for thread in self._threads:
            thread.join(PATIENCE)


def test_half_open_subscription_is_found_out_within_five_seconds(
    server: RedisServer, store: RedisStore
) -> None:
    with (
        closing(Mute(server.port)) as mute,
        closing(RedisStore(mute.url)) as behind,
        closing(behind.watch()) as watch,
    ):
        put(store, new_job("a"))
        assert watch.wait(PATIENCE)
        mute.fall_silent()
        began = time.monotonic()
        assert watch.wait(PATIENCE), "it has to say that it may have missed something"
        assert time.monotonic() - began < 5
        put(store, new_job("b"))
        assert watch.wait(PATIENCE)


def test_quiet_subscription_stays_connected(server: RedisServer, store: RedisStore) -> None:
    with closing(store.watch()) as watch:
        assert not watch.wait(2.5)  # longer than it takes to ask for a sign of life
        assert not watch.wait(0.5)
        put(store, new_job("a"))
        assert watch.wait(PATIENCE)


class DeafStore(RedisStore):
    """Hears nothing of what others do."""

    def watch(self) -> Any:
        return DeafWatch()


class DeafWatch:
    def __init__(self) -> None:
        self._closed = threading.Event()

    def wait(self, timeout: float) -> bool:
        self._closed.wait(timeout)
        return False

    def close(self) -> None:
        self._closed.set()


def test_jobs_run_within_the_poll_interval_though_no_wake_up_is_heard(redis_url: str) -> None:
    """Fault 17."""
    url = with_own_keys(redis_url)

    async def scenario() -> None:
        pipe = Jobpipe(DeafStore(url), queue_size=0)

        @pipe.job("noop")
        async def noop() -> None: ...

        with closing(RedisStore(url)) as elsewhere:
            elsewhere.migrate()
            async with pipe, pipe.running(workers=1):
                for n in range(2):
                    put(elsewhere, new_job(f"j{n}", type="noop"))
                    job = await finished(pipe, f"j{n}")
                    assert job.started_at is not None
                    assert (job.started_at - job.created_at).total_seconds() < 2

    run(scenario())


# Clusters


def is_whole(node: RedisServer) -> bool:
    """Does somebody have each slot?"""
    return "cluster_state:ok" in str(node.ask("CLUSTER", "INFO"))


def test_all_keys_are_in_one_slot_of_a_cluster(tmp_path: Path) -> None:
    with redis_server(tmp_path / "redis", cluster_enabled="yes") as server:
        server.ask("CLUSTER", "ADDSLOTS", *range(16384))
        wait_for(partial(is_whole, server))
        with closing(opened(server, "?prefix=mine")) as store:
            one_round(store)
            assert all(key.startswith(b"{mine}:") for key in server.ask("KEYS", "*"))
        with closing(RedisStore(f"{server.url}/1")) as store, pytest.raises(StoreError):
            store.migrate()


def test_store_goes_to_the_node_that_has_its_slot(tmp_path: Path) -> None:
    settings = {"cluster_enabled": "yes"}
    with redis_server(tmp_path / "one", **settings) as one, redis_server(tmp_path / "two", **settings) as two:
        slot = one.ask("CLUSTER", "KEYSLOT", "{jobpipe}")
        one.ask("CLUSTER", "ADDSLOTS", *(n for n in range(16384) if n != slot))
        two.ask("CLUSTER", "ADDSLOTS", slot)
        one.ask("CLUSTER", "MEET", "127.0.0.1", two.port)
        for node in (one, two):
            wait_for(partial(is_whole, node))
        with closing(opened(one)) as store, closing(store.watch()) as watch:
            one_round(store)
            assert watch.wait(PATIENCE)
            assert one.ask("KEYS", "*") == []
            assert two.ask("KEYS", "*")
