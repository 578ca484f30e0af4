"""Mutation: what is taken out of the source, and the tests that must fail without it."""

from __future__ import annotations

from typing import NamedTuple

STORES = "src/jobpipe/stores"
CONTRACTS = {
    store: f"tests/jobpipe/stores/test_{store}_store.py::Test{store.capitalize()}Store"
    for store in ("memory", "sqlite", "redis", "postgres")
}
"""The contract suite of each store."""


class Mutation(NamedTuple):
    """One thing less."""

    name: str
    path: str
    old: str
    new: str
    tests: tuple[str, ...]
    """Each of them must fail."""
