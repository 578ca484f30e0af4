"""Isolated jobs and the death of those above them: whoever is killed, no process of the service is left."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from ..support.waiting import eventually
from .programs import Program

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it looks into /proc")

APP = """
import ctypes, os, subprocess, sys, time
from jobpipe import Jobpipe

pipe = Jobpipe("sqlite:///jobs.db", port=0, lease=1, grace=1, queue_size=0, workers=2)

def note(*pids):
    with open("pids", "a") as file:
        file.write("".join(f"{pid}\\n" for pid in pids))

@pipe.job("stuck", isolate=True)
def stuck():
    started = subprocess.Popen([sys.executable, "-I", "-S", "-c", "import time; time.sleep(1000)"])
    note(os.getpid(), started.pid, os.getppid())
    ctypes.PyDLL(None).sleep(1000)  # in C, with the interpreter's lock

@pipe.job("pid")
def pid():
    return os.getpid(), os.getppid()
"""


def start(folder: Path, *flags: str) -> Program:
    (folder / "app.py").write_text(APP, encoding="utf-8")
    arguments = [sys.executable, "-m", "jobpipe", "serve", "app:pipe", *flags]
    return Program(arguments, folder, folder / "log")


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    program = start(tmp_path)
    try:
        yield program
    finally:
        program.close()
        for pid in processes_with(tmp_path):  # where the test has failed
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def noted(folder: Path, count: int) -> list[int]:
    """The processes that handlers have told of, as soon as there are so many."""
    file = folder / "pids"

    def found() -> list[int] | None:
        pids = file.read_text().split() if file.exists() else []
        return [int(pid) for pid in pids] if len(pids) >= count else None

    return eventually(found)


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def processes_with(folder: Path) -> dict[int, str]:
    """The commands of all processes whose working folder it is, by their numbers."""
    found = {}
    for each in Path("/proc").iterdir():
        if each.name.isdigit():
            try:
                if os.readlink(each / "cwd") == str(folder):
                    found[int(each.name)] = (each / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
    return found


@pytest.mark.parametrize("victim", ["worker", "supervisor"])
def test_kill_9_leaves_no_process(victim: str, program: Program, tmp_path: Path) -> None:
    for _ in range(2):
        program.enqueue("stuck")
    *pids, worker = noted(tmp_path, 6)
    if victim == "supervisor":
        program.kill()
        eventually(lambda: not processes_with(tmp_path), lambda: processes_with(tmp_path))
    else:
        os.kill(worker, signal.SIGKILL)
    eventually(lambda: all(map(is_gone, pids)), lambda: [pid for pid in pids if not is_gone(pid)])


def test_a_stop_leaves_no_process(program: Program, tmp_path: Path) -> None:
    program.enqueue("stuck")
    pids = noted(tmp_path, 3)
    program.signal(signal.SIGTERM)
    assert program.code() == 0
    assert all(map(is_gone, pids)), program.output
    assert processes_with(tmp_path) == {}


def test_all_types_can_be_isolated_by_a_flag(tmp_path: Path) -> None:
    program = start(tmp_path, "--isolate", "all")
    try:
        id = program.enqueue("pid")
        child, parent = eventually(lambda: program.get(f"/jobs/{id}")["result"])
        assert parent == program.child() != child
        assert program.enqueue("echo") is not None
    finally:
        program.close()
