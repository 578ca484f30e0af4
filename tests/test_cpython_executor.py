"""CPython's own tests of executors, with the queue as the executor, where the interpreter ships them.

What they test of a ThreadPoolExecutor alone is skipped by name, with the reason. Some sleep for seconds: that is theirs.
"""

from __future__ import annotations

import gc
import unittest
from importlib import import_module
from typing import Any

import pytest

from rate_envelope_queue import RateEnvelopeQueue

PACKAGE = "test.test_concurrent_futures"

try:
    import_module(PACKAGE)
except ModuleNotFoundError:
    pytest.skip(f"this Python comes without {PACKAGE}", allow_module_level=True)

CASES = {
    "TestExecutor": ("test_thread_pool", "ThreadPoolExecutorTest"),
    "TestWait": ("test_wait", "ThreadPoolWaitTests"),
    "TestAsCompleted": ("test_as_completed", "AsCompletedTests"),
    "TestShutdown": ("test_shutdown", "ThreadPoolShutdownTest"),
}

_ITSELF = "makes a ThreadPoolExecutor itself"
_DAEMONS = "the workers of a queue are daemons: a program that ends does not wait for them"
_FIXED = "a queue has all its workers from its start, and no `_threads`"
LEFT_OUT = {
    "TestExecutor": {
        "test_default_workers": "a queue has no default for workers",
        "test_hang_global_shutdown_lock": _ITSELF,
        "test_idle_thread_reuse": _FIXED,
        "test_max_workers_negative": "the option is named workers, and so is it in the error",
        "test_saturation": _FIXED,
    },
    "TestShutdown": {
        "test_cancel_futures": "counts on a worker that has begun before the last submit; tests/threads/test_executor.py waits for one",
        "test_cancel_futures_wait_false": _ITSELF,
        "test_context_manager_shutdown": _ITSELF,
        "test_del_shutdown": _ITSELF,
        "test_hang_gh83386": _DAEMONS,
        "test_interpreter_shutdown": _DAEMONS,
        "test_shutdown_no_wait": _ITSELF,
        "test_submit_after_interpreter_shutdown": _DAEMONS,
        "test_thread_names_assigned": _ITSELF,
        "test_thread_names_default": _ITSELF,
        "test_threads_terminate": _FIXED,
    },
}


class Pool(RateEnvelopeQueue):
    """The queue, made as these tests make an executor: it has started."""

    def __init__(self, max_workers: int) -> None:
        super().__init__("pool", workers=max_workers)
        self.start()


class OnQueue:
    """What comes before one of their classes, in place of the set-up there.

    Why not theirs as well: it reaps all child processes, and ours may have servers that other tests share.
    """

    executor_type = Pool
    worker_count = 5

    def setUp(self) -> None:
        gc.freeze()  # Why: some collect garbage dozens of times, and pytest has a large heap
        self.executor = self.executor_type(max_workers=self.worker_count)

    def tearDown(self) -> None:
        self.executor.shutdown(wait=True)
        gc.unfreeze()


def _theirs(module: str, name: str) -> Any:
    """One of their classes: in a module of a package since 3.12, before that all are in one module."""
    package = import_module(PACKAGE)
    return getattr(import_module(f"{PACKAGE}.{module}") if hasattr(package, "__path__") else package, name)


def _case(name: str) -> type:
    theirs = _theirs(*CASES[name])
    skipped = {
        test: unittest.skip(reason)(getattr(theirs, test))
        for test, reason in LEFT_OUT.get(name, {}).items()
        if hasattr(theirs, test)
    }
    return type(name, (OnQueue, theirs, unittest.TestCase), {"__module__": __name__, **skipped})


TestExecutor = _case("TestExecutor")
TestWait = _case("TestWait")
TestAsCompleted = _case("TestAsCompleted")
TestShutdown = _case("TestShutdown")
