"""The types of the public API, tested as an API: mypy and pyright read what users write in `typing/`.

A file there asserts the types that come out (`assert_type`), or holds calls that must be errors: each has a
`type: ignore`, and one that stops being an error leaves its ignore unused, which both checkers refuse.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "typing"
PYTHON = "3.11"
PYRIGHT = {
    "include": ["user"],
    "typeCheckingMode": "strict",
    "reportUnnecessaryTypeIgnoreComment": "error",
    "pythonVersion": PYTHON,
}
TAKES_LONG = pytest.mark.timeout(300)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of a user: these files and nothing of ours, so that the package is found as it is installed."""
    shutil.copytree(FOLDER, tmp_path / "user", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(PYRIGHT), encoding="utf-8")
    return tmp_path


def run(project: Path, checker: str, *options: str) -> str:
    """What the checker says, its findings first; empty if it is content."""
    command = [sys.executable, "-m", checker, *options]
    ended = subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=280, check=False)
    return ended.stdout + ended.stderr if ended.returncode else ""


def mypy(project: Path) -> str:
    options = ("--strict", "--config-file=", "--cache-dir=/dev/null", f"--python-version={PYTHON}", "user")
    return run(project, "mypy", *options)


def pyright(project: Path) -> str:
    if find_spec("pyright") is None:
        pytest.skip("PYRIGHT IS NOT INSTALLED, half of the types are not tested: pip install pyright")
    bad_input = run(project, "pyright", "--project", ".", "--pythonpath", sys.executable)
    if bad_input and "error:" not in bad_input:
        pytest.skip(f"PYRIGHT DOES NOT RUN (it needs Node, or to download it): {bad_input[-300:]}")
    return bad_input


WRONG = """
from typing import assert_type
from rate_envelope_queue import Rate, RateEnvelopeQueue

assert_type(RateEnvelopeQueue("q", workers=1).name, int)
Rate(5)  # type: ignore[arg-type]
"""


@TAKES_LONG
@pytest.mark.parametrize("checker", [mypy, pyright], ids=["mypy", "pyright"])
def test_checker_is_content_with_what_users_write_but_for_what_is_wrong(
    project: Path, checker: Callable[[Path], str]
) -> None:
    """A wrong type and a needless ignore are found: it can see the package, and can complain. Why at once: it takes seconds."""
    (project / "user" / "wrong.py").write_text(WRONG, encoding="utf-8")
    found = [line for line in checker(project).splitlines() if "error:" in line]
    assert [line for line in found if "wrong.py:" not in line] == []
    for number in (5, 6):
        assert any(f"wrong.py:{number}:" in line for line in found), found
