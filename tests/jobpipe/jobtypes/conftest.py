"""The settings of the developer are not those of the tests."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def no_settings(away_from_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JOBPIPE_HTTP_TARGETS", raising=False)
