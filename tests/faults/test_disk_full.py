"""A disk without room: nothing is half-written, reads go on, and so does everything when there is room again."""

from __future__ import annotations

import resource
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from ..support.waiting import eventually
from .programs import Program, Start, jobpipe

BIG = "x" * 60_000


def enqueue_until_full(service: Program, prefix: str, payload: str) -> list[str]:
    """The ids that were accepted before the first 503."""
    accepted: list[str] = []
    for n in range(200):
        job = {"id": f"{prefix}{n}", "type": "mark", "payload": payload, "delay": 3600}
        answer = service.http.post("/enqueue", json=job)
        if answer.status_code == 503:
            assert answer.json()["title"] == "The store is unavailable"
            assert "Retry-After" in answer.headers
            return accepted
        assert answer.status_code == 202, answer.text
        accepted.append(f"{prefix}{n}")
    raise AssertionError("it never was full")


def go_through_it(service: Program, fill: Callable[[], object], make_room: Callable[[], object]) -> None:
    """Fill the disk of a service that runs jobs, and make room again."""
    early = service.enqueue("mark", "early")
    service.all_done([early])
    soon = service.enqueue("mark", "soon", delay=2)
    due_at = datetime.fromisoformat(service.job(soon)["run_at"])
    fill()
    accepted = enqueue_until_full(service, "big", BIG) + enqueue_until_full(service, "small", "")
    eventually(lambda: datetime.now(UTC) > due_at)
    # It came due while nothing could be written: reads go on all the same.
    paths = ["/health", "/jobs", "/stats", "/queues", "/metrics"]
    for path in [*paths, *(f"/jobs/{id}" for id in [early, soon, *accepted]), f"/jobs/{soon}/explain"]:
        answer = service.http.get(path)
        assert answer.status_code == 200, (path, answer.text)
    assert service.get("/jobs?limit=500")["next_cursor"] is None
    assert len(service.get("/jobs?limit=500")["jobs"]) == 2 + len(accepted)
    make_room()
    late = [f"late{n}" for n in range(3)]

    def is_accepted(id: str) -> bool:
        answer = service.http.post("/enqueue", json={"id": id, "type": "mark", "payload": id})
        return answer.status_code in (200, 202)

    for id in late:
        eventually(partial(is_accepted, id), id)
    assert [job["attempts"] for job in service.all_done([soon, *late])] == [1] * 4
    assert all(service.job(id)["status"] == "scheduled" for id in accepted)
    assert service.get("/stats")["scheduled"] == len(accepted)


def assert_is_sound(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_a_file_that_may_not_grow_is_a_store_that_is_away(start: Start) -> None:
    """Fault 19, disk full: by a limit on the size of files."""
    service = start.serve("--lease", "5")
    pid = service.child()
    no_limit = resource.prlimit(pid, resource.RLIMIT_FSIZE)

    def fill() -> None:
        grown = max(path.stat().st_size for path in start.folder.glob("jobs.db*"))
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (grown + 300_000, no_limit[1]))

    go_through_it(service, fill, lambda: resource.prlimit(pid, resource.RLIMIT_FSIZE, no_limit))
    assert service.child() == pid
    assert_is_sound(start.database)


def test_a_full_disk_is_a_store_that_is_away(start: Start) -> None:
    """Fault 19, disk full: by a small disk of the service's own."""
    disk = start.folder / "disk"
    disk.mkdir()
    mount = f"mount -t tmpfs -o size=4m tmpfs {disk}"
    unshare = shutil.which("unshare")
    if unshare is None or subprocess.run([unshare, "-m", "sh", "-c", mount], capture_output=True).returncode:
        pytest.skip("needs the right to mount")
    command = jobpipe("serve", "app:pipe", "--store", f"sqlite:///{disk}/jobs.db")
    # Why in a namespace: nobody else sees the disk, and it is gone with the process.
    service = start.command([unshare, "-m", "sh", "-c", f'{mount} && exec "$@"', "sh", *command])
    assert service.url
    seen = Path(f"/proc/{service.child()}/root{disk}")
    filler = seen / "filler"

    def fill() -> None:
        with filler.open("wb") as file:
            file.write(b"x" * 2_000_000)

    go_through_it(service, fill, filler.unlink)
    for file in seen.glob("jobs.db*"):
        shutil.copy(file, start.folder)
    assert_is_sound(start.database)
