"""The order of tests: those that take longest are begun first, so that no process is left alone with one of them."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

LONGEST = (
    "tests/fuzz/test_openapi.py::test_every_answer_is_in_the_document",
    "tests/jobpipe/stores/test_sqlite_store.py::TestSqliteMachine",
    "tests/jobpipe/stores/test_postgres_store.py::TestPostgresMachine",
    "tests/jobpipe/stores/test_redis_store.py::TestRedisMachine",
    "tests/core/test_model.py",
    "tests/modelcheck/test_modelcheck.py",
    "tests/test_typing.py",
    "tests/histories/test_histories.py",
    "tests/soak/test_soak.py",
    "tests/test_docs.py::test_console_blocks_print_what_they_show[docs/jobpipe/cli.md]",
    "tests/test_docs.py::test_console_blocks_print_what_they_show[docs/jobpipe/tutorial.md]",
    "tests/faults/test_crashes.py",
)
"""How their ids begin. Who is not here is found later, and nothing else happens."""


def longest_first(items: list[pytest.Item], workers: int) -> None:
    """Spread them over the beginnings of the parts that the workers of pytest-xdist are given at first (`worksteal`)."""
    longest = [item for begin in LONGEST for item in items if item.nodeid.startswith(begin)]
    known = set(longest)
    others = iter([item for item in items if item not in known])
    ordered: list[pytest.Item] = []
    for worker in range(workers):
        mine = longest[worker::workers]
        size = (len(items) - len(ordered)) // (workers - worker)
        ordered += [*mine, *islice(others, max(0, size - len(mine)))]
    items[:] = [*ordered, *others]
