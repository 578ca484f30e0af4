"""How a pipe is set up: what the constructor, the environment and a file say, and which store it gets."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from jobpipe import (
    BadInputError,
    Jobpipe,
    JobRequest,
    QueueFullError,
    SettingsError,
    StoreRefusedError,
)
from jobpipe.stores.base import Receipt
from jobpipe.stores.memory import MemoryStore
from jobpipe.testing.tools import put

from .conftest import On


def test_the_constructor_sets_and_the_environment_wins(
    away_from_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Jobpipe().settings.store == "sqlite:///jobpipe.db"
    assert Jobpipe("memory://", workers=9).settings.workers == 9
    monkeypatch.setenv("JOBPIPE_STORE", "sqlite:///env.db")
    monkeypatch.setenv("WORKERS", "7")
    settings = Jobpipe("memory://", workers=9, queue_size=5).settings
    assert (settings.store, settings.workers, settings.queue_size) == ("sqlite:///env.db", 7, 5)


@pytest.mark.parametrize("connected", [False, True])
def test_the_bound_of_the_environment_is_not_for_programs(
    away_from_home: Path, monkeypatch: pytest.MonkeyPatch, connected: bool
) -> None:
    monkeypatch.setenv("QUEUE_SIZE", "1")
    url = "sqlite:///jobs.db"

    def put(pipe: Jobpipe) -> list[Receipt]:
        with closing(pipe), closing(sqlite3.connect("jobs.db")) as connection:
            _ = pipe.store
            batches = [[JobRequest(queue=queue)] * 3 for queue in ("a", "b")]
            given = {"connection": connection} if connected else {}
            return [receipt for batch in batches for receipt in pipe.enqueue_many_sync(batch, **given)]

    assert len(put(Jobpipe(url))) == 6
    flagged = Jobpipe(url, queue_size=0)
    flagged.configure(queue_size="2")
    for bounded in (Jobpipe(url, queue_size=2), flagged):
        with pytest.raises(QueueFullError, match=r"of 2 jobs"):
            put(bounded)


def test_an_env_file_wins_over_the_constructor_and_a_flag_over_everything(
    away_from_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (away_from_home / ".env").write_text("WORKERS=3\nQUEUE_SIZE=30\nJOBPIPE_LEASE=3\n")
    monkeypatch.setenv("QUEUE_SIZE", "20")
    monkeypatch.setenv("JOBPIPE_LEASE", "2")
    pipe = Jobpipe("memory://", workers=9, queue_size=9, lease=9, grace=9)
    pipe.configure(lease=1, workers=None)
    settings = pipe.settings
    assert (settings.workers, settings.queue_size, settings.lease, settings.grace) == (3, 20, 1, 9)


def test_a_wrong_setting_is_named(away_from_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SettingsError, match=r"^colour is not a known setting"):
        _ = Jobpipe("memory://", colour="red").settings
    with pytest.raises(SettingsError, match=r"^workers must be"):
        _ = Jobpipe("memory://", workers=-1).settings
    with pytest.raises(SettingsError, match=r"^JOBPIPE_STORE"):
        _ = Jobpipe("nosuch://").store
    monkeypatch.setenv("QUEUE_SIZE", "many")
    with pytest.raises(SettingsError, match=r"^QUEUE_SIZE must be"):
        Jobpipe("memory://").enqueue_sync("echo")


def test_a_pipe_in_use_cannot_be_configured(away_from_home: Path) -> None:
    pipe = Jobpipe("memory://")
    pipe.enqueue_sync("echo")
    with pytest.raises(RuntimeError, match="already in use"):
        pipe.configure(workers=1)


def test_a_store_of_ones_own_is_used_and_never_closed(away_from_home: Path) -> None:
    class Own(MemoryStore):
        def close(self) -> None:
            raise AssertionError("it belongs to somebody else")

    store = Own()
    with closing(Jobpipe(store)) as pipe:
        pipe.enqueue_sync("echo", id="a")
    assert store.get("a") is not None


def test_a_store_that_is_refused_is_closed_unless_it_was_given(
    away_from_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Refused(MemoryStore):
        is_closed = False

        def migrate(self) -> list[str]:
            raise StoreRefusedError("it is too new")

        def close(self) -> None:
            self.is_closed = True

    opened, given = Refused(), Refused()
    monkeypatch.setattr("jobpipe.gateway.lazy_store.open_store", lambda _: opened)
    for pipe in (Jobpipe("memory://"), Jobpipe(given)):
        with pytest.raises(StoreRefusedError):
            _ = pipe.store
    assert (opened.is_closed, given.is_closed) == (True, False)


def test_the_default_store_is_a_file_in_the_working_folder(away_from_home: Path) -> None:
    with closing(Jobpipe()) as pipe:
        pipe.enqueue_sync("echo")
    assert (away_from_home / "jobpipe.db").is_file()


def test_defining_a_pipe_opens_nothing(away_from_home: Path) -> None:
    pipe = Jobpipe()

    @pipe.job
    def work() -> None: ...

    assert list(away_from_home.iterdir()) == []
    pipe.close()


def test_the_jobs_of_another_pipe_on_the_same_file_are_seen(sqlite_url: str) -> None:
    with closing(Jobpipe(sqlite_url)) as one, closing(Jobpipe(sqlite_url)) as other:
        one.enqueue_sync("echo", id="a")
        assert not other.enqueue_sync("echo", id="a").is_new
        put(other.store)


def test_the_environment_wins_over_a_store_object_too(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    given = MemoryStore()
    with closing(Jobpipe(given)) as pipe:
        assert pipe.store is given
    monkeypatch.setenv("JOBPIPE_STORE", f"sqlite:///{tmp_path}/jobs.db")
    with closing(Jobpipe(given)) as pipe:
        assert pipe.store.url.startswith("sqlite:")


def test_values_that_no_pipe_takes_are_named(on: On) -> None:
    with pytest.raises(BadInputError, match=r"store must be a URL .* got 5"):
        Jobpipe(5)  # type: ignore[arg-type]

    async def scenario(pipe: Jobpipe) -> None:
        with pytest.raises(
            BadInputError, match="timeout must be a number of seconds, or a timedelta, got '1'"
        ):
            await pipe.wait("a", "1")  # type: ignore[arg-type]
        with pytest.raises(BadInputError, match="request must be a ScheduleRequest"):
            await pipe.schedules.put("s", {"type": "echo"})  # type: ignore[arg-type]
        for verb in (pipe.schedules.pause, pipe.schedules.drop):
            with pytest.raises(BadInputError, match="name must be a string, got 5"):
                await verb(5)  # type: ignore[arg-type]

    on(scenario)
