"""JobType: a handler with its name, its payload's model and its defaults.

It turns what a caller gives into the JSON that is stored, and what is stored into the handler's argument;
both ways the model is checked. It runs nothing by itself.
"""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Protocol, TypeVar, Unpack, overload

import msgspec

from rate_envelope_queue import Stamp

from ..gateway.limits import key_of
from ..gateway.sync import sync
from ..model import json
from ..model.request import JobOptions, JobRequest, read
from . import models
from .current import CurrentJob, call_as
from .signature import Signature, result_model
from .terms import Terms

if TYPE_CHECKING:
    from ..model.newjob import Receipt

P = ParamSpec("P")
R = TypeVar("R", covariant=True)
A = TypeVar("A")
Schema = tuple[Any, dict[str, Any]]
"""A schema, and the components that it refers to."""


class Enqueues(Protocol):
    """Where its jobs go: the pipe that has the type."""

    @abstractmethod
    async def enqueue(
        self, type: str, payload: Any = None, *, connection: Any = None, **options: Unpack[JobOptions]
    ) -> Receipt: ...

    @abstractmethod
    async def enqueue_many(self, requests: Iterable[JobRequest]) -> list[Receipt]: ...

    @abstractmethod
    def _stand_in(self, type: str) -> CurrentJob | None:
        """What `current_job()` is in a handler that a test calls directly; None outside of `testing()`."""


class JobType(Generic[P, R]):
    """A handler that can be enqueued; calling it runs the handler here and now, as in a test."""

    def __init__(
        self, pipe: Enqueues, name: str, handler: Callable[P, R], terms: Terms, stamps: tuple[Stamp, ...] = ()
    ) -> None:
        self.name = name
        self.defaults = terms.defaults
        self.backoff = terms.backoff
        self.is_final = terms.is_final
        self.stamps = stamps + terms.stamps
        """What stands around the handler, the outermost first."""
        self.limit = None if terms.limit is None else msgspec.structs.replace(terms.limit, type=name)
        """How fast and how many at once; None if anything goes."""
        self.logs = terms.logs
        """Is what its handler logs kept with the job?"""
        self.isolate = terms.isolate
        """Does each run have a process of its own? None where the settings say so."""
        self.memory = terms.memory
        """Bytes that such a process may have; None without a bound."""
        self.max_jobs_per_child = terms.max_jobs_per_child
        self._key = terms.key
        self._check = terms.check
        self.is_async = inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(
            type(handler).__call__
        )
        self.pipe = pipe
        self._handler = handler
        self._signature = signature = Signature(handler, name)
        self.decode = signature.decode if terms.check is None else self._decode_and_check
        """From a stored payload to the argument of `run`; BadInputError naming the place that does not fit."""
        self.run: Callable[[Any], Any] = signature.call
        """Calls the handler: a coroutine if it is one."""
        self.__doc__ = handler.__doc__
        self.__name__ = getattr(handler, "__name__", name)
        self.__wrapped__ = handler

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        called: R = call_as(self.pipe._stand_in(self.name), lambda: self._handler(*args, **kwargs))
        return called

    def __repr__(self) -> str:
        return f"<job type {self.name!r}>"

    def request(self, *args: P.args, **kwargs: P.kwargs) -> JobRequest:
        """The request for a call with these arguments, for `Jobpipe.enqueue` and `enqueue_many`.

        The payload keeps what was passed; defaults are not filled in.
        """
        return JobRequest(type=self.name, payload=self._signature.payload(args, kwargs))

    # Why three: a payload is the one argument, an object of several, or nothing; each is checked by the handler's own types.
    @overload
    async def enqueue(
        self: Callable[[], Any],
        payload: None = None,
        *,
        connection: Any = None,
        **options: Unpack[JobOptions],
    ) -> Receipt: ...
    @overload
    async def enqueue(
        self: Callable[[A], Any], payload: A, *, connection: Any = None, **options: Unpack[JobOptions]
    ) -> Receipt: ...
    @overload
    async def enqueue(
        self: Callable[[Any, Any], Any],
        payload: Mapping[str, Any],
        *,
        connection: Any = None,
        **options: Unpack[JobOptions],
    ) -> Receipt: ...
    async def enqueue(
        self, payload: Any = None, *, connection: Any = None, **options: Unpack[JobOptions]
    ) -> Receipt:
        """Enqueue a job with its one argument, or an object of its arguments; see `Jobpipe.enqueue`."""
        return await self.pipe.enqueue(self.name, payload, connection=connection, **options)

    @overload
    async def enqueue_many(self: Callable[[A], Any], payloads: Iterable[A]) -> list[Receipt]: ...
    @overload
    async def enqueue_many(
        self: Callable[[Any, Any], Any], payloads: Iterable[Mapping[str, Any]]
    ) -> list[Receipt]: ...
    async def enqueue_many(self, payloads: Iterable[Any]) -> list[Receipt]:
        """Enqueue a job for each payload: all of them, or none."""
        requests = [read({"type": self.name, "payload": payload}) for payload in payloads]
        return await self.pipe.enqueue_many(requests)

    enqueue_sync = sync(enqueue)
    enqueue_many_sync = sync(enqueue_many)

    @property
    def is_on(self) -> bool:
        """Can its jobs be run here? A handler may say of itself that it is off."""
        return bool(getattr(self._handler, "is_on", True))

    def payload_schema(self, prefix: str) -> Schema | None:
        """The JSON schema of its payload, for OpenAPI; None where anything goes."""
        model = self._signature.model
        return None if model is Any else models.schema_of(model, prefix)

    def result_schema(self, prefix: str) -> Schema | None:
        """The JSON schema of what its handler says that it returns; None where that is anything, or cannot be said."""
        model = result_model(self._handler)
        try:
            return None if model in (Any, type(None)) else models.schema_of(model, prefix, "serialization")
        except TypeError:
            return None

    def encode(self, payload: Any) -> bytes:
        """The payload as JSON that fits the model; BadInputError if it does not."""
        raw = json.encode(payload)
        if self._signature.model is not Any or self._check is not None:
            self.decode(raw)
        return raw

    def _decode_and_check(self, raw: bytes) -> Any:
        argument = self._signature.decode(raw)
        if self._check is not None:
            self._check(argument)
        return argument

    def key(self, raw: bytes) -> str | None:
        """The key of a payload for the type's limits; None if they have none."""
        return None if self._key is None else key_of(self._key, self.decode(raw))
