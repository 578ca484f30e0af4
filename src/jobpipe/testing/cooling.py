"""Cooling: an outcome holds up all jobs of its type for a while, and no other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ..model.gate import Limit
from ..model.job import Move
from .limiting import ONE, ONE_EACH, SLOW_EACH, ids, put_some
from .tools import finish, new_job, put, take

if TYPE_CHECKING:
    from ..stores.base import Store
    from .harness import StoreHarness


class Cooling:
    @pytest.mark.parametrize("limits", [(), ONE, SLOW_EACH], ids=["none", "type", "key"])
    def test_cooling_holds_up_the_whole_type_and_no_other(
        self, store: Store, harness: StoreHarness, limits: tuple[Limit, ...]
    ) -> None:
        put(store, new_job("a", key="x"), new_job("b", key="y"), new_job("o", type="other"))
        (claim,) = take(store, 1, limits=limits)
        finish(store, claim, Move.SNOOZE, delay=30, cools=30)
        result = store.claim("w1", ["work", "other"], 10, 60, limits)
        assert ids(result.claims) == ["o"]
        result = store.claim("w1", ["work"], 10, 60, limits)
        assert result.claims == []
        assert result.due_in is not None
        assert 20 < result.due_in <= 30
        assert store.limits().cooling.keys() == {"work"}
        harness.elapse(31)
        assert "b" in ids(take(store, 10, limits=limits))
        assert store.limits().cooling == {}

    def test_nothing_is_worth_asking_for_while_a_type_cools(self, store: Store) -> None:
        put_some(store, 3, key="a")
        (claim,) = take(store, 1, limits=ONE_EACH)
        assert take(store, 10, limits=ONE_EACH) == []
        finish(store, claim, Move.SNOOZE, delay=100, cools=100)
        result = store.claim("w1", ["work"], 10, 60, ONE_EACH)
        assert result.claims == []
        assert result.due_in is not None
        assert result.due_in > 50

    def test_longest_cooling_counts(self, store: Store, harness: StoreHarness) -> None:
        put_some(store, 3)
        first, second = take(store, 2)
        finish(store, first, Move.SNOOZE, delay=0, cools=60)
        finish(store, second, Move.SNOOZE, delay=0, cools=5)
        harness.elapse(30)
        assert take(store, 10) == []
        harness.elapse(31)
        assert len(take(store, 10)) == 3

    def test_settlement_that_is_told_again_cools_no_longer(self, store: Store, harness: StoreHarness) -> None:
        put_some(store, 2)
        (claim,) = take(store, 1)
        assert finish(store, claim, Move.SNOOZE, delay=60, cools=20)
        harness.elapse(10)
        assert finish(store, claim, Move.SNOOZE, delay=60, cools=20)
        harness.elapse(11)
        assert ids(take(store, 10)) == ["j1"]

    def test_worker_that_lost_its_lease_cools_nothing(self, store: Store, harness: StoreHarness) -> None:
        put_some(store, 2)
        (claim,) = take(store, 1, lease=10)
        harness.elapse(11)
        store.rescue()
        assert not finish(store, claim, Move.SNOOZE, delay=60, cools=60)
        assert len(take(store, 10)) == 2
