"""The PostgreSQL store behind a slow network: claims of several round trips tell the time rightly, and hold up nobody for long."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress

import psycopg
import pytest

from jobpipe import StoreAwayError
from jobpipe.model.gate import Limit
from jobpipe.stores.postgres import PostgresStore
from jobpipe.testing.tools import new_job, put

from ...support.proxy import Proxy
from ...support.servers_postgres import PostgresServer

LIMITS = [Limit(type="paced", interval=0.01), Limit(type="few", concurrency=1)]
TYPES = ["echo", "few", "paced"]


@pytest.fixture
def proxy(own_postgres: PostgresServer) -> Iterator[Proxy]:
    with Proxy(f"{own_postgres.folder}/.s.PGSQL.5432") as proxy:
        yield proxy


@pytest.fixture
def near(own_postgres: PostgresServer) -> Iterator[PostgresStore]:
    with closing(PostgresStore(own_postgres.url)) as store:
        store.migrate()
        yield store


@pytest.fixture
def far(near: PostgresStore, proxy: Proxy) -> Iterator[PostgresStore]:
    with closing(PostgresStore(f"postgresql://postgres@127.0.0.1:{proxy.port}/postgres")) as store:
        yield store


def test_claim_over_a_slow_network_begins_when_it_is_made(
    far: PostgresStore, near: PostgresStore, proxy: Proxy
) -> None:
    """Its lease is as long as it was asked for, and its rate is counted from there."""
    put(near, *(new_job(f"p{n}", type="paced") for n in range(3)))
    far.counts()  # so that it is connected
    proxy.delay(0.05)
    began_at = time.time()
    result = far.claim("w", TYPES, 10, 30.0, LIMITS)
    ended_at = time.time()
    assert len(result.claims) == 3
    # The choice takes three quarters of the time, and is before the claim.
    assert result.claims[0].started_at - began_at > 0.5 * (ended_at - began_at)
    last = max(claim.started_at for claim in result.claims)
    put(near, new_job("next", type="paced"))
    (claim,) = near.claim("w", TYPES, 10, 30.0, LIMITS).claims
    assert claim.started_at >= last + LIMITS[0].interval - 1e-6


def test_process_that_is_stopped_in_a_claim_holds_up_others_for_seconds_only(
    far: PostgresStore, near: PostgresStore, proxy: Proxy, own_postgres: PostgresServer
) -> None:
    put(near, new_job("a", type="few"), new_job("b", type="echo"))
    far.counts()
    with ThreadPoolExecutor(1) as pool, psycopg.connect(own_postgres.url, autocommit=True) as connection:
        proxy.delay(0.05)
        claiming = pool.submit(far.claim, "far", TYPES, 10, 30.0, LIMITS)
        while not connection.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'").fetchall()[
            0
        ][0]:
            time.sleep(0.001)
        proxy.stall()
        began_at = time.monotonic()
        claimed: list[str] = []
        try:
            while "a" not in claimed and time.monotonic() - began_at < 15:
                claimed += [claim.id for claim in near.claim("near", TYPES, 10, 30.0, LIMITS).claims]
        finally:
            proxy.heal()
        # Why the other first: a claim passes over the types with limits that another is looking at for too long.
        assert claimed in (["b", "a"], ["a", "b"])
        with suppress(StoreAwayError):
            assert claiming.result().claims == []
