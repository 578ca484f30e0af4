"""Stamps around a run."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from rate_envelope_queue import Context, Envelope, before_after_stamp, logging_stamp, stamp

from ..support.waiting import LIMIT
from .conftest import Driver
from .diary import Diary, raising


def test_stamps_of_the_queue_are_outside_and_the_first_is_outermost(driver: Driver) -> None:
    order: list[str] = []

    def noting(name: str) -> Any:
        @stamp
        def noted(ctx: Context, envelope: Envelope[Any]) -> Any:
            order.append(f"{name}>")
            yield
            order.append(f"<{name}")

        return noted

    queue = driver.queue(stamps=[noting("q1"), noting("q2")])
    work = lambda ctx, envelope: order.append("invoke")  # noqa: E731
    queue.send(driver.envelope(work, stamps=[noting("e1"), noting("e2")]))
    assert queue.join(LIMIT)
    assert order == ["q1>", "q2>", "e1>", "e2>", "invoke", "<e2", "<e1", "<q2", "<q1"]
    assert queue.stats().done == 1


def test_a_stamp_sees_the_error_of_the_inner_call_and_may_swallow_it(driver: Driver) -> None:
    @stamp
    def forgiving(ctx: Context, envelope: Envelope[Any]) -> Any:
        try:
            yield
        except ValueError as error:
            seen.append(str(error))

    seen: list[str] = []
    queue = driver.queue(stamps=[forgiving])
    queue.send(driver.envelope(raising(ValueError("forgiven"))))
    queue.send(driver.envelope(raising(TypeError("not forgiven"))))
    assert queue.join(LIMIT)
    assert seen == ["forgiven"]
    assert (queue.stats().done, queue.stats().failed) == (1, 1)


def test_a_stamp_may_replace_the_error(driver: Driver) -> None:
    @stamp
    def renaming(ctx: Context, envelope: Envelope[Any]) -> Any:
        try:
            yield
        except ValueError:
            raise KeyError("renamed") from None

    diary = Diary()
    queue = driver.queue(stamps=[renaming])
    queue.send(driver.envelope(raising(ValueError()), failure_hook=diary.failure))
    assert queue.join(LIMIT)
    assert isinstance(diary.errors[0], KeyError)


@pytest.mark.parametrize("yields", [0, 2])
def test_a_stamp_that_does_not_yield_exactly_once_fails_the_run(driver: Driver, yields: int) -> None:
    @stamp
    def wrong(ctx: Context, envelope: Envelope[Any]) -> Any:
        for _ in range(yields):
            yield

    diary = Diary()
    queue = driver.queue(stamps=[wrong])
    queue.send(driver.envelope(failure_hook=diary.failure))
    assert queue.join(LIMIT)
    assert isinstance(diary.errors[0], RuntimeError)
    assert "yield" in str(diary.errors[0])


def test_a_plain_stamp_takes_the_inner_call_and_returns_the_outer(driver: Driver) -> None:
    seen: list[object] = []

    def plain(inner: Any) -> Any:
        def call(ctx: Context, envelope: Envelope[Any]) -> Any:
            seen.append(envelope.id)
            return inner(ctx, envelope)

        return call

    queue = driver.queue(stamps=[plain])
    queue.send(driver.envelope(id=1))
    assert queue.join(LIMIT)
    assert seen == [1]
    assert queue.stats().done == 1


def test_before_after_stamp_calls_both_and_skips_after_on_an_error(driver: Driver) -> None:
    order: list[str] = []
    around = before_after_stamp(
        driver.kind(lambda ctx, envelope: order.append("before")),
        driver.kind(lambda ctx, envelope: order.append("after")),
        budget=2,
    )
    queue = driver.queue(stamps=[around])
    queue.send(driver.envelope(lambda ctx, envelope: order.append("invoke")))
    assert queue.join(LIMIT)
    assert order == ["before", "invoke", "after"]
    order.clear()
    queue.send(driver.envelope(raising(ValueError())))
    assert queue.join(LIMIT)
    assert order == ["before"]


def test_logging_stamp_tells_type_id_duration_and_error(
    driver: Driver, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    queue = driver.queue(stamps=[logging_stamp(logging.getLogger("mine"))])
    queue.send(driver.envelope(type="mail", id=7))
    queue.send(driver.envelope(raising(ValueError("broken")), type="mail", id=8))
    assert queue.join(LIMIT)
    first, second = (record.getMessage() for record in caplog.records if record.name == "mine")
    assert all(part in first for part in ("'mail'", "7", " s: ok"))
    assert all(part in second for part in ("'mail'", "8", "ValueError: broken"))


def test_a_stamp_that_raises_when_it_is_applied_fails_the_run(driver: Driver) -> None:
    def bad(inner: Any) -> Any:
        raise ValueError("not applicable")

    diary = Diary()
    queue = driver.queue()
    queue.send(driver.envelope(stamps=[bad], failure_hook=diary.failure))
    assert queue.join(LIMIT)
    assert isinstance(diary.errors[0], ValueError)
