"""The types of the public API, tested as an API: mypy and pyright read what users write."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "typing"


def check(*command: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *command], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.timeout(300)
def test_mypy_is_content_with_what_users_write(tmp_path: Path) -> None:
    check("mypy", "--strict", "--cache-dir", str(tmp_path), "--config-file", "", str(FOLDER))


@pytest.mark.timeout(300)
def test_pyright_is_content_with_what_users_write() -> None:
    check("pyright", "--pythonpath", sys.executable, str(FOLDER / "as_users_write.py"))
