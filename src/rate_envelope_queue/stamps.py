"""Stamps: middleware around the call of an envelope, for both queues.

A stamp takes the inner call and returns the call that surrounds it. In the thread queue the inner call returns
when the work is done, in the asyncio queue it returns an awaitable: `@stamp` writes the middle of that once.
A stamp is applied anew for each run.
"""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Awaitable, Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any, cast

from ._checks import Seconds, duration, is_awaitable
from .context import Context, HookContext
from .core.run import HookBudget, Run
from .drivers.log import describe
from .drivers.log import logger as package_logger
from .envelope import Envelope, Invoker, Stamp

if TYPE_CHECKING:
    from .envelope import Hook

Steps = Generator[Callable[[], Any], Any, Any]

_DEFAULT_BUDGET = HookBudget()


def compose(stamps: tuple[Stamp, ...], invoke: Invoker) -> Invoker:
    """The call with the stamps around it; the first is outermost."""
    for outer in reversed(stamps):
        invoke = outer(invoke)
    return invoke


def stamp(surround: Callable[[Context, Envelope[Any]], Iterator[None]]) -> Stamp:
    """Turn a generator with one `yield` into a stamp: the inner call runs at the yield, and its exception is raised there.

    A generator that swallows the exception makes the run a success.
    """

    # Why: as with contextlib.contextmanager, a generator function may be annotated with Iterator[None].
    begin = cast("Callable[[Context, Envelope[Any]], Generator[None, Any, Any]]", surround)

    @functools.wraps(surround)
    def stamped(inner: Invoker) -> Invoker:
        def call(ctx: Context, envelope: Envelope[Any]) -> Any:
            generator = begin(ctx, envelope)
            try:
                next(generator)
            except StopIteration:
                raise RuntimeError(f"stamp {_name(generator)} did not yield") from None
            try:
                result = inner(ctx, envelope)
            except BaseException as error:
                return _go_on(generator, error)
            if is_awaitable(result):
                return _go_on_later(generator, result)
            _go_on(generator)
            return result

        return call

    return stamped


async def _go_on_later(generator: Generator[None, Any, Any], pending: Awaitable[Any]) -> Any:
    try:
        result = await pending
    except BaseException as error:
        return _go_on(generator, error)
    _go_on(generator)
    return result


def _go_on(generator: Generator[None, Any, Any], error: BaseException | None = None) -> None:
    """The rest of a stamp, after its yield: it must end, and may swallow the error."""
    try:
        if error is None:
            next(generator)
        else:
            generator.throw(error)
    except StopIteration:
        return
    generator.close()
    raise RuntimeError(f"stamp {_name(generator)} yielded more than once")


def _name(generator: Generator[Any, Any, Any]) -> str:
    return str(getattr(generator, "__qualname__", generator))


def logging_stamp(logger: logging.Logger | None = None) -> Stamp:
    """Logs each call: type, id, duration and error."""
    out = logger or package_logger

    @stamp
    def logged(ctx: Context, envelope: Envelope[Any]) -> Generator[None, Any, None]:
        began = time.perf_counter()
        error: BaseException | None = None
        try:
            yield
        except BaseException as raised:
            error = raised
            raise
        finally:
            took = time.perf_counter() - began
            text = "[rate-envelope-queue] envelope type=%r id=%r attempt=%d took %.6f s: %s"
            outcome = "ok" if error is None else describe(error)
            level = logging.INFO if error is None else logging.WARNING
            out.log(level, text, envelope.type, envelope.id, ctx.attempt, took, outcome)

    return logged


def before_after_stamp(
    before: Hook[Any] | None = None,
    after: Hook[Any] | None = None,
    budget: HookBudget | Seconds = _DEFAULT_BUDGET,
) -> Stamp:
    """Calls `before` and `after` around the inner call, each within a budget: seconds, or a HookBudget.

    What they raise counts as raised by the call; `after` is skipped when the inner call raised.
    """
    limit = budget if isinstance(budget, HookBudget) else HookBudget(0, duration("budget", budget))

    def limited(hook: Hook[Any], ctx: Context, envelope: Envelope[Any]) -> Any:
        seconds = limit.seconds(envelope.deadline)
        inner = HookContext(ctx, ctx._clock.now() + seconds, seconds)
        result: Any = hook(inner, envelope)
        if is_awaitable(result) and isinstance(ctx, Run) and ctx.worker is not None:
            return ctx.worker.within(inner, result)
        return result

    def steps(inner: Invoker, ctx: Context, envelope: Envelope[Any]) -> Steps:
        if before is not None:
            yield lambda: limited(before, ctx, envelope)
        result = yield lambda: inner(ctx, envelope)
        if after is not None:
            yield lambda: limited(after, ctx, envelope)
        return result

    def stamped(inner: Invoker) -> Invoker:
        return lambda ctx, envelope: drive(steps(inner, ctx, envelope))

    return stamped


def drive(steps: Steps) -> Any:
    """Make the calls that the generator yields; from the first awaitable result on, in a coroutine."""
    try:
        call = next(steps)
        while True:
            try:
                result = call()
            except BaseException as error:
                call = steps.throw(error)
            else:
                if is_awaitable(result):
                    return _drive_on(steps, result)
                call = steps.send(result)
    except StopIteration as stop:
        return stop.value


async def _drive_on(steps: Steps, pending: Any) -> Any:
    def call() -> Any:
        return pending

    try:
        while True:
            try:
                result = call()
                if is_awaitable(result):
                    result = await result
            except BaseException as error:
                call = steps.throw(error)
            else:
                call = steps.send(result)
    except StopIteration as stop:
        return stop.value
