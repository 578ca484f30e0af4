"""Verb: what a call of the store asks of the server, written once for connections that block and for those that are awaited.

A verb yields units, one after the other, and is sent what each brought, or gets its StoreError. A unit is done on one
connection, and by itself again if the server undid it: the steps of one round trip and one transaction, or what begins
a conversation in a transaction of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import Any, NamedTuple, TypeAlias, TypeVar

from psycopg.rows import TupleRow

from ...failpoints import Mark

T = TypeVar("T")


class Step(NamedTuple):
    """A statement and its parameters."""

    query: bytes
    values: Mapping[str, Any] | None = None
    mark: Mark | None = None
    """Reached when it is done, and its transaction is not."""


class Result(NamedTuple):
    """What a statement brought."""

    rows: list[TupleRow]
    touched: int
    """How many rows it changed, or brought."""


BEGIN, COMMIT = Step(b"BEGIN"), Step(b"COMMIT")

Conversation: TypeAlias = Generator[Step, Result, T]
"""Statements of which each depends on what those before it brought: a round trip for each."""
Unit: TypeAlias = tuple[Step, ...] | Callable[[], Conversation[Any]]
Verb: TypeAlias = Generator[Unit, Any, T]


def run(*steps: Step, after: Step | None = None) -> Verb[list[Result]]:
    """Do all steps in one transaction and one round trip, then what is to be done after it is committed."""
    results: list[Result]
    if after is None:
        results = yield steps
        return results
    results = yield (BEGIN, *steps, COMMIT, after)
    return results[1:-2]


def transact(begin: Callable[[], Conversation[T]]) -> Verb[T]:
    """Hold a conversation in a transaction of its own."""
    answer: T = yield begin
    return answer
