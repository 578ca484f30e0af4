"""Envelopes as a user writes them: the payload's type goes from `payload=` to the call and to every hook."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, assert_type

from rate_envelope_queue import (
    Cancelled,
    Context,
    Cron,
    DeadlineExceeded,
    Decision,
    Envelope,
    Every,
    RateLimited,
    StopEnvelope,
    StopType,
    drop,
    every,
    once,
    retry_after,
    retry_now,
)


@dataclass
class Mail:
    to: str


MAIL = Mail("ada@example.org")


def send_mail(ctx: Context, envelope: Envelope[Mail]) -> str:
    assert_type(envelope, Envelope[Mail])
    assert_type(envelope.payload, Mail)
    return envelope.payload.to


async def send_mail_soon(ctx: Context, envelope: Envelope[Mail]) -> None:
    assert_type(envelope.payload.to, str)


def collect(ctx: Context, envelope: Envelope[None]) -> None:
    """A call without a payload."""


def work(ctx: Context, envelope: Envelope[Any]) -> None:
    """A call that takes any payload."""


class Mailer:
    def send(self, ctx: Context, envelope: Envelope[Mail]) -> None: ...

    def __call__(self, ctx: Context, envelope: Envelope[Mail]) -> None: ...


def send_from(sender: str, ctx: Context, envelope: Envelope[Mail]) -> None: ...


def the_payload_gives_the_envelope_its_type() -> None:
    assert_type(Envelope(send_mail, payload=MAIL), Envelope[Mail])
    assert_type(Envelope(send_mail_soon, payload=MAIL), Envelope[Mail])
    assert_type(Envelope(Mailer(), payload=MAIL), Envelope[Mail])
    assert_type(Envelope(Mailer().send, payload=MAIL), Envelope[Mail])
    assert_type(Envelope(partial(send_from, "me"), payload=MAIL), Envelope[Mail])
    assert_type(Envelope(lambda ctx, envelope: envelope.payload.to, payload=MAIL), Envelope[Mail])
    assert_type(Envelope(collect), Envelope[None])
    assert_type(Envelope(collect, payload=None), Envelope[None])


def an_annotation_decides_where_a_payload_is_wider() -> None:
    def either(ctx: Context, envelope: Envelope[Mail | None]) -> None: ...
    def table(ctx: Context, envelope: Envelope[dict[str, object]]) -> None: ...

    wider: Envelope[Mail | None] = Envelope(either, payload=MAIL)
    literal: Envelope[dict[str, object]] = Envelope(table, payload={"to": "ada", "copies": 2})
    assert_type(wider.payload, Mail | None)
    assert_type(Envelope[dict[str, object]](table, payload={}), Envelope[dict[str, object]])
    literal.payload = {}


def plainly(ctx: Context, envelope: Envelope) -> None:
    """Without the type of the payload."""
    assert_type(envelope, Envelope[Any])


def nothing_needs_to_be_said_of_a_payload_that_does_not_matter() -> None:
    tick = Envelope(lambda ctx, envelope: None, interval=5)
    taken: Envelope[Any] = tick
    Envelope(plainly, payload=taken)
    Envelope(plainly, payload=every(5, lambda ctx, envelope: None))


def a_call_for_any_payload_takes_each() -> list[Envelope[Any]]:
    return [Envelope(work), Envelope(work, payload=MAIL), Envelope(work, payload=[1, 2])]


def envelopes_of_one_payload_are_a_list() -> list[Envelope[Mail]]:
    return [Envelope(send_mail, payload=Mail(name)) for name in ("ada", "grace")]


def before(ctx: Context, envelope: Envelope[Mail]) -> None:
    if not envelope.payload.to:
        raise StopEnvelope
    if envelope.type == "spam":
        raise StopType
    raise RateLimited(retry_after=timedelta(minutes=1))


def on_failure(ctx: Context, envelope: Envelope[Mail], error: Exception) -> Decision:
    if isinstance(error, DeadlineExceeded):
        return retry_after(timedelta(seconds=5))
    return retry_now() if ctx.attempt < 3 else drop()


def maybe(ctx: Context, envelope: Envelope[Mail], error: BaseException) -> Decision | None:
    return None


def only_told(ctx: Context, envelope: Envelope[Mail], error: Exception) -> None: ...


async def on_failure_soon(ctx: Context, envelope: Envelope[Mail], error: Exception) -> Decision | None:
    return retry_after(0.5)


async def after_soon(ctx: Context, envelope: Envelope[Mail]) -> None: ...


def log_any(ctx: Context, envelope: Envelope[Any]) -> None: ...


def every_option_has_its_type() -> None:
    envelope = Envelope(
        send_mail,
        id=7,
        type="mail",
        payload=MAIL,
        interval=timedelta(hours=1),
        deadline=2.5,
        before_hook=before,
        after_hook=after_soon,
        success_hook=log_any,
        failure_hook=on_failure,
        stamps=[],
        priority=3,
        key=("mail", 7),
    )
    assert_type(envelope, Envelope[Mail])
    assert_type(envelope.id, object)
    assert_type(envelope.type, str)
    assert_type(envelope.payload, Mail)
    assert_type(envelope.interval, float)
    assert_type(envelope.deadline, float)
    assert_type(envelope.priority, int)
    assert_type(envelope.key, Hashable)
    assert_type(envelope.is_async, bool)
    assert_type(envelope.invoke, Callable[[Context, Envelope[Mail]], Any])
    assert_type(envelope.before_hook, Callable[[Context, Envelope[Mail]], object] | None)
    assert_type(
        envelope.failure_hook,
        Callable[[Context, Envelope[Mail], Any], Decision | Awaitable[Decision | None] | None] | None,
    )
    envelope.payload = Mail("grace@example.org")


def hooks_may_be_functions_coroutines_and_lambdas() -> None:
    for answer in (on_failure, maybe, only_told):
        Envelope(send_mail, payload=MAIL, failure_hook=answer)
    Envelope(send_mail_soon, payload=MAIL, failure_hook=on_failure_soon)
    Envelope(send_mail, payload=MAIL, success_hook=lambda ctx, envelope: envelope.payload.to)
    Envelope(send_mail, payload=MAIL, failure_hook=lambda ctx, envelope, error: retry_now())


def schedules_may_be_given() -> None:
    assert_type(Envelope(collect, schedule=Every(5, jitter=1)), Envelope[None])
    assert_type(Envelope(collect, schedule=Cron("*/5 * * * *", tz="Europe/Berlin")), Envelope[None])


def the_helpers_keep_the_payload_too() -> None:
    assert_type(once(collect), Envelope[None])
    assert_type(once(send_mail, payload=MAIL, deadline=3), Envelope[Mail])
    assert_type(every(5, collect), Envelope[None])
    assert_type(every(timedelta(minutes=5), send_mail, payload=MAIL, deadline=2), Envelope[Mail])
    assert_type(every(5, lambda ctx, envelope: envelope.payload.to, payload=MAIL), Envelope[Mail])


def decisions_are_one_type() -> None:
    assert_type(drop(), Decision)
    assert_type(retry_now(), Decision)
    assert_type(retry_after(5), Decision)
    assert_type(retry_after(timedelta(seconds=5)).seconds, float)


def a_context_tells_how_much_time_is_left(ctx: Context) -> None:
    assert_type(ctx.attempt, int)
    assert_type(ctx.done, bool)
    assert_type(ctx.error, Cancelled | DeadlineExceeded | None)
    assert_type(ctx.remaining(), float)
    assert_type(ctx.wait(timedelta(seconds=1)), bool)
    ctx.raise_if_done()
    Context().cancel("enough")
