"""Envelope: one piece of work, and how it is to be run. It knows nothing of the queues it is sent to.

Everything is checked when it is made. An envelope that asks for no more than a call has no Handling,
which keeps it small and lets a worker see at a glance that there is nothing to do around the call.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ._checks import Seconds, duration
from .errors import BadFieldsError, BadIntervalsError
from .schedule import Every

if TYPE_CHECKING:
    from .context import Context
    from .decision import Decision
    from .schedule import Schedule

if TYPE_CHECKING:
    # Why only here: the default is for type checkers, which bring typing_extensions; the library needs nothing.
    from typing_extensions import TypeVar as TypeVarWithDefault

    P = TypeVarWithDefault("P", default=Any)
else:
    P = TypeVar("P")

Invoker = Callable[["Context", "Envelope[Any]"], Any]
"""The call of an envelope; in the asyncio queue it returns an awaitable."""
Stamp = Callable[[Invoker], Invoker]
"""Middleware: takes the inner call, returns the call that surrounds it."""
Listener = Callable[["Envelope[Any]"], object]
"""The `on_send` of a stamp that has one: called in the sender's thread or task, before the envelope is admitted."""
Hook = Callable[["Context", "Envelope[P]"], object]
"""A before, after or success hook."""
FailureHook = Callable[["Context", "Envelope[P]", Any], "Decision | Awaitable[Decision | None] | None"]
"""Told the error of a run; answers what follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Handling:
    """What surrounds the call of an envelope: time, schedule, hooks and stamps."""

    deadline: float = 0.0
    schedule: Schedule | None = None
    ticks: Every | None = None
    """The schedule, if the queue itself can follow it: no user code, no time of day, no jitter."""
    before_hook: Callable[..., Any] | None = None
    after_hook: Callable[..., Any] | None = None
    success_hook: Callable[..., Any] | None = None
    failure_hook: Callable[..., Any] | None = None
    stamps: tuple[Stamp, ...] = ()
    on_send: tuple[Listener, ...] = ()
    """Which of the stamps are told of each send."""
    sender: Any = None
    """What a listener noted of the last send."""
    is_staged: bool = False
    """Does a run that succeeds take more steps than the call?"""


ASYNC, SPECIAL = 1, 2

PLAIN = Handling()
"""The handling of an envelope that has none of its own."""


class Envelope(Generic[P]):
    """One piece of work: `invoke(ctx, envelope)`, once or on a schedule.

    `key` is the identity for deduplication; without one, the object itself is. `payload` is the
    user's and may be replaced; all else is fixed.
    """

    __slots__ = ("_handling", "_id", "_invoke", "_key", "_lane", "_priority", "_type", "payload")

    _lane: int
    """ASYNC if invoke or a hook is a coroutine function, SPECIAL if it has a key, a priority or a schedule; 0: neither."""

    def __init__(
        self,
        invoke: Callable[[Context, Envelope[P]], Any],
        *,
        id: object = None,
        type: str = "",
        payload: P = None,  # type: ignore[assignment]
        interval: Seconds = 0,
        schedule: Schedule | None = None,
        deadline: Seconds = 0,
        before_hook: Hook[P] | None = None,
        after_hook: Hook[P] | None = None,
        success_hook: Hook[P] | None = None,
        failure_hook: FailureHook[P] | None = None,
        stamps: Iterable[Stamp] = (),
        priority: int = 0,
        key: Hashable = None,
    ) -> None:
        self._lane = ASYNC if is_coroutine_function("invoke", invoke) else 0
        if not isinstance(type, str):
            raise BadFieldsError(f"type must be a string, got {type!r}")
        if priority.__class__ is not int:
            raise BadFieldsError(f"priority must be an integer, got {priority!r}")
        if key is not None:
            _check_key(key)
        self._invoke = invoke
        self._id = id
        self._type = type
        self.payload = payload
        self._priority = priority
        self._key = key
        self._handling: Handling | None = None
        if key is not None or priority:
            self._lane |= SPECIAL
        hooks = (before_hook, after_hook, success_hook, failure_hook)
        if (
            hooks == _NO_HOOKS
            and stamps == ()
            and schedule is None
            and _is_zero(interval)
            and _is_zero(deadline)
        ):
            return
        self._handling = _handling(interval, schedule, deadline, hooks, stamps)
        if self._handling.schedule is not None or self._handling.on_send:
            self._lane |= SPECIAL
        if hooks != _NO_HOOKS:
            named = zip(_HOOK_NAMES, hooks, strict=True)
            for name, hook in named:
                if hook is not None and is_coroutine_function(name, hook):
                    self._lane |= ASYNC
                    # Why: the fast path takes ASYNC to mean that invoke is.
                    self._handling = replace(self._handling, is_staged=True)

    @property
    def invoke(self) -> Callable[[Context, Envelope[P]], Any]:
        return self._invoke

    @property
    def id(self) -> object:
        return self._id

    @property
    def type(self) -> str:
        return self._type

    @property
    def priority(self) -> int:
        return self._priority

    @property
    def key(self) -> Hashable:
        return self._key

    @property
    def schedule(self) -> Schedule | None:
        return (self._handling or PLAIN).schedule

    @property
    def interval(self) -> float:
        """The seconds between two runs; 0 for one that runs once or by cron."""
        return self.schedule.interval if self.schedule is not None else 0.0

    @property
    def deadline(self) -> float:
        return (self._handling or PLAIN).deadline

    @property
    def before_hook(self) -> Hook[P] | None:
        return (self._handling or PLAIN).before_hook

    @property
    def after_hook(self) -> Hook[P] | None:
        return (self._handling or PLAIN).after_hook

    @property
    def success_hook(self) -> Hook[P] | None:
        return (self._handling or PLAIN).success_hook

    @property
    def failure_hook(self) -> FailureHook[P] | None:
        return (self._handling or PLAIN).failure_hook

    @property
    def stamps(self) -> tuple[Stamp, ...]:
        return (self._handling or PLAIN).stamps

    @property
    def is_async(self) -> bool:
        """Is `invoke` or a hook a coroutine function?"""
        return bool(self._lane & ASYNC)

    def __repr__(self) -> str:
        # Why not the payload: a repr ends up in logs.
        key = "" if self._key is None else f", key={self._key!r}"
        return f"Envelope(type={self._type!r}, id={self._id!r}{key})"


def identity_of(envelope: Envelope[Any]) -> Hashable:
    """What makes two sends the same work: the key, or else the object."""
    return envelope if envelope._key is None else envelope._key


def once(
    invoke: Callable[[Context, Envelope[P]], Any],
    *,
    deadline: Seconds = 0,
    payload: P = None,  # type: ignore[assignment]
) -> Envelope[P]:
    """An envelope that runs once."""
    return Envelope(invoke, deadline=deadline, payload=payload)


def every(
    interval: Seconds,
    invoke: Callable[[Context, Envelope[P]], Any],
    *,
    deadline: Seconds = 0,
    payload: P = None,  # type: ignore[assignment]
) -> Envelope[P]:
    """An envelope that runs at once and then again, `interval` seconds after each run."""
    return Envelope(
        invoke, interval=duration("interval", interval, positive=True), deadline=deadline, payload=payload
    )


_HOOK_NAMES = ("before_hook", "after_hook", "success_hook", "failure_hook")
_NO_HOOKS = (None, None, None, None)


def _handling(
    interval: Seconds,
    schedule: Schedule | None,
    deadline: Seconds,
    hooks: tuple[Callable[..., Any] | None, ...],
    stamps: Iterable[Stamp],
) -> Handling:
    seconds = duration("interval", interval)
    if schedule is not None:
        if seconds:
            raise BadFieldsError(
                f"interval and schedule exclude each other, got {interval!r} and {schedule!r}"
            )
        if not hasattr(schedule, "next_due") or isinstance(schedule, type):
            raise BadFieldsError(f"schedule must be Every(...) or Cron(...), got {schedule!r}")
    elif seconds:
        schedule = Every(seconds)
    limit = duration("deadline", deadline)
    if schedule is not None and 0 < schedule.interval < limit:
        raise BadIntervalsError(
            f"deadline must not be longer than the interval: {limit:g} s > {schedule.interval:g} s; "
            "shorten the deadline or lengthen the interval"
        )
    inner = check_stamps(stamps)
    before, after, success, failure = hooks
    return Handling(
        deadline=limit,
        schedule=schedule,
        ticks=schedule if type(schedule) is Every and not schedule.jitter else None,
        before_hook=before,
        after_hook=after,
        success_hook=success,
        failure_hook=failure,
        stamps=inner,
        on_send=listeners(inner),
        is_staged=bool(limit or before or after or success or inner),
    )


def check_stamps(stamps: Iterable[Stamp]) -> tuple[Stamp, ...]:
    """The stamps as a tuple; BadFieldsError unless each is callable."""
    try:
        checked = tuple(stamps)
    except TypeError:
        raise BadFieldsError(f"stamps must be a list of stamps, got {stamps!r}") from None
    for stamp in checked:
        if not callable(stamp):
            raise BadFieldsError(f"stamps must be callables, got {stamp!r}")
    return checked


def listeners(stamps: tuple[Stamp, ...]) -> tuple[Listener, ...]:
    """The `on_send` of each stamp that has one."""
    return tuple(stamp.on_send for stamp in stamps if hasattr(stamp, "on_send"))


def _is_zero(value: Seconds) -> bool:
    return value.__class__ is int and value == 0


def _check_key(key: Hashable) -> None:
    try:
        hash(key)
    except TypeError:
        raise BadFieldsError(f"key must be hashable, got {key!r}") from None


_CO_GENERATOR, _CO_COROUTINE, _CO_ASYNC_GENERATOR = 0x20, 0x80, 0x200
_CO_SPECIAL = _CO_GENERATOR | _CO_COROUTINE | _CO_ASYNC_GENERATOR


def is_coroutine_function(field: str, function: Any) -> bool:
    """Whether it is one; BadFieldsError if calling it would run nothing."""
    # Why by hand first: inspect takes microseconds, and nearly all are plain or coroutine functions.
    code = getattr(function, "__code__", None)
    if code is not None and code.co_flags & _CO_SPECIAL in (0, _CO_COROUTINE):
        return bool(code.co_flags & _CO_COROUTINE)
    if not callable(function):
        raise BadFieldsError(f"{field} must be callable, got {function!r}")
    call = function if code is not None else type(function).__call__
    if isgeneratorfunction(function) or isasyncgenfunction(function):
        raise BadFieldsError(
            f"{field} is a generator function, and calling it runs nothing, got {function!r}"
        )
    return iscoroutinefunction(function) or iscoroutinefunction(call)
