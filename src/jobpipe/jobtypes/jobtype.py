"""JobType: a handler with its name, its payload's model and its defaults.

It turns what a caller gives into the JSON that is stored, and what is stored into the handler's argument;
both ways the model is checked. It runs nothing by itself.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    ParamSpec,
    Protocol,
    TypedDict,
    TypeVar,
    Unpack,
    get_type_hints,
)

import msgspec
from msgspec import UNSET

from rate_envelope_queue import Rate

from ..errors import BadInputError
from ..gateway.limits import key_of, limit_of
from ..model import json
from ..model.backoff import Backoff
from ..model.gate import Limit
from ..model.ids import check_name
from ..model.job import DEFAULT_QUEUE, DEFAULT_RETRIES
from ..model.request import JobOptions, JobRequest, read
from ..model.text import did_you_mean
from ..model.validation import bad_input

if TYPE_CHECKING:
    from ..model.newjob import Receipt

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class Defaults:
    """What a job of the type has where the caller says nothing."""

    queue: str
    max_retries: int
    priority: int
    deadline: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """On which terms the jobs of a type run."""

    defaults: Defaults
    backoff: Backoff
    limit: Limit | None
    key: Callable[[Any], Any] | None
    check: Callable[[Any], object] | None


class TypeOptions(TypedDict, total=False):
    """The options of a job type."""

    queue: str
    max_retries: int
    priority: int
    deadline: float | None
    base: float
    cap: float
    jitter: bool
    rate: Rate | str | None
    concurrency: int | None
    key: Callable[[Any], str | int] | None
    check: Callable[[Any], object] | None


class Enqueues(Protocol):
    """Where its jobs go: the pipe that has the type."""

    async def enqueue(
        self, type: str, payload: Any = None, *, connection: Any = None, **options: Unpack[JobOptions]
    ) -> Receipt: ...

    def enqueue_sync(
        self, type: str, payload: Any = None, *, connection: Any = None, **options: Unpack[JobOptions]
    ) -> Receipt: ...

    async def enqueue_many(self, requests: Iterable[JobRequest]) -> list[Receipt]: ...

    def enqueue_many_sync(self, requests: Iterable[JobRequest]) -> list[Receipt]: ...


class JobType(Generic[P, R]):
    """A handler that can be enqueued; calling it runs the handler here and now, as in a test."""

    def __init__(self, pipe: Enqueues, name: str, handler: Callable[P, R], terms: Terms) -> None:
        self.name = name
        self.defaults = terms.defaults
        self.backoff = terms.backoff
        self.limit = None if terms.limit is None else msgspec.structs.replace(terms.limit, type=name)
        """How fast and how many at once; None if anything goes."""
        self._key = terms.key
        self._check = terms.check
        self.is_async = inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(
            type(handler).__call__
        )
        self._pipe = pipe
        self._handler = handler
        self._model, self.takes_payload = _payload_of(handler)
        try:
            self._decode = msgspec.json.Decoder(self._model).decode
            msgspec.json.schema(self._model)  # Why: a decoder takes classes that it can never make
        except TypeError as error:
            raise BadInputError(
                f"the payload of {name!r}", f"has a type that is not supported: {error}"
            ) from None
        self.__doc__ = handler.__doc__
        self.__name__ = getattr(handler, "__name__", name)
        self.__wrapped__ = handler

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._handler(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<job type {self.name!r}>"

    async def enqueue(
        self, payload: Any = None, *, connection: Any = None, **options: Unpack[JobOptions]
    ) -> Receipt:
        """Enqueue a job; see `Jobpipe.enqueue`."""
        return await self._pipe.enqueue(self.name, payload, connection=connection, **options)

    def enqueue_sync(
        self, payload: Any = None, *, connection: Any = None, **options: Unpack[JobOptions]
    ) -> Receipt:
        """`enqueue` from any thread, with or without an event loop."""
        return self._pipe.enqueue_sync(self.name, payload, connection=connection, **options)

    async def enqueue_many(self, payloads: Iterable[Any]) -> list[Receipt]:
        """Enqueue a job for each payload: all of them, or none."""
        return await self._pipe.enqueue_many(self._requests(payloads))

    def enqueue_many_sync(self, payloads: Iterable[Any]) -> list[Receipt]:
        """`enqueue_many` from any thread, with or without an event loop."""
        return self._pipe.enqueue_many_sync(self._requests(payloads))

    def _requests(self, payloads: Iterable[Any]) -> list[JobRequest]:
        return [read({"type": self.name, "payload": payload}) for payload in payloads]

    @property
    def is_on(self) -> bool:
        """Can its jobs be run here? A handler may say of itself that it is off."""
        return bool(getattr(self._handler, "is_on", True))

    def encode(self, payload: Any) -> bytes:
        """The payload as JSON that fits the model; BadInputError if it does not."""
        raw = json.encode(payload)
        if self._model is not Any or self._check is not None:
            self.decode(raw)
        return raw

    def decode(self, raw: bytes) -> Any:
        """The handler's argument; BadInputError naming the place that does not fit."""
        try:
            argument = self._decode(raw)
        except msgspec.ValidationError as error:
            # Why without the value: the error is logged too, and payloads may hold secrets.
            raise bad_input(error, None, self._model, "payload.", is_private=True) from None
        except msgspec.DecodeError as error:
            raise BadInputError("payload", f"in the store is not JSON: {error}") from None
        if self._check is not None:
            self._check(argument)
        return argument

    def key(self, raw: bytes) -> str | None:
        """The key of a payload for the type's limits; None if they have none."""
        return None if self._key is None else key_of(self._key, self.decode(raw))

    def run(self, argument: Any) -> Any | Awaitable[Any]:
        """Call the handler: a coroutine if it is one."""
        handler: Callable[..., Any] = self._handler
        return handler(argument) if self.takes_payload else handler()


def terms_of(options: TypeOptions) -> Terms:
    """What was said of a type, checked. Why through a request: defaults obey the same rules as the fields of a job."""
    known = TypeOptions.__annotations__
    unknown = sorted(options.keys() - known.keys())
    if unknown:
        hint = did_you_mean(unknown[0], known) or f"; known options: {', '.join(known)}"
        raise TypeError(f"unknown option {unknown[0]!r}{hint}")
    named: Mapping[str, Any] = options
    fields = {name: named[name] for name in ("queue", "max_retries", "priority") if name in named}
    if named.get("deadline") is not None:
        fields["deadline"] = named["deadline"]
    given = read(fields)
    key = named.get("key")
    return Terms(
        defaults=Defaults(
            queue=DEFAULT_QUEUE if given.queue is UNSET else check_name("queue", given.queue),
            max_retries=DEFAULT_RETRIES if given.max_retries is UNSET else given.max_retries,
            priority=0 if given.priority is UNSET else given.priority,
            deadline=None if given.deadline is UNSET else given.deadline,
        ),
        backoff=Backoff(**{name: named[name] for name in ("base", "cap", "jitter") if name in named}),
        limit=limit_of(named.get("rate"), named.get("concurrency"), key),
        key=key,
        check=named.get("check"),
    )


def takes_payload(handler: Callable[..., Any]) -> bool:
    """Does it take the payload? BadInputError if it can be no handler."""
    return _payload_of(handler)[1]


def _payload_of(handler: Callable[..., Any]) -> tuple[Any, bool]:
    """The type of the payload, and whether the handler takes it at all."""
    if not callable(handler):
        raise BadInputError("handler", f"must be a function, got {handler!r}")
    if inspect.isgeneratorfunction(handler) or inspect.isasyncgenfunction(handler):
        raise BadInputError(
            "handler", f"is a generator function, and calling it runs nothing, got {handler!r}"
        )
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = list(inspect.signature(handler).parameters.values())
    needed = [
        each
        for each in parameters
        if each.default is each.empty and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
    ]
    taken = [each for each in parameters if each.kind in positional]
    if len(needed) > 1 or (needed and needed[0] not in taken):
        raise BadInputError(
            "handler", f"must take the payload, or nothing: {handler!r} takes {len(needed)} arguments"
        )
    if not taken:
        return Any, False
    return _resolved(handler, taken[0]), True


def _resolved(handler: Callable[..., Any], parameter: inspect.Parameter) -> Any:
    """The type that the parameter's annotation names. Why it alone: what else is annotated may be for mypy only."""
    if parameter.annotation is parameter.empty:
        return Any
    function: Any = handler
    while isinstance(function, partial):
        function = function.func
    function = inspect.unwrap(function if inspect.isroutine(function) else type(function).__call__)
    holder = SimpleNamespace(__annotations__={parameter.name: parameter.annotation})
    try:
        hints = get_type_hints(holder, getattr(function, "__globals__", {}), include_extras=True)
    except NameError as error:
        raise BadInputError(
            "handler",
            f"{handler!r} has an annotation that cannot be resolved: {error}; define it at module level, "
            "outside of `if TYPE_CHECKING`",
        ) from None
    return hints[parameter.name]
