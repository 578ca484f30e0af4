"""The contract of a store as a suite of tests, for whoever writes one.

    from jobpipe.testing import StoreContract, StoreHarness

    class TestMyStore(StoreContract):
        @pytest.fixture
        def harness(self) -> Iterator[StoreHarness]: ...

Needs pytest. `jobpipe.testing.model` holds a store against the memory store by random steps; it needs hypothesis.
"""

from __future__ import annotations

import pytest

_MODULES = (
    "claiming",
    "claiming_ahead",
    "concurrency",
    "contract",
    "cooling",
    "inserting",
    "inspecting",
    "leases",
    "limiting",
    "managing",
    "model",
    "scheduling",
    "settling",
    "tools",
    "transferring",
    "unique",
    "watching",
)
# Why before the imports: only what is imported after it tells what it compared.
pytest.register_assert_rewrite(*(f"{__name__}.{module}" for module in _MODULES))

from .contract import StoreContract  # noqa: E402
from .harness import ManualTime, StoreHarness  # noqa: E402
from .tools import new_job  # noqa: E402

__all__ = ["ManualTime", "StoreContract", "StoreHarness", "new_job"]
