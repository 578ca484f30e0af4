"""Connections to a Redis server: killed, half open, deaf, after a restart, over a socket, to a cluster."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from jobpipe import Jobpipe, JobStatus, StoreAwayError, StoreError
from jobpipe.stores.base import News
from jobpipe.stores.redis import RedisStore
from jobpipe.testing.reading import look, tally
from jobpipe.testing.tools import finish, new_job, put, take_one

from ...support.jobs import finished
from ...support.redis_tools import one_round, opened
from ...support.servers_redis import RedisServer, redis_server, with_own_keys
from ...support.waiting import LIMIT, eventually, run


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    """One that a test may do anything to."""
    with redis_server(tmp_path / "redis") as server:
        yield server


@pytest.fixture
def store(server: RedisServer) -> Iterator[RedisStore]:
    with closing(opened(server)) as store:
        yield store


def test_store_goes_on_after_its_connections_were_killed(server: RedisServer, store: RedisStore) -> None:
    put(store, new_job("a"))
    with closing(store.watch(News.WORK)) as watch:
        for n in range(5):
            server.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            server.ask("CLIENT", "KILL", "TYPE", "pubsub")
            store.release([take_one(store).lease])
            assert watch.wait(LIMIT)
            while watch.wait(0.01):
                pass
            put(store, new_job(f"j{n}"))
            assert watch.wait(LIMIT)


def test_store_goes_on_after_a_restart_with_all_it_had(tmp_path: Path) -> None:
    settings = {"appendonly": "yes", "appendfsync": "always"}
    with redis_server(tmp_path / "redis", **settings) as server, closing(opened(server)) as store:
        put(store, new_job("a"), new_job("b"))
        claim = take_one(store)
        with closing(store.watch(News.WORK)) as watch:
            server.stop(is_killed=True)
            with pytest.raises(StoreAwayError, match="cannot be reached"):
                put(store, new_job("c"))
            with pytest.raises(StoreAwayError, match="cannot be reached"):
                watch.wait(LIMIT)
            server.start()
            assert watch.wait(LIMIT)
            assert finish(store, claim)
            put(store, new_job("c"))
            assert watch.wait(LIMIT)
        assert tally(store) == {JobStatus.DONE: 1, JobStatus.QUEUED: 2}


def test_server_that_is_not_there_is_away(tmp_path: Path) -> None:
    with closing(RedisStore(f"unix://{tmp_path}/none.sock")) as store:
        for ask in (store.migrate, store.check, store.last_event, lambda: store.watch(News.WORK)):
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


def test_fork_has_connections_of_its_own(store: RedisStore) -> None:
    put(store, new_job("a"))
    pid = os.fork()
    if pid == 0:
        is_done = [claim.id for claim in store.claim("child", ["work"], 1, 60).claims] == ["a"]
        os._exit(0 if is_done else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert look(store, "a").status is JobStatus.RUNNING


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
            thread.join(LIMIT)


def test_half_open_subscription_is_found_out_within_five_seconds(
    server: RedisServer, store: RedisStore
) -> None:
    with (
        closing(Mute(server.port)) as mute,
        closing(RedisStore(mute.url)) as behind,
        closing(behind.watch(News.WORK)) as watch,
    ):
        put(store, new_job("a"))
        assert watch.wait(LIMIT)
        mute.fall_silent()
        began = time.monotonic()
        assert watch.wait(LIMIT), "it has to say that it may have missed something"
        assert time.monotonic() - began < 15  # ten of them for a machine that is busy
        put(store, new_job("b"))
        assert watch.wait(LIMIT)


def test_quiet_subscription_stays_connected(server: RedisServer, store: RedisStore) -> None:
    with closing(store.watch(News.WORK)) as watch:
        assert not watch.wait(2.5)  # longer than it takes to ask for a sign of life
        assert not watch.wait(0.5)
        put(store, new_job("a"))
        assert watch.wait(LIMIT)


class DeafStore(RedisStore):
    """Hears nothing of what others do."""

    def watch(self, news: News) -> Any:
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
        eventually(partial(is_whole, server))
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
            eventually(partial(is_whole, node))
        with closing(opened(one)) as store, closing(store.watch(News.WORK)) as watch:
            one_round(store)
            assert watch.wait(LIMIT)
            assert one.ask("KEYS", "*") == []
            assert two.ask("KEYS", "*")
