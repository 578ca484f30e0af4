"""Which tests are begun first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from .support.order import LONGEST, longest_first

ROOT = Path(__file__).parent.parent


class Item:
    def __init__(self, nodeid: str) -> None:
        self.nodeid = nodeid


@pytest.mark.parametrize("workers", [1, 2, 3, 4])
def test_each_worker_begins_with_its_share_of_the_longest(workers: int) -> None:
    ids = [f"tests/test_{n}.py::test" for n in range(30)]
    items: list[Any] = [Item(id) for id in [*ids[:20], *LONGEST[:4], *ids[20:]]]
    expected = {item.nodeid for item in items}
    longest_first(items, workers)
    assert {item.nodeid for item in items} == expected
    assert [item.nodeid for item in items if item.nodeid in ids] == ids, "the others keep their order"
    begin = 0
    for worker in range(workers):
        share = LONGEST[:4][worker::workers]
        assert tuple(item.nodeid for item in items[begin : begin + len(share)]) == share
        begin += (len(items) - begin) // (workers - worker)


def test_fewer_tests_than_workers_are_all_there() -> None:
    items: list[Any] = [Item(LONGEST[0])]
    longest_first(items, 4)
    assert len(items) == 1


@pytest.mark.parametrize("begin", LONGEST)
def test_the_longest_are_known_by_their_names(begin: str) -> None:
    path, _, name = begin.partition("::")
    assert name.partition("[")[0] in (ROOT / path).read_text(encoding="utf-8")
