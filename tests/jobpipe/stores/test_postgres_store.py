"""The PostgreSQL store keeps the contract, and does what the memory store does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from hypothesis import HealthCheck, Phase, settings

from jobpipe.stores.base import Store
from jobpipe.testing import ManualTime, StoreContract, StoreHarness
from jobpipe.testing.model import StoreMachine

from ...support.servers_postgres import PostgresStores


class PostgresHarness(StoreHarness):
    claimers = 60

    def __init__(self, open: Callable[..., Store]) -> None:
        self._open = open
        self._time = ManualTime()

    def open(self) -> Store:
        return self._open(clock=self._time)

    def elapse(self, seconds: float) -> None:
        self._time.elapse(seconds)


class TestPostgresStore(StoreContract):
    @pytest.fixture
    def harness(self, postgres_stores: PostgresStores) -> Iterator[StoreHarness]:
        with postgres_stores.one() as open:
            yield PostgresHarness(open)


class PostgresMachine(StoreMachine):
    stores: PostgresStores

    def make_store(self, time: ManualTime) -> Store:
        self._rest = ExitStack()
        return self._rest.enter_context(self.stores.one())(clock=time)

    def teardown(self) -> None:
        super().teardown()
        self._rest.close()


@pytest.fixture(scope="module", autouse=True)
def machine_has_stores(postgres_stores: PostgresStores) -> None:
    PostgresMachine.stores = postgres_stores


TestPostgresMachine = pytest.mark.timeout(180)(
    PostgresMachine.TestCase
)  # each step is a score of transactions
# Why no shrinking: every step is a transaction, and shrinking takes minutes; turn it on to study a failure.
TestPostgresMachine.settings = settings(
    max_examples=8,
    stateful_step_count=30,
    deadline=None,
    phases=[Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)
