"""How long it takes to start: what imports add to an interpreter, `jobpipe --help`, and `jobpipe serve` until it is ready.

From compiled files, as where it is installed: they are in a cache of the benchmark's own, since the environment
may forbid Python to write any, and then every import would compile the package anew.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from socket import create_server
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, sleep

from .disk import scratch
from .harness import Case, Goal

_LOOK = 0.005  # seconds between two looks at whether the service is ready
_PATIENCE = 30.0
_STANDARD = "logging, dataclasses, concurrent.futures"


def cases(*, quick: bool) -> list[Case]:
    pairs = 5 if quick else 11
    return [
        Case(
            name="import",
            shows="a fresh interpreter that imports the package, less one that does not",
            unit="ms",
            ours=partial(_import, "rate_envelope_queue", pairs),
            peer=partial(_import, _STANDARD, pairs),
            peer_name=_STANDARD,
            ratio_of="ours/peer",
            goals=(Goal("<=", 1.3),),
        ),
        Case(
            name="import",
            row="and use a queue",
            shows="the same, where the queue and envelopes on threads are imported, too",
            unit="ms",
            ours=partial(_import, "rate_envelope_queue.threads", pairs),
            peer=partial(_import, _STANDARD, pairs),
            peer_name=_STANDARD,
            ratio_of="ours/peer",
        ),
        Case(
            name="startup",
            row="import jobpipe",
            shows="a fresh interpreter that imports the service, less one that does not",
            unit="ms",
            ours=partial(_import, "jobpipe", 3),
        ),
        Case(
            name="startup",
            row="jobpipe --help",
            shows="the whole command, from its start to its end",
            unit="ms",
            ours=partial(_help, 3),
            goals=(Goal("<=", 200, on="ours"),),
        ),
        Case(
            name="startup",
            row="jobpipe serve",
            shows="from the start of the command, with a new SQLite file, to the first 200 of /readyz",
            unit="ms",
            ours=_serve,
            goals=(Goal("<=", 500, on="ours"),),
        ),
    ]


def _import(package: str, pairs: int) -> float:
    """Milliseconds: the median difference of so many pairs."""
    with_it, without = ("-c", f"import {package}"), ("-c", "pass")
    with TemporaryDirectory() as cache:
        _seconds(with_it, cache)  # fills the cache
        return median(_seconds(with_it, cache) - _seconds(without, cache) for _ in range(pairs)) * 1000


def _help(times: int) -> float:
    """Milliseconds: the median of so many."""
    command = ("-m", "jobpipe", "--help")
    with TemporaryDirectory() as cache:
        _seconds(command, cache)
        return median(_seconds(command, cache) for _ in range(times)) * 1000


def _seconds(arguments: tuple[str, ...], cache: str) -> float:
    began = perf_counter()
    subprocess.run(
        (sys.executable, *arguments), env=_environment(cache), check=True, stdout=subprocess.DEVNULL
    )
    return perf_counter() - began


def _serve() -> float:
    """Milliseconds."""
    with scratch() as folder, TemporaryDirectory() as cache:
        _until_ready(folder / "first.db", cache)
        return _until_ready(folder / "second.db", cache) * 1000


def _until_ready(path: Path, cache: str) -> float:
    with create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = (sys.executable, "-m", "jobpipe", "serve", "--port", str(port), "--store", f"sqlite:///{path}")
    began = perf_counter()
    with subprocess.Popen(command, env=_environment(cache), stderr=subprocess.DEVNULL) as process:
        try:
            while not _is_ready(port):
                if process.poll() is not None or perf_counter() - began > _PATIENCE:
                    raise RuntimeError("the service does not become ready: this measurement is void")
                sleep(_LOOK)
            return perf_counter() - began
        finally:
            process.terminate()


def _is_ready(port: int) -> bool:
    connection = HTTPConnection("127.0.0.1", port, timeout=1)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def _environment(cache: str) -> Mapping[str, str]:
    settings = {name: value for name, value in os.environ.items() if not name.startswith("JOBPIPE_")}
    return {**settings, "PYTHONPYCACHEPREFIX": cache, "PYTHONDONTWRITEBYTECODE": ""}
