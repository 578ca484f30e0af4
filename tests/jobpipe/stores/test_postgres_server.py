"""The PostgreSQL store and its server: schemas, permissions, lost connections, and what `check` says."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import psycopg
import pytest
from psycopg import sql

from jobpipe import Jobpipe, StoreError
from jobpipe.errors import StoreAwayError, StoreRefusedError
from jobpipe.model.gate import Limit
from jobpipe.model.job import TRANSITIONS, JobStatus, Move
from jobpipe.stores.base import Filter, LeaseState, News, Outcome, Rescued, Settlement
from jobpipe.stores.postgres import PostgresStore
from jobpipe.stores.postgres.address import Address
from jobpipe.stores.postgres.connection import MOST, Connections
from jobpipe.stores.postgres.session import Session
from jobpipe.stores.postgres.statements import Statements, migrations
from jobpipe.stores.postgres.verbs.inspecting import page_step
from jobpipe.testing import new_job
from jobpipe.testing.claiming_ahead import take_ahead, take_one_ahead
from jobpipe.testing.harness import together
from jobpipe.testing.reading import look
from jobpipe.testing.scheduling import ENTRY
from jobpipe.testing.tools import finish, put, take, take_one

from ...support.servers_postgres import PostgresServer
from ...support.waiting import LIMIT


@pytest.fixture
def store(postgres_url: str) -> Iterator[PostgresStore]:
    with closing(PostgresStore(postgres_url)) as store:
        store.migrate()
        yield store


@pytest.fixture
def admin(postgres: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgres, autocommit=True) as connection:
        yield connection


def schema_of(url: str) -> str:
    return url.rpartition("schema=")[2]


# Schemas


def test_migrators_at_once_make_one_schema(postgres_url: str) -> None:
    """Fault 21."""
    stores = [PostgresStore(postgres_url) for _ in range(6)]
    steps = together([store.migrate for store in stores])
    assert sorted(len(each) for each in steps) == [0] * 5 + [len(migrations())]
    assert [store.migrate() for store in stores] == [[]] * 6
    for store in stores:
        store.close()


OLD_JOB = """
INSERT INTO {}.jobs (
    seq, id, type, queue, status, max_retries, priority, run_at, created_at, fingerprint, payload,
    attempts, runs, started_at, worker, token, lease_until
)
SELECT 0, 'old', 'work', 'default', 'running', 3, 0, 1, 1, '', '{{}}', 1, 1, 2, 'w1', 'token', 3
"""


@pytest.mark.parametrize("known", range(1, len(migrations())))
def test_schema_of_an_older_program_is_brought_up_to_date(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, admin: psycopg.Connection, known: int
) -> None:
    """Each that there was, with a job in it to be rescued from a lost worker."""
    url = f"{postgres_url}_old"
    names = [name for _, name, _ in migrations()]
    with monkeypatch.context() as older, closing(PostgresStore(url)) as store:
        steps = migrations()[:known]
        older.setattr("jobpipe.stores.postgres.migrate.migrations", lambda: steps)
        assert store.migrate() == names[:known]
    admin.execute(OLD_JOB.format(schema_of(url)))
    with closing(PostgresStore(url)) as newer:
        assert newer.migrate() == names[known:]
        assert newer.rescue() == [Rescued("old", "w1", JobStatus.QUEUED, "work", 1)]
        assert finish(newer, take_one_ahead(newer))
        assert [run.number for run in look(newer, "old").history] == [1, 2]
        put(newer, new_job("a"))
        assert finish(newer, take_one(newer))
        newer.put_schedule(ENTRY)
        assert newer.pause_schedule(ENTRY.name)


def test_newer_schema_is_refused_before_anything_is_changed(
    store: PostgresStore, postgres_url: str, admin: psycopg.Connection
) -> None:
    """Fault 21."""
    admin.execute(f"INSERT INTO {schema_of(postgres_url)}.migrations VALUES (999, 'from the future')")
    with closing(PostgresStore(postgres_url)) as other:
        for verb in (other.migrate, other.check):
            with pytest.raises(
                StoreRefusedError, match=r"has the schema 999, this program knows \d+ at most"
            ):
                verb()


def test_schema_of_somebody_else_may_be_given(postgres: str, admin: psycopg.Connection) -> None:
    """A role that may not make schemas is told what to ask for, and works with one that it was given."""
    admin.execute("DROP SCHEMA IF EXISTS given CASCADE")
    admin.execute("DROP ROLE IF EXISTS clerk")
    admin.execute("CREATE ROLE clerk LOGIN")
    sign = "&" if "?" in postgres else "?"
    url = f"{postgres.replace('postgres@', 'clerk@')}{sign}schema=given"
    with closing(PostgresStore(url)) as store:
        with pytest.raises(StoreRefusedError, match='CREATE SCHEMA "given" AUTHORIZATION "clerk"'):
            store.migrate()
        admin.execute('CREATE SCHEMA "given" AUTHORIZATION "clerk"')
        assert len(store.migrate()) == len(migrations())
        put(store, new_job("a"))
        assert finish(store, take_one(store))
        admin.execute("REVOKE INSERT, DELETE ON given.jobs FROM clerk")
        with pytest.raises(StoreRefusedError, match="does not let its user INSERT and DELETE in"):
            store.check()
    admin.execute("DROP SCHEMA given CASCADE")
    admin.execute("DROP ROLE clerk")


def test_store_without_tables_says_so(postgres_url: str) -> None:
    with closing(PostgresStore(postgres_url)) as store:
        with pytest.raises(StoreError, match="run `jobpipe migrate`"):
            store.get("a")
        with pytest.raises(StoreRefusedError, match="run `jobpipe migrate`"):
            store.check()


def test_only_legal_moves_are_possible(
    store: PostgresStore, postgres_url: str, admin: psycopg.Connection
) -> None:
    """The table of transitions is in the database, whoever writes there."""
    legal = {(old, new) for old, moves in TRANSITIONS.items() for new in moves.values()}
    jobs = f"{schema_of(postgres_url)}.jobs"
    for old in JobStatus:
        for new in JobStatus:
            with admin.transaction(force_rollback=True):
                put(store, new_job("a")) if store.get("a") is None else None
                admin.execute(f"ALTER TABLE {jobs} DISABLE TRIGGER USER")
                admin.execute(f"UPDATE {jobs} SET status = %s", [old.value])
                admin.execute(f"ALTER TABLE {jobs} ENABLE TRIGGER USER")
                try:
                    admin.execute(f"UPDATE {jobs} SET status = %s", [new.value])
                    is_possible = True
                except psycopg.errors.CheckViolation:
                    is_possible = False
            assert is_possible == (old is new or (old, new) in legal), (old, new)


def test_stores_in_two_schemas_know_nothing_of_each_other(store: PostgresStore, postgres_url: str) -> None:
    with closing(PostgresStore(f"{postgres_url}_2")) as other:
        other.migrate()
        watch = store.watch(News.WORK)
        put(other, new_job("a", "there"))
        assert not watch.wait(0.05)
        watch.close()
        assert store.get("a") is None
        put(store, new_job("a", "here"))
        assert look(other, "a").payload == "there"
        assert [claim.payload for claim in take(store, 5)] == [b'"here"']


def test_changes_are_told_only_while_somebody_listens(
    store: PostgresStore, postgres_url: str, admin: psycopg.Connection
) -> None:
    """Who notifies makes other commits wait."""
    channel = sql.Identifier(f'"{schema_of(postgres_url)}".changes')
    admin.execute(sql.SQL("LISTEN {}").format(channel))
    put(store, new_job("a"), new_job("b"))
    assert finish(store, take_one(store))
    assert not list(admin.notifies(timeout=0.05, stop_after=1))
    with closing(store.watch(News.CHANGES)):
        put(store, new_job("c"))
        assert list(admin.notifies(timeout=LIMIT, stop_after=1))
    admin.execute("UNLISTEN *")


def test_claim_that_finds_others_at_work_says_that_there_is_more(
    store: PostgresStore, postgres_url: str, postgres: str
) -> None:
    put(store, *(new_job(f"j{n}") for n in range(10)))
    with psycopg.connect(postgres) as other:
        other.execute(f"SELECT 1 FROM {schema_of(postgres_url)}.jobs ORDER BY seq LIMIT 3 FOR UPDATE")
        result = store.claim("w", ["work"], 2, 60)
        other.rollback()
    assert ([claim.id for claim in result.claims], result.due_in, result.has_more) == (["j3"], 0.0, True)


# Claimed ahead


def test_program_of_the_version_before_does_not_find_it(
    store: PostgresStore, postgres_url: str, admin: psycopg.Connection
) -> None:
    """What it looks for is queued and not parked."""
    put(store, new_job("a"), new_job("b"))
    first, second = take_ahead(store, 2)
    ready = f"SELECT id FROM {schema_of(postgres_url)}.jobs WHERE status = 'queued' AND NOT is_parked"
    assert admin.execute(ready).fetchall() == []
    store.release([first.lease])
    assert admin.execute(ready).fetchall() == [("a",)]
    assert finish(store, second)


def test_place_of_one_that_the_version_before_cancelled_is_free_when_its_lease_runs_out(
    store: PostgresStore, postgres_url: str, admin: psycopg.Connection
) -> None:
    """It takes the job for one that nobody has claimed."""
    limits = (Limit(type="work", concurrency=1),)
    put(store, new_job("a"), new_job("b"))
    (claim,) = store.claim("w1", ["work"], 2, 0.0, limits, 0).claims
    admin.execute(
        f"UPDATE {schema_of(postgres_url)}.jobs SET status = 'cancelled', finished_at = 1, is_parked = false"
        " WHERE id = 'a'"
    )
    assert store.begin([claim.lease], [0.0]) == [LeaseState.LOST]
    before = look(store, "a")
    assert store.rescue() == []
    assert look(store, "a") == before
    assert [claim.id for claim in take_ahead(store, 2, limits=limits)] == ["b"]
    assert {JobStatus.RUNNING, JobStatus.DONE}.isdisjoint(tally.status for tally in store.counts().tallies)


def test_place_of_one_that_is_discarded_is_free(store: PostgresStore) -> None:
    limits = (Limit(type="work", concurrency=1, is_keyed=True),)
    put(store, new_job("a", key="k"), new_job("b", key="k"))
    assert [claim.id for claim in take_ahead(store, 2, limits=limits)] == ["a"]
    assert [job.job.id for job in store.export(10)] == ["a", "b"]
    assert store.discard(["a"]) == 1
    assert [claim.id for claim in take_ahead(store, 2, limits=limits)] == ["b"]


def test_others_that_are_claimed_ahead_are_not_before_it(store: PostgresStore) -> None:
    put(store, *(new_job(id) for id in "abc"))
    take_one_ahead(store)
    assert [store.ahead(id) for id in "abc"] == [0, 0, 1]


def test_running_jobs_are_found_among_many_that_are_claimed_ahead(
    store: PostgresStore, postgres_url: str
) -> None:
    put(store, *(new_job(id) for id in "abc"))
    take_ahead(store, 3, begin=1)
    assert [job.id for job in store.page(Filter(status=JobStatus.RUNNING), 10).jobs] == ["a"]
    assert "jobs_running" in plan_of_page(postgres_url, Filter(status=JobStatus.RUNNING))


def test_prune_deletes_no_more_than_it_may_however_it_is_planned(
    store: PostgresStore, postgres_url: str, admin: psycopg.Connection
) -> None:
    """A small table that the server knows well had the jobs looked for again after each that was deleted."""
    put(store, *(new_job(f"past{n}") for n in range(20)))
    admin.execute(f"DELETE FROM {schema_of(postgres_url)}.jobs")
    admin.execute(f"ANALYZE {schema_of(postgres_url)}.jobs")
    ids = [f"j{n}" for n in range(20)]
    put(store, *(new_job(id) for id in ids))
    store.cancel(ids)
    assert store.prune(-1, limit=5) == 5


def plan_of_page(url: str, filter: Filter) -> str:
    step = page_step(Session(Statements(schema_of(url)), None), filter, 9, 9)
    with closing(Connections(Address.parse(url)).open()) as connection:
        return str(connection.execute(b"EXPLAIN " + step.query, step.values).fetchall())


def test_jobs_of_a_tag_are_found_by_its_index(store: PostgresStore, postgres_url: str) -> None:
    """A million others are not looked at, whatever else is asked for."""
    put(store, *(new_job(id, tags=("a",)) for id in "abc"))
    for filter in (Filter(tag="a"), Filter(tag="a", status=JobStatus.FAILED, type="t", queue="q")):
        plan = plan_of_page(postgres_url, filter)
        assert "Index Only Scan Backward using tagged_pkey" in plan
        assert "jobs_pkey" in plan


def test_the_last_failures_are_found_by_the_index_on_when_they_failed(
    store: PostgresStore, postgres_url: str
) -> None:
    """A million others are not sorted."""
    put(store, new_job("a"))
    query = Statements(schema_of(postgres_url))("failures")
    with closing(Connections(Address.parse(postgres_url)).open()) as connection:
        # Why off: of an empty table any plan will do.
        for other in ("sort", "seqscan", "bitmapscan"):
            connection.execute(f"SET enable_{other} = off")
        plan = str(connection.execute(b"EXPLAIN " + query, {"head": 300, "limit": 10}).fetchall())
    assert "Index Scan Backward using jobs_failed_at" in plan, plan


def test_check_says_what_it_is_and_how_durable(store: PostgresStore, postgres_url: str) -> None:
    said = "\n".join(store.check())
    assert said.startswith("PostgreSQL ")
    assert schema_of(postgres_url) in said
    assert "clock" in said


# Lost connections


def end_sessions(admin: psycopg.Connection, application: str = "jobpipe") -> int:
    rows = admin.execute(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = %s",
        [application],
    ).fetchall()
    return len(rows)


def test_ended_sessions_are_replaced_without_anybody_noticing(
    postgres_url: str, admin: psycopg.Connection
) -> None:
    with closing(PostgresStore(f"{postgres_url}&application_name=of-this-test")) as store:
        store.migrate()
        put(store, new_job("a"))
        for _ in range(3):
            assert end_sessions(admin, "of-this-test") >= 1
            claim = take_one(store)
            assert end_sessions(admin, "of-this-test") >= 1
            assert store.release([claim.lease]) == [True]


def test_watch_whose_session_was_ended_says_so_and_listens_again(
    store: PostgresStore, postgres_url: str, admin: psycopg.Connection
) -> None:
    """Fault 16."""
    with (
        closing(PostgresStore(f"{postgres_url}&application_name=ear")) as other,
        closing(other.watch(News.WORK)) as watch,
    ):
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(watch.wait, LIMIT)
            assert end_sessions(admin, "ear") == 1
            with pytest.raises(StoreAwayError):
                waiting.result()
        assert watch.wait(0.01), "what happened meanwhile is not known: it may be anything"
        assert not watch.wait(0.01)
        put(store, new_job("a"))
        assert watch.wait(LIMIT)


def test_store_goes_on_after_the_server_crashed(own_postgres: PostgresServer) -> None:
    """Fault 16: an immediate stop, and nothing that was accepted or settled is lost."""
    with closing(PostgresStore(own_postgres.url)) as store, closing(store.watch(News.WORK)) as watch:
        store.migrate()
        put(store, new_job("a"), new_job("b"))
        assert finish(store, take_one(store), result=1)
        while watch.wait(0.01):
            pass
        own_postgres.stop("immediate")
        for verb in (lambda: put(store, new_job("c")), lambda: store.get("a"), lambda: watch.wait(5)):
            with pytest.raises(StoreAwayError):
                verb()
        began_at = time.monotonic()
        with pytest.raises(StoreAwayError):
            store.counts()
        assert time.monotonic() - began_at < 5, "who asks is told at once"
        own_postgres.start()
        assert look(store, "a").status is JobStatus.DONE
        assert watch.wait(5)
        assert [claim.id for claim in take(store, 5)] == ["b"]
        put(store, new_job("c"))
        assert watch.wait(LIMIT)


def test_server_that_is_not_there_is_away(tmp_path: object) -> None:
    with closing(PostgresStore(f"postgresql://me:s3cret@/nowhere?host={tmp_path}")) as store:
        for verb in (store.migrate, store.check, lambda: store.get("a"), lambda: store.watch(News.WORK)):
            with pytest.raises(StoreAwayError) as caught:
                verb()
            assert "s3cret" not in str(caught.value)


def test_role_that_is_not_let_in_is_refused(postgres: str) -> None:
    with (
        closing(PostgresStore(postgres.replace("postgres@", "nobody@"))) as store,
        pytest.raises(StoreRefusedError, match="nobody"),
    ):
        store.migrate()


def test_closed_store_says_so(store: PostgresStore) -> None:
    store.close()
    with pytest.raises(StoreError, match="was closed"):
        store.get("a")


# Many at once


def test_handle_has_no_more_connections_than_it_may(postgres_url: str, admin: psycopg.Connection) -> None:
    with closing(PostgresStore(f"{postgres_url}&application_name=crowd")) as store:
        store.migrate()
        together([lambda: store.page(Filter(), 10) for _ in range(20)])
        query = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'crowd'"
        ((count,),) = admin.execute(query).fetchall()
        assert 1 <= count <= MOST


def test_to_ask_whether_it_is_ready_costs_next_to_nothing(
    store: PostgresStore, admin: psycopg.Connection
) -> None:
    """What others do with the journal is not waited for, and nothing is made of it."""
    put(store, new_job("a"))
    schema = schema_of(store.url)
    before = admin.execute(f"SELECT count(*) FROM {schema}.journal").fetchone()
    assert before is not None
    assert before[0] > 0
    pipe = Jobpipe(store)
    try:
        asyncio.run(pipe.gateway.probe())
    finally:
        pipe.close()
    assert admin.execute(f"SELECT count(*) FROM {schema}.journal").fetchone() == before


@pytest.mark.parametrize("begin", [None, 0])
def test_crossing_transactions_are_done_again_and_reach_nobody(
    store: PostgresStore, begin: int | None
) -> None:
    """Settlements, extensions and cancellations of the same jobs in all orders at once; and begins, of those ahead."""
    ids = [f"j{n}" for n in range(60)]
    put(store, *(new_job(id, max_retries=50) for id in ids))
    claims = store.claim("w1", ["work"], 60, 60, (), begin).claims

    def settle(step: int) -> None:
        for claim in claims[::step]:
            store.settle([Settlement(claim.lease, Outcome(move=Move.SUCCEED))])

    def extend(step: int) -> None:
        for _ in range(10):
            store.extend([claim.lease for claim in claims[::step]], 60)

    def cancel(step: int) -> None:
        for _ in range(5):
            store.cancel(ids[::step])

    def start(step: int) -> None:
        for _ in range(5):
            store.begin([claim.lease for claim in claims[::step]], [0.0] * len(claims))

    verbs = (settle, extend, cancel, start)
    calls = [lambda step=step, verb=verb: verb(step) for step in (1, -1) for verb in verbs]
    together(calls)
    assert {look(store, id).status for id in ids} <= {JobStatus.DONE, JobStatus.CANCELLED}
    for job in (look(store, id) for id in ids):
        assert len(job.history) == job.attempts
        assert job.attempts == 1 or (begin == 0 and job.status is JobStatus.CANCELLED)


@pytest.mark.parametrize("verb", ["begin", "settle", "release", "extend", "progress", "cool"])
def test_leased_jobs_are_looked_up_by_id_though_the_plan_was_made_for_a_few(
    store: PostgresStore, postgres_url: str, verb: str
) -> None:
    """A plan is made once for a connection; one that goes through all leases for each job takes seconds later."""
    put(store, new_job("a"))
    one = {"ids": ["a"], "tokens": ["b"], "statuses": ["done"], "given_back": [0], "delays": [None]}
    values = {
        **one,
        "errors": [None],
        "progress": [None],
        "results": [None],
        "keys": [None],
        "started_at": [0.0],
    }
    seconds = [1.0] if verb == "cool" else 1.0
    query = Statements(schema_of(postgres_url))(verb)
    with closing(Connections(Address.parse(postgres_url)).open()) as connection:
        told = {**values, "seconds": seconds, "kept": 10, "now": None, "channel": "a"}
        plan = str(connection.execute(b"EXPLAIN " + query, told).fetchall())
    assert "jobs_id_key" in plan
    assert "jobs_leased" not in plan
