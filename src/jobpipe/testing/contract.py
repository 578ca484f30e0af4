"""StoreContract: all that is asked of a store; a subclass says with its `harness` which store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from ..stores.base import Store
from .claiming import Claiming
from .claiming_ahead import ClaimingAhead
from .concurrency import Concurrency
from .durable import Durable
from .expiring import Expiring
from .harness import StoreHarness
from .inserting import Inserting
from .inspecting import Inspecting
from .leases import Leases
from .limiting import Limiting
from .logs import Logging, Traces
from .managing import Managing
from .reading import assert_counts_are_exact
from .scheduling import Scheduling
from .settling import Cooling, Settling
from .transferring import Transferring
from .unique import Unique
from .watching import Watching


class JobContract(
    Inserting,
    Unique,
    Claiming,
    ClaimingAhead,
    Limiting,
    Cooling,
    Expiring,
    Settling,
    Leases,
    Logging,
    Managing,
    Inspecting,
    Traces,
    Concurrency,
):
    """What is asked of a JobStore."""


class StoreContract(JobContract, Durable, Scheduling, Transferring, Watching):
    """The tests; `harness` is theirs to be given, a new one with an empty store for each test."""

    @pytest.fixture
    def harness(self) -> Iterator[StoreHarness]:
        pytest.fail("a contract needs a fixture `harness` that gives a StoreHarness")

    @pytest.fixture
    def store(self, harness: StoreHarness) -> Iterator[Store]:
        """A handle, migrated; after each test its counts must still be those of its jobs."""
        with closing(harness.open()) as store:
            store.migrate()
            yield store
            assert_counts_are_exact(store)
