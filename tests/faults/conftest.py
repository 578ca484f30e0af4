"""Real processes of the real command, all of which are gone after the test."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from .programs import APP, Start

if sys.platform != "linux":
    collect_ignore_glob = ["test_*.py"]  # they look into /proc


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    (tmp_path / "app.py").write_text(APP)
    start = Start(tmp_path)
    try:
        yield start
    finally:
        start.close()
