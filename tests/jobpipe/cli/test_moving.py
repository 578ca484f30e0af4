"""`promote` as a command: moved whole, also in several goes, and never while somebody works on the source."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from jobpipe.stores import open_store

from .conftest import Start, call, call_json, call_process, terminal

OLD, NEW = "sqlite:///old.db", "sqlite:///new.db"


MANY = 12_000


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with many jobs, which takes a second to fill."""
    folder = tmp_path_factory.mktemp("filled")
    lines = [json.dumps({"id": f"j{n}", "payload": n, "delay": n % 2 * 3600}) for n in range(MANY)]
    (folder / "jobs.jsonl").write_text("\n".join(lines))
    call(
        "enqueue",
        "--file",
        f"{folder}/jobs.jsonl",
        "--store",
        f"sqlite:///{folder}/old.db",
        "--queue-size",
        "0",
    )
    return folder / "old.db"


@pytest.fixture
def many(filled: Path, folder: Path) -> int:
    """Jobs in the old store."""
    shutil.copy(filled, folder)
    return MANY


def waiting(url: str) -> int:
    store = open_store(url)
    store.migrate()
    try:
        return sum(tally.count for tally in store.counts().tallies)
    finally:
        store.close()


def test_jobs_and_schedules_are_moved_and_gone_from_the_source(many: int) -> None:
    call("schedules", "put", "tick", "--type", "echo", "--every", "60", "--store", OLD)
    call("pause", "default", "--store", OLD)
    assert call("promote", OLD, NEW) == f"{many:,} jobs and 1 schedule moved to {NEW}\n"
    assert (waiting(OLD), waiting(NEW)) == (0, many)
    assert [each["name"] for each in call_json("schedules", "--store", NEW)] == ["tick"]
    assert call_json("promote", OLD, NEW) == {"jobs": 0, "already": 0, "schedules": 0}


def test_a_move_that_was_killed_is_finished_by_the_next(many: int) -> None:
    """`kill -9` at some moment in the middle: nothing is lost, nothing doubled."""
    process = subprocess.Popen([sys.executable, "-m", "jobpipe", "promote", OLD, NEW])
    while process.poll() is None and not (os.path.exists("new.db") and waiting(NEW)):
        pass
    process.kill()
    process.wait()
    between = waiting(OLD)
    found = call_json("promote", OLD, NEW)
    assert found["jobs"] == between
    assert (waiting(OLD), waiting(NEW)) == (0, many)


def test_it_can_be_interrupted_and_says_how_far_it_got(many: int) -> None:
    with terminal("promote", OLD, NEW) as shown:
        shown.until(r"moving .*[1-9]\d*/12000")
        shown.process.send_signal(signal.SIGINT)
        code = shown.process.wait(30)
    if code:  # else it was quicker
        assert code == 130
    call("promote", OLD, NEW)
    assert (waiting(OLD), waiting(NEW)) == (0, many)


def test_a_source_that_is_worked_on_is_refused(many: int, start: Start) -> None:
    start("worker", "--store", OLD, "--lease", "6").line("working")
    refused = call_process("promote", OLD, NEW)
    assert refused.returncode == 1
    assert "is in use by the worker" in refused.stderr
    assert waiting(NEW) == 0


@pytest.mark.parametrize(
    ("urls", "words"),
    [
        ((OLD, OLD), "the same store"),
        ((OLD, "nowhere://x"), "nowhere"),
        ((OLD, "sqlite:///missing/x.db"), "missing"),
        (("sqlite:///missing.db", NEW), "missing.db"),
        ((OLD, "memory://"), "memory://"),
    ],
)
def test_what_cannot_be_moved_is_one_line(urls: tuple[str, str], words: str) -> None:
    call("migrate", "--store", OLD)
    called = call_process("promote", *urls)
    assert called.returncode in (1, 2)
    assert words in called.stderr
    assert called.stderr.count("\n") == 1


def test_check_asks_a_service_whether_it_is_ready(service: str) -> None:
    shown = call("check", "--url", service, "--token", "secret")
    assert shown.startswith(f"{service}: ready: the service has started and its store answers\n")
    assert "token" in call("check", "--url", service, "--token", "wrong", code=1)
