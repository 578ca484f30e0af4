"""For tests: of handlers, by `pipe.testing()`; and the contract of a store as a suite of tests, for whoever writes one.

    from jobpipe.testing import StoreContract, StoreHarness

    class TestMyStore(StoreContract):
        @pytest.fixture
        def harness(self) -> Iterator[StoreHarness]: ...

The contract needs pytest. `jobpipe.testing.model` holds a store against the memory store by random steps; it needs hypothesis.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .contract import StoreContract
    from .harness import ManualTime, StoreHarness
    from .kit.tester import JobpipeTesting, JobTester
    from .tools import new_job

__all__ = ["JobTester", "JobpipeTesting", "ManualTime", "StoreContract", "StoreHarness", "new_job"]

# Why at once: only what is imported after it tells what it compared. Why not without pytest: the kit does without.
if "pytest" in sys.modules:
    _contract = (f"{__name__}.{module.name}" for module in iter_modules(__path__) if module.name != "kit")
    sys.modules["pytest"].register_assert_rewrite(*_contract)

_MODULES = {
    "JobTester": "kit.tester",
    "JobpipeTesting": "kit.tester",
    "ManualTime": "harness",
    "StoreContract": "contract",
    "StoreHarness": "harness",
    "new_job": "tools",
}
"""Where each name is. Why not imported above: who tests handlers needs no contract, and may have no pytest."""


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return getattr(import_module(f".{_MODULES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
