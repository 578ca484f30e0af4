"""The file under a store: deleted, moved, replaced or truncated while it is in use; and who may read it."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from jobpipe import Jobpipe
from jobpipe.errors import StoreAwayError
from jobpipe.stores.base import News
from jobpipe.stores.sqlite import SqliteStore, file
from jobpipe.stores.sqlite import store as store_module
from jobpipe.testing.tools import new_job, put, take

from ...support.waiting import run

WAL = "jobs.db-wal"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    with closing(SqliteStore(tmp_path / "jobs.db")) as store:
        store.migrate()
        store.insert([[new_job(f"old{n}", payload=b'"%s"' % (b"x" * 5_000)) for n in range(20)]])
        yield store


def checkpoint(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def delete_all(path: Path) -> None:
    for each in path.parent.iterdir():
        each.unlink()


def replace(path: Path) -> None:
    shutil.copy(path, path.with_name("copy"))
    path.with_name("copy").replace(path)


def cut_in_half(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def test_workers_are_read_without_a_write(tmp_path: Path) -> None:
    """Who enqueues in a transaction of its own holds the lock that queueing a due job would wait for."""
    with closing(SqliteStore(tmp_path / "jobs.db")) as store:
        store.migrate()
        store.insert([[new_job("due", delay=0.001)]])
        with closing(sqlite3.connect(store.path, isolation_level=None)) as connection:
            connection.execute("UPDATE jobs SET run_at = 0")
            assert store.workers() == []
            assert connection.execute("SELECT status FROM jobs").fetchall() == [("scheduled",)]


def test_job_behind_one_that_an_older_program_has_ended_is_let_in(tmp_path: Path) -> None:
    with closing(SqliteStore(tmp_path / "jobs.db")) as store:
        store.migrate()
        put(store, new_job("runs", unique="name"))
        take(store)
        put(store, new_job("waits", unique="name"))
        assert take(store) == []
        with closing(sqlite3.connect(store.path, isolation_level=None)) as connection:
            connection.execute(
                "UPDATE jobs SET status = 'done', finished_at = 1, lease_until = NULL WHERE id = 'runs'"
            )
        assert take(store) == []
        store.rescue()
        assert [claim.id for claim in take(store)] == ["waits"]


LOSSES: dict[str, tuple[Callable[[Path], object], str]] = {
    "deleted": (delete_all, "deleted or moved away"),
    "moved": (lambda path: path.rename(path.with_name("elsewhere")), "deleted or moved away"),
    "replaced": (replace, "replaced by another file"),
    "emptied": (lambda path: os.truncate(path, 0), "truncated to 0 bytes"),
    "cut in half": (cut_in_half, "truncated to"),
    "without its log": (lambda path: path.with_name(WAL).unlink(), "deleted or moved away"),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_nothing_is_accepted_into_a_file_that_is_lost(store: SqliteStore, loss: str) -> None:
    lose, words = LOSSES[loss]
    checkpoint(store.path)
    store.get("old0")
    lose(store.path)
    for _ in range(2):
        with pytest.raises(StoreAwayError, match=words):
            store.insert([[new_job("new")]])
        with pytest.raises(StoreAwayError, match=words):
            store.get("old0")  # what a probe asks
        with pytest.raises(StoreAwayError, match=words):
            store.claim("w", ["work"], 1, 30)


def test_nothing_is_acknowledged_that_was_committed_to_a_lost_file(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is deleted between the look before the transaction and its commit."""
    monkeypatch.setattr(
        store_module, "reach", lambda mark: delete_all(store.path) if mark == "enqueue-inside" else None
    )
    with pytest.raises(StoreAwayError, match="may be lost"):
        store.insert([[new_job("new")]])


def test_nothing_is_acknowledged_if_the_file_is_lost_in_the_commit(store: SqliteStore) -> None:
    writer = store._connections._writer
    assert writer is not None
    writer.set_trace_callback(lambda statement: delete_all(store.path) if statement == "COMMIT" else None)
    with pytest.raises(StoreAwayError, match="may be lost"):
        store.insert([[new_job("new")]])


def test_nothing_is_committed_to_a_file_that_was_lost_before(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Put back, it does not hold what was refused."""
    away = store.path.with_name("away")
    monkeypatch.setattr(
        store_module, "reach", lambda mark: store.path.rename(away) if mark == "enqueue-inside" else None
    )
    with pytest.raises(StoreAwayError):
        store.insert([[new_job("new")]])
    away.rename(store.path)
    assert store.get("new") is None


def test_no_file_is_made_in_place_of_one_that_is_lost(store: SqliteStore) -> None:
    delete_all(store.path)
    looks: list[Callable[[], object]] = [
        store.counts,
        store.check,
        store.migrate,
        lambda: store.watch(News.WORK),
    ]
    for look in looks:
        with pytest.raises(StoreAwayError):
            look()
    assert list(store.path.parent.iterdir()) == []


def test_a_file_that_comes_back_goes_on(store: SqliteStore) -> None:
    away = store.path.with_name("away")
    store.path.rename(away)
    with pytest.raises(StoreAwayError):
        store.insert([[new_job("new")]])
    away.rename(store.path)
    store.insert([[new_job("new")]])
    assert store.get("new") is not None
    assert store.get("old0") is not None


def test_a_link_to_the_file_serves_until_it_leads_elsewhere(store: SqliteStore) -> None:
    link = store.path.with_name("link.db")
    link.symlink_to(store.path)
    with closing(SqliteStore(link)) as linked:
        linked.insert([[new_job("new")]])
        assert store.get("new") is not None
        link.unlink()
        with pytest.raises(StoreAwayError, match="deleted or moved away"):
            linked.insert([[new_job("newer")]])


def test_a_file_that_vacuum_made_smaller_is_whole(store: SqliteStore) -> None:
    checkpoint(store.path)
    store.counts()
    before = store.path.stat().st_size
    store.discard([f"old{n}" for n in range(1, 20)])
    with closing(sqlite3.connect(store.path)) as connection:
        connection.execute("VACUUM")
    checkpoint(store.path)
    assert store.path.stat().st_size < before
    store.insert([[new_job("new")]])
    assert store.get("new") is not None


def test_the_callers_connection_to_a_lost_file_is_refused(store: SqliteStore) -> None:
    with closing(sqlite3.connect(store.path)) as connection:
        delete_all(store.path)
        with pytest.raises(StoreAwayError, match="deleted"):
            store.insert_in(connection, [new_job("new")])


def test_an_embedded_pipe_says_that_its_file_is_gone(sqlite_url: str, away_from_home: Path) -> None:
    async def scenario() -> None:
        async with Jobpipe(sqlite_url) as pipe:
            await pipe.enqueue("echo", 1)
            delete_all(away_from_home / "jobs.db")
            with pytest.raises(StoreAwayError, match=r"jobs\.db was deleted .* put it back, or restart"):
                await pipe.enqueue("echo", 2)

    run(scenario())


@pytest.fixture
def lax_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, str]:
    return {each.name: oct(each.stat().st_mode & 0o777) for each in folder.iterdir()}


@pytest.mark.usefixtures("lax_umask")
def test_new_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    with closing(SqliteStore(tmp_path / "jobs.db")) as store:
        store.migrate()
        store.insert([[new_job("a")]])
        assert modes(tmp_path) == dict.fromkeys(("jobs.db", WAL, "jobs.db-shm"), "0o600")


@pytest.mark.usefixtures("lax_umask")
def test_a_file_that_is_there_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    path.touch(0o640)
    with closing(SqliteStore(path)) as store:
        store.migrate()
        store.insert([[new_job("a")]])
        assert modes(tmp_path) == dict.fromkeys(("jobs.db", WAL, "jobs.db-shm"), "0o640")


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with (
        closing(SqliteStore(tmp_path / "jobs.db")) as store,
        pytest.raises(StoreAwayError, match="cannot be made: Permission denied"),
    ):
        store.migrate()


def test_a_store_that_was_never_made_is_said_to_be_none(tmp_path: Path) -> None:
    with (
        closing(SqliteStore(tmp_path / "jobs.db")) as store,
        pytest.raises(StoreAwayError, match="there is no file"),
    ):
        store.counts()


def test_a_file_is_the_same_whichever_call_asks_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where statx is missing, or forbidden, os.stat stands in for it."""
    path = tmp_path / "jobs.db"
    path.write_bytes(b"x" * 4_321)
    found = file.identity_of(os.fsencode(path))
    assert found[0][0] == path.stat().st_ino
    assert found[1] == 4_321
    monkeypatch.setattr(file, "_statx", lambda *_: -1)
    assert file.identity_of(os.fsencode(path)) == found
    monkeypatch.setattr(file, "_statx", None)
    assert file.identity_of(os.fsencode(path)) == found
    with pytest.raises(FileNotFoundError):
        file.identity_of(os.fsencode(tmp_path / "none"))
