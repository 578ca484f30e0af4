"""What the soak measures with, and a short round of it: `make soak` goes on for longer."""

from __future__ import annotations

import math
import os
import random
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from .gauges import MIB, Gauge, Gauges
from .service import SIZES

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it looks into /proc")


def memory(*readings: float) -> Gauge:
    return Gauge("m", "memory", [50 * MIB + MIB * each for each in readings])


RNG = random.Random(7)
FLAT = {
    "noise": memory(*(RNG.uniform(-5, 5) for _ in range(200))),
    "a warm-up": memory(*(min(n, 60) for n in range(200))),
    "up and down": memory(*(20 * math.sin(n / 3) for n in range(200))),
    "one peak": memory(*(30 if n == 195 else 0 for n in range(200))),
}
GROWING = {
    "evenly": memory(*(n / 5 for n in range(200))),
    "with noise": memory(*(n / 5 + RNG.uniform(-5, 5) for n in range(200))),
    "in one step, late": memory(*(0 if n < 150 else 12 for n in range(200))),
    "a saw that rises": memory(*(n % 20 + n / 5 for n in range(200))),
    "threads": Gauge("t", "threads", [4 + n // 5 for n in range(100)]),
}


@pytest.mark.parametrize("name", FLAT)
def test_what_stays_or_comes_back_does_not_grow(name: str) -> None:
    assert not FLAT[name].grows


@pytest.mark.parametrize("name", GROWING)
def test_what_only_goes_up_grows(name: str) -> None:
    assert GROWING[name].grows


def test_own_process_is_read_from_the_system() -> None:
    gauges = Gauges()
    with open(os.devnull) as _, open(os.devnull) as _:
        gauges.read_process("me", os.getpid())
    gauges.read_process("me", os.getpid())
    is_over = threading.Event()
    other = threading.Thread(target=is_over.wait)
    other.start()
    gauges.read_process("me", os.getpid())
    is_over.set()
    other.join()
    readings = {gauge.name: gauge.readings for gauge in gauges.growing()}  # too few of them to tell
    files, threads = readings["me: files"], readings["me: threads"]
    assert files[0] == files[1] + 2
    assert threads[2] == threads[1] + 1
    assert all(MIB < each < 4_096 * MIB for each in readings["me: memory"])


def test_table_names_what_grows_and_what_nobody_can_tell() -> None:
    gauges = Gauges()
    for n in range(100):
        gauges.read("good", "threads", 4)
        gauges.read("bad", "threads", 4 + n)
    gauges.read("short", "threads", 4)
    assert [line.split() for line in gauges.table().splitlines()[1:]] == [
        ["good", "4", "4", "4", "100", "flat"],
        ["bad", "54", "94", "103", "100", "GROWS"],
        ["short", "4", "4", "4", "1", "TOO", "SHORT"],
    ]
    assert [gauge.name for gauge in gauges.growing()] == ["bad", "short"]


def test_nothing_stays_of_many_sends_through_the_library() -> None:
    """Fault 7, a short round of it, in a process of its own."""
    command = [sys.executable, "-m", "tests.soak.library", "100000"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.timeout(150)
@pytest.mark.parametrize("store", ["sqlite"])
def test_service_under_load_with_restarts_does_not_grow(store: str) -> None:
    """A short round: what leaks at every call or restart is seen already."""
    command = [
        sys.executable,
        "-m",
        "tests.soak",
        "--minutes",
        "0.2",
        "--sends",
        "0",
        "--store",
        store,
        "--seed",
        "7",
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing grows" in done.stdout


def test_every_store_of_the_histories_can_be_soaked() -> None:
    from ..histories.stages import STAGES

    assert STAGES.keys() == SIZES.keys()
