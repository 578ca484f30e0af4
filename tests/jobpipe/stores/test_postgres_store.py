"""The PostgreSQL store keeps the contract, and does what the memory store does."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from hypothesis import HealthCheck, Phase, settings

from jobpipe.stores.base import Store
from jobpipe.stores.postgres import PostgresStore
from jobpipe.testing import ManualTime, StoreContract, StoreHarness
from jobpipe.testing.model import StoreMachine

from ...support.servers_postgres import postgres_schema


class PostgresHarness(StoreHarness):
    claimers = 60

    def __init__(self, url: str) -> None:
        self._url = url
        self._time = ManualTime()

    def open(self) -> Store:
        return PostgresStore(self._url, clock=self._time)

    def elapse(self, seconds: float) -> None:
        self._time.elapse(seconds)


class TestPostgresStore(StoreContract):
    @pytest.fixture
    def harness(self, postgres_url: str) -> StoreHarness:
        return PostgresHarness(postgres_url)


class PostgresMachine(StoreMachine):
    server: str

    def make_store(self, time: ManualTime) -> Store:
        self._rest = ExitStack()
        store = PostgresStore(self._rest.enter_context(postgres_schema(self.server)), clock=time)
        store.migrate()
        return store

    def teardown(self) -> None:
        super().teardown()
        self._rest.close()


@pytest.fixture(scope="module", autouse=True)
def machine_has_a_server(postgres: str) -> None:
    PostgresMachine.server = postgres


TestPostgresMachine = pytest.mark.timeout(180)(
    PostgresMachine.TestCase
)  # each step is a score of transactions
# Why no shrinking: every step is a transaction, and shrinking takes minutes; turn it on to study a failure.
TestPostgresMachine.settings = settings(
    max_examples=10,
    stateful_step_count=30,
    deadline=None,
    phases=[Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)
