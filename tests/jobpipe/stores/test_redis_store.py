"""The Redis store keeps the contract, and does what the memory store does."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, settings

from jobpipe.stores.base import Store
from jobpipe.stores.redis import RedisStore
from jobpipe.testing import ManualTime, StoreContract, StoreHarness
from jobpipe.testing.model import StoreMachine

from ...support.servers_redis import with_own_keys


class RedisHarness(StoreHarness):
    def __init__(self, url: str) -> None:
        self._url = url
        self._time = ManualTime()

    def open(self) -> Store:
        return RedisStore(self._url, clock=self._time)

    def elapse(self, seconds: float) -> None:
        self._time.elapse(seconds)


class TestRedisStore(StoreContract):
    @pytest.fixture
    def harness(self, redis_url: str) -> StoreHarness:
        return RedisHarness(with_own_keys(redis_url))


class RedisMachine(StoreMachine):
    url = ""

    def make_store(self, time: ManualTime) -> Store:
        store = RedisStore(with_own_keys(self.url), clock=time)
        store.migrate()
        return store


@pytest.fixture(scope="module", autouse=True)
def _machine_has_a_server(redis_url: str) -> None:
    RedisMachine.url = redis_url


TestRedisMachine = RedisMachine.TestCase
TestRedisMachine.settings = settings(
    max_examples=16,
    stateful_step_count=40,
    deadline=None,
    phases=[Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)
