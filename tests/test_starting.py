"""A program that begins as a fork is what a real one is, to the test that starts it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from .support import starting
from .support.waiting import LIMIT

pytestmark = pytest.mark.skipif(not starting.CAN_FORK, reason="programs are not forked here")
JOBPIPE = [sys.executable, "-m", "jobpipe"]


def is_fork(process: subprocess.Popen[str]) -> bool:
    return b"forked.py" in Path(f"/proc/{process.pid}/cmdline").read_bytes()


@pytest.mark.parametrize(
    "arguments", [["--version"], ["nonsense"], ["jobs", "--store", "nosuch://\udc80"]], ids=" ".join
)
def test_it_prints_and_ends_as_a_real_one(arguments: list[str], tmp_path: Path) -> None:
    env = {**os.environ, "COLUMNS": "60"}
    fork = starting.run([*JOBPIPE, *arguments], cwd=tmp_path, env=env, timeout=LIMIT)
    real = subprocess.run(
        [*JOBPIPE, *arguments], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=LIMIT
    )
    assert (fork.returncode, fork.stdout, fork.stderr) == (real.returncode, real.stdout, real.stderr)


def test_it_reads_its_stdin_in_its_folder(tmp_path: Path) -> None:
    line = [*JOBPIPE, "enqueue", "echo", "--file", "-", "--json"]
    ended = starting.run(line, input='{"id": "one"}\n', cwd=tmp_path, timeout=LIMIT)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert (tmp_path / "jobpipe.db").exists()


def test_it_has_a_session_of_its_own_and_its_end_is_kept_until_somebody_asks(tmp_path: Path) -> None:
    with starting.popen(
        [*JOBPIPE, "enqueue", "echo", "--file", "-"],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        start_new_session=True,
    ) as process:
        assert is_fork(process)
        assert process.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.01)
        assert os.getsid(process.pid) == process.pid
        process.kill()
        assert process.stderr is not None
        assert process.stderr.read() == b""
        os.kill(process.pid, 0)  # it is a zombie, as a child that nobody has waited for
        assert process.wait(LIMIT) == -signal.SIGKILL
        with pytest.raises(ProcessLookupError):
            os.kill(process.pid, 0)


@pytest.mark.real
def test_a_test_that_is_marked_gets_real_ones(tmp_path: Path) -> None:
    line = [*JOBPIPE, "enqueue", "echo", "--file", "-"]
    with starting.popen(line, stdin=subprocess.PIPE, cwd=tmp_path) as process:
        assert not is_fork(process)
        process.kill()


def test_a_shell_has_it_as_a_command(tmp_path: Path) -> None:
    script = f"{starting.shell_command()} --version | cat; {starting.shell_command()} nonsense"
    ended = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT
    )
    assert ended.returncode == 2
    assert ended.stdout.startswith("jobpipe ")
    assert "nonsense" in ended.stderr


def test_it_finds_what_its_path_leads_to(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "found.py").write_text("from jobpipe import Jobpipe\npipe = Jobpipe()\n")
    env = {**os.environ, "PYTHONPATH": str(tmp_path / "elsewhere")}
    command = [*JOBPIPE, "enqueue", "echo", "--app", "found:pipe"]
    with starting.popen(command, cwd=tmp_path, env=env, stdout=subprocess.PIPE, text=True) as process:
        assert is_fork(process)
        assert process.communicate(timeout=LIMIT)[0]
    assert process.returncode == 0
