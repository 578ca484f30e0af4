"""Stamps as a user writes them: what `@stamp` makes, factories, classes and plain functions."""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterator
from typing import Any, assert_type

from rate_envelope_queue import (
    Context,
    Envelope,
    HookBudget,
    Invoker,
    RateEnvelopeQueue,
    Stamp,
    before_after_stamp,
    logging_stamp,
    stamp,
)


@stamp
def timed(ctx: Context, envelope: Envelope[Any]) -> Generator[None, Any, None]:
    """A stamp made of a generator."""
    yield


@stamp
def shouting(ctx: Context, envelope: Envelope[str]) -> Generator[None, None, None]:
    """One for envelopes of one payload."""
    assert_type(envelope.payload, str)
    yield


@stamp
def as_with_contextmanager(ctx: Context, envelope: Envelope[Any]) -> Iterator[None]:
    """One that is annotated as for contextlib.contextmanager."""
    yield


def limited(seconds: float, *, name: str = "") -> Stamp:
    """A factory."""

    @stamp
    def within(ctx: Context, envelope: Envelope[Any]) -> Generator[None, Any, None]:
        ctx.wait(seconds)
        yield

    return within


class Counting:
    """A stamp with a state."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, inner: Invoker) -> Invoker:
        def call(ctx: Context, envelope: Envelope[Any]) -> Any:
            self.count += 1
            return inner(ctx, envelope)

        return call


def plain(inner: Invoker) -> Invoker:
    return lambda ctx, envelope: inner(ctx, envelope)


async def waits(ctx: Context, envelope: Envelope[Any]) -> None: ...


def work(ctx: Context, envelope: Envelope[Any]) -> None: ...


def each_is_a_stamp() -> None:
    assert_type(timed, Stamp)
    assert_type(shouting, Stamp)
    assert_type(as_with_contextmanager, Stamp)
    assert_type(limited(3, name="slow"), Stamp)
    assert_type(logging_stamp(), Stamp)
    assert_type(logging_stamp(logging.getLogger("mine")), Stamp)
    assert_type(before_after_stamp(before=work, after=waits, budget=2.5), Stamp)
    assert_type(before_after_stamp(after=work, budget=HookBudget(floor=1)), Stamp)
    assert_type(timed(work), Invoker)


def each_goes_where_stamps_go() -> None:
    stamps: list[Stamp] = [timed, shouting, limited(3), Counting(), plain, before_after_stamp()]
    Envelope(work, stamps=stamps)
    Envelope(work, stamps=(timed, Counting(), plain))
    RateEnvelopeQueue("q", workers=1, stamps=stamps)
