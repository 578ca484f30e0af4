"""The pytest plugin, in a pytest of its own, as in a project of a user."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import pytest

NAME = "rate_envelope_queue"
MODULE = "rate_envelope_queue.pytest_plugin"
PYPROJECT = Path(__file__).parent.parent / "pyproject.toml"

USERS_TEST = """
import asyncio

from rate_envelope_queue import AsyncRateEnvelopeQueue, Envelope, RateEnvelopeQueue
from rate_envelope_queue.testing import AsyncManualClock, ManualClock

seen = []


def test_threads(manual_clock):
    assert type(manual_clock) is ManualClock
    with RateEnvelopeQueue("q", workers=1, clock=manual_clock) as queue:
        queue.send(Envelope(lambda ctx, envelope: None, interval=3600))
        manual_clock.advance("3 days")
        assert queue.stats().done == 73
    seen.append(manual_clock)


def test_asyncio(async_manual_clock):
    assert type(async_manual_clock) is AsyncManualClock

    async def nothing(ctx, envelope): ...

    async def main():
        async with AsyncRateEnvelopeQueue("q", workers=1, clock=async_manual_clock) as queue:
            await queue.send(Envelope(nothing, interval=3600))
            await async_manual_clock.advance("3 days")
            assert queue.stats().done == 73

    asyncio.run(main())


def test_each_test_has_a_clock_of_its_own(manual_clock):
    assert manual_clock.now() == 0
    assert manual_clock is not seen[0]
"""


KIT_TEST = """
from jobpipe import Jobpipe

pipe = Jobpipe("sqlite:////nowhere/at/all/jobs.db")


@pipe.job
def double(n: int) -> int:
    return 2 * n


def test_a_block_until_the_end_of_the_test(jobpipe_testing):
    jobs = jobpipe_testing(pipe, workers=2)
    double.enqueue_sync(4)
    assert [job.result for job in jobs.drain_sync()] == [8]


def test_the_next_begins_anew(jobpipe_testing):
    assert pipe.__dict__.get("settings") is None
    assert jobpipe_testing(pipe).all == []
"""


def run_pytest(folder: Path, plugin: str, *arguments: str) -> str:
    """What a pytest says that has no plugin but this one, whatever is installed."""
    options = ("-p", plugin, "-p", "no:cacheprovider", "-W", "error", *arguments)
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""}
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", *options],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    return ended.stdout + ended.stderr


def test_the_fixtures_are_clocks_that_drive_their_queue(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(USERS_TEST, encoding="utf-8")
    said = run_pytest(tmp_path, MODULE, "-q")
    assert "3 passed" in said, said


def test_the_fixture_of_the_test_kit_lasts_as_long_as_the_test(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(KIT_TEST, encoding="utf-8")
    said = run_pytest(tmp_path, MODULE, "-q")
    assert "2 passed" in said, said


def test_the_entry_point_is_enough(tmp_path: Path) -> None:
    """An installed package needs no more: pytest knows the plugin by its name."""
    if not entry_points(group="pytest11", name=NAME):
        pytest.skip("the package was installed before it had the entry point: install it again")
    (tmp_path / "test_mine.py").write_text(USERS_TEST, encoding="utf-8")
    said = run_pytest(tmp_path, NAME, "-q")
    assert "3 passed" in said, said


def test_the_entry_point_names_the_plugin() -> None:
    project = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {NAME: MODULE}


def test_the_fixtures_are_documented(tmp_path: Path) -> None:
    said = run_pytest(tmp_path, MODULE, "--fixtures", "-q")
    assert "time for the thread queue that moves only by `advance`" in said
    assert "time for the asyncio queue that moves only by `await advance(...)`" in said
    assert "as `with pipe.testing() as jobs`, until the end of the test" in said


def test_loading_the_plugin_loads_neither_the_clocks_nor_asyncio() -> None:
    """Every pytest that has the package installed pays for what the plugin imports."""
    code = f"""
import sys, pytest
before = set(sys.modules)
import {MODULE}
print(*sorted({{"asyncio", "rate_envelope_queue.testing", "rate_envelope_queue.aio"}} & (set(sys.modules) - before)))
"""
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=50, check=True
    )
    assert ended.stdout.strip() == ""
