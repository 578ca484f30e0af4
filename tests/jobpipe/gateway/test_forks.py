"""A process that is forked from one that uses a pipe: what was opened before is refused, and told how to do it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")

BEGIN = """
import asyncio, contextlib, gc, os, sys, threading, warnings
from jobpipe import Jobpipe
from jobpipe.stores import open_store

warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
pipe = Jobpipe({store})


def in_child(what):
    pid = os.fork()
    if pid:
        _, status = os.waitpid(pid, 0)
        print("child", os.waitstatus_to_exitcode(status), flush=True)
        return
    try:
        print(what(), flush=True)
    except Exception as error:
        print(f"{{type(error).__name__}}: {{error}}", flush=True)
    gc.collect()
    os._exit(0)


async def result_of(id):
    async with pipe, pipe.running():
        return (await pipe.wait(id)).result
"""

REFUSED = "RuntimeError: {} was opened before this process was forked, and belongs to its parent: "


def printed(program: str, folder: Path, store: str = '"sqlite:///jobs.db"') -> list[str]:
    command = [sys.executable, "-W", "error::ResourceWarning", "-c", BEGIN.format(store=store) + program]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=50, check=False)
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stderr + ended.stdout
    return ended.stdout.splitlines()


@pytest.mark.parametrize("store", ['"sqlite:///jobs.db"', 'open_store("sqlite:///jobs.db")', '"memory://"'])
def test_a_child_does_not_use_what_its_parent_has_opened(store: str, tmp_path: Path) -> None:
    """Whatever it asks for, and whatever another thread of the parent was doing. The parent goes on."""
    program = """
def hold():
    with pipe._lazy_store._opening:
        began.set()
        go.wait()


pipe.enqueue_sync("echo", "there", id="a")
began, go = threading.Event(), threading.Event()
thread = threading.Thread(target=hold)
thread.start()
began.wait()
in_child(lambda: pipe.enqueue_sync("echo"))
in_child(lambda: asyncio.run(pipe.enqueue("echo")))
in_child(lambda: asyncio.run(result_of("a")))
in_child(lambda: pipe.close())
go.set()
thread.join()
print(asyncio.run(result_of("a")))
with contextlib.closing(pipe.store):  # Why: a store that was given is not the pipe's to close
    pipe.close()
"""
    lines = printed(program, tmp_path, store)
    refused = REFUSED.format("the store of the pipe")
    assert [line.startswith(refused) for line in lines] == [*[True, False] * 3, *[False] * 3]
    assert "pipe.close()" in lines[0]
    assert [line for line in lines if not line.startswith(refused)] == [
        *["child 0"] * 3,
        "None",
        "child 0",
        "there",
    ]


def test_a_store_is_refused_also_without_its_pipe(tmp_path: Path) -> None:
    """To read, to write, and in a child of the child."""
    program = """
store = open_store("sqlite:///jobs.db")
store.migrate()
store.get("a")
in_child(lambda: store.get("a"))
in_child(lambda: store.pause("q"))
in_child(lambda: in_child(lambda: store.get("a")))
in_child(lambda: store.close())
print(store.get("a"))
store.close()
"""
    refused = REFUSED.format(f"the store {tmp_path}/jobs.db")
    lines = ["refused" if line.startswith(refused) else line for line in printed(program, tmp_path)]
    assert lines == [
        *("refused", "child 0", "refused", "child 0"),
        *("refused", "child 0", "None", "child 0"),
        *("None", "child 0"),
        "None",
    ]


def test_a_pipe_that_is_not_open_is_opened_by_each_process(tmp_path: Path) -> None:
    """It was never used, or was closed before the fork."""
    program = """
def work(id):
    pipe.enqueue_sync("echo", id, id=id)
    return asyncio.run(result_of(id))


in_child(lambda: work("a"))
pipe.enqueue_sync("echo", 1, id="b")
pipe.close()
in_child(lambda: work("c"))
in_child(lambda: asyncio.run(result_of("b")))
print(asyncio.run(result_of("a")), asyncio.run(pipe.stats()).done)
pipe.close()
"""
    lines = printed(program, tmp_path)
    assert lines == ["a", "child 0", "c", "child 0", "1", "child 0", "a 3"]
