"""The backend of Django's tasks. Its cases are in `django_cases`, and run in processes of their own (see `project.py`)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CASES = sorted((Path(__file__).parent / "django_cases").glob("cases_*.py"))
ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_cases(path: Path, request: pytest.FixtureRequest) -> None:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "JOBPIPE_"))}
    if "TEST_DJANGO_POSTGRES" in path.read_text(encoding="utf-8"):
        env["TEST_DJANGO_POSTGRES"] = request.getfixturevalue("postgres_url")
    unneeded = [
        f"-pno:{name}" for name in ("cacheprovider", "xdist", "schemathesis")
    ]  # the last takes a second
    command = [sys.executable, "-m", "pytest", "-q", *unneeded, str(path)]
    ended = subprocess.run(
        command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=120, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
