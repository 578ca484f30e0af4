"""Envelope: what it takes, what it refuses, and that it never changes."""

from __future__ import annotations

import functools
from datetime import timedelta
from typing import Any

import pytest

from rate_envelope_queue import BadFieldsError, BadIntervalsError, Context, Envelope, Every, every, once


def work(ctx: Context, envelope: Envelope[Any]) -> None: ...
async def async_work(ctx: Context, envelope: Envelope[Any]) -> None: ...
def generator(ctx: Context, envelope: Envelope[Any]) -> Any:
    yield


async def async_generator(ctx: Context, envelope: Envelope[Any]) -> Any:
    yield


NAN, INF = float("nan"), float("inf")


def test_a_plain_envelope_has_the_defaults() -> None:
    envelope = Envelope(work)
    assert envelope.invoke is work
    assert (envelope.id, envelope.type, envelope.payload, envelope.key) == (None, "", None, None)
    assert (envelope.interval, envelope.deadline, envelope.priority) == (0, 0, 0)
    assert (envelope.schedule, envelope.stamps) == (None, ())
    assert (
        envelope.before_hook is envelope.after_hook is envelope.success_hook is envelope.failure_hook is None
    )


def test_an_envelope_keeps_what_it_is_given() -> None:
    envelope = Envelope(
        work,
        id=7,
        type="mail",
        payload={"to": "a@b"},
        interval=timedelta(minutes=1),
        deadline=timedelta(seconds=3),
        before_hook=work,
        after_hook=work,
        success_hook=work,
        failure_hook=lambda ctx, envelope, error: None,
        stamps=[lambda inner: inner],
        priority=-3,
        key=("a", 1),
    )
    assert (envelope.id, envelope.type, envelope.payload) == (7, "mail", {"to": "a@b"})
    assert (envelope.interval, envelope.deadline) == (60, 3)
    assert (envelope.priority, envelope.key, len(envelope.stamps)) == (-3, ("a", 1), 1)
    assert envelope.before_hook is envelope.after_hook is envelope.success_hook is work
    assert envelope.failure_hook is not None


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("interval", -1),
        ("interval", NAN),
        ("interval", INF),
        ("interval", "5"),
        ("interval", None),
        ("interval", True),
        ("interval", 10**400),
        ("deadline", -0.1),
        ("deadline", NAN),
        ("deadline", INF),
        ("deadline", "5"),
        ("deadline", timedelta(seconds=-1)),
        ("deadline", False),
        ("type", 5),
        ("type", None),
        ("priority", 1.5),
        ("priority", "high"),
        ("priority", True),
        ("key", []),
        ("key", {}),
        ("schedule", 5),
        ("schedule", Every),
        ("schedule", "* * * * *"),
        ("stamps", 5),
        ("stamps", [None]),
        ("stamps", ["text"]),
        ("before_hook", 5),
        ("after_hook", "text"),
        ("success_hook", []),
        ("failure_hook", object()),
        ("before_hook", generator),
    ],
)
def test_a_wrong_field_is_refused_by_name_with_its_value(field: str, value: Any) -> None:
    with pytest.raises(BadFieldsError, match=field) as caught:
        Envelope(work, **{field: value})
    shown = value[0] if isinstance(value, list) and value else value
    assert repr(shown) in str(caught.value)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("invoke", [None, 5, "work", object()])
def test_an_invoke_that_cannot_be_called_is_refused(invoke: Any) -> None:
    with pytest.raises(BadFieldsError, match="invoke must be callable"):
        Envelope(invoke)


@pytest.mark.parametrize("invoke", [generator, async_generator, functools.partial(generator)])
def test_a_generator_function_is_refused_because_a_call_runs_nothing(invoke: Any) -> None:
    with pytest.raises(BadFieldsError, match="generator"):
        Envelope(invoke)


def test_a_missing_invoke_is_refused() -> None:
    with pytest.raises(TypeError):
        Envelope()  # type: ignore[call-arg]


def test_a_deadline_longer_than_the_interval_is_refused() -> None:
    with pytest.raises(BadIntervalsError, match=r"6 s > 5 s") as caught:
        Envelope(work, interval=5, deadline=6)
    assert isinstance(caught.value, ValueError)
    with pytest.raises(BadIntervalsError):
        Envelope(work, schedule=Every(5), deadline=6)
    assert Envelope(work, interval=5, deadline=5).deadline == 5


def test_interval_and_schedule_exclude_each_other() -> None:
    with pytest.raises(BadFieldsError, match="interval and schedule"):
        Envelope(work, interval=5, schedule=Every(5))
    assert Envelope(work, schedule=Every(5)).interval == 5


class AsyncCallable:
    async def __call__(self, ctx: Context, envelope: Envelope[Any]) -> None: ...


class SyncCallable:
    def __call__(self, ctx: Context, envelope: Envelope[Any]) -> None: ...

    async def method(self, ctx: Context, envelope: Envelope[Any]) -> None: ...


@pytest.mark.parametrize(
    ("invoke", "is_async"),
    [
        (work, False),
        (async_work, True),
        (functools.partial(work), False),
        (functools.partial(async_work), True),
        (AsyncCallable(), True),
        (SyncCallable(), False),
        (SyncCallable().method, True),
        (print, False),
        (Envelope, False),
    ],
)
def test_it_knows_coroutine_functions_of_every_kind(invoke: Any, is_async: bool) -> None:
    assert Envelope(invoke).is_async is is_async
    assert Envelope(work, success_hook=invoke).is_async is is_async


def test_all_but_the_payload_is_fixed() -> None:
    envelope = Envelope(work, payload=1)
    envelope.payload = 2
    assert envelope.payload == 2
    for name in ("invoke", "id", "type", "key", "priority", "deadline", "interval", "schedule", "stamps"):
        with pytest.raises(AttributeError):
            setattr(envelope, name, None)
    with pytest.raises(AttributeError):
        envelope.unknown = 1  # type: ignore[attr-defined]


def test_two_envelopes_are_equal_only_if_they_are_the_same() -> None:
    assert Envelope(work, id=1, key=1) != Envelope(work, id=1, key=1)
    assert len({Envelope(work), Envelope(work)}) == 2


def test_its_repr_shows_no_payload() -> None:
    shown = repr(Envelope(work, id=1, type="mail", key="k", payload="secret"))
    assert shown == "Envelope(type='mail', id=1, key='k')"


def test_the_helpers() -> None:
    one = once(work, deadline=3, payload=1)
    assert (one.interval, one.deadline, one.payload) == (0, 3, 1)
    many = every(5, work, deadline=3, payload=1)
    assert (many.interval, many.deadline, many.payload) == (5, 3, 1)
    for wrong in (0, -1, NAN, INF, "5"):
        with pytest.raises(BadFieldsError, match="interval"):
            every(wrong, work)  # type: ignore[arg-type]
