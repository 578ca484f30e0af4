"""Isolated types in a program of one's own: the child imports the module of the handler, wherever the program found it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from ....support.waiting import LIMIT

JOBS = """
import os
from jobpipe import Jobpipe

pipe = Jobpipe("memory://", workers=1)

@pipe.job("work", isolate=True)
def work():
    return os.getpid()
"""
MAIN = """
import asyncio, os, sys
{start}

async def main():
    async with pipe, pipe.running():
        receipt = await pipe.enqueue("work")
        job = await pipe.wait(receipt.id)
        print(job.status, job.result != os.getpid(), job.error)

asyncio.run(main())
"""


def run(folder: Path, start: str) -> subprocess.CompletedProcess[str]:
    (folder / "lib").mkdir()
    (folder / "lib" / "jobs.py").write_text(JOBS, encoding="utf-8")
    (folder / "main.py").write_text(MAIN.format(start=start), encoding="utf-8")
    return subprocess.run(
        [sys.executable, "main.py"], cwd=folder, capture_output=True, text=True, timeout=LIMIT, check=False
    )


def test_the_child_finds_modules_where_the_program_does(tmp_path: Path) -> None:
    ended = run(tmp_path, 'sys.path.insert(0, "lib")\nfrom jobs import pipe')
    assert (ended.stdout, ended.stderr) == ("done True None\n", "")


def test_a_handler_in_the_main_program_is_refused(tmp_path: Path) -> None:
    ended = run(tmp_path, JOBS)
    assert ended.returncode == 1
    assert "SettingsError: isolate (JOBPIPE_ISOLATE) cannot be had for the type 'work'" in ended.stderr
