"""Signature: the parameters of a handler, and how a payload becomes its arguments.

A handler takes nothing; one argument, which is the payload; or several, and the payload is an object of them, without
those that were left to their defaults. Whatever does not fit is a BadInputError that names the argument.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any, Union, get_type_hints

import msgspec
from msgspec import UNSET, UnsetType

from ..errors import BadInputError
from ..model.text import did_you_mean
from ..model.validation import bad_input
from . import models

_WHERE = "payload"
_VARIABLE = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}


class Signature:
    """What a handler takes, read when it is registered."""

    def __init__(self, handler: Callable[..., Any], name: str) -> None:
        self._parameters = _parameters(handler)
        self._required = [each.name for each in self._parameters if each.default is each.empty]
        self.model: Any = Any
        """What a payload must be; Any where anything goes."""
        self.decode = _decoder(Any, _WHERE)
        """From a stored payload to what `call` takes; BadInputError."""
        types = {each.name: _resolved(handler, each) for each in self._parameters}
        try:
            if len(types) == 1:
                self._take_one(*types.values())
            elif types:
                self._take_several(types)
        except TypeError as error:
            raise BadInputError(
                f"the payload of {name!r}", f"has a type that is not supported: {error}"
            ) from None
        self.call = self._caller(handler)
        """The handler, called with what `decode` returned."""

    @property
    def takes_arguments(self) -> bool:
        return bool(self._parameters)

    def payload(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """The payload of a call with these arguments; BadInputError naming one that is missing, or too many."""
        names = [each.name for each in self._parameters]
        positional = [each.name for each in self._parameters if each.kind is not each.KEYWORD_ONLY]
        if len(args) > len(positional):
            raise BadInputError(
                _WHERE, f"takes at most {len(positional)} positional arguments, got {len(args)}"
            )
        given = dict(zip(positional, args, strict=False))
        for name in kwargs:
            if name not in names:
                raise BadInputError(f"{_WHERE}.{name}", f"is not a known field{did_you_mean(name, names)}")
            if name in given:
                raise BadInputError(f"{_WHERE}.{name}", "is given twice")
        given |= kwargs
        for name in self._required:
            if name not in given:
                raise BadInputError(f"{_WHERE}.{name}", "is required")
        return given if len(names) > 1 else next(iter(given.values()), None)

    def _take_one(self, model: Any) -> None:
        self.model = model
        decode = _decoder(model, f"{_WHERE}.")
        default = self._parameters[0].default
        # Why: null is what a job without a payload has, and then the default counts.
        self.decode = decode if self._required else lambda raw: default if raw == b"null" else decode(raw)

    def _take_several(self, types: Mapping[str, Any]) -> None:
        fields = [
            (name, type) if name in self._required else (name, Union[type, UnsetType], UNSET)  # noqa: UP007 # Why: not every type has an `|`
            for name, type in types.items()
        ]
        self.model = msgspec.defstruct("Arguments", fields, kw_only=True, forbid_unknown_fields=True)
        decode_object = _decoder(self.model, f"{_WHERE}.")
        sole = self._required[0] if len(self._required) == 1 else ""
        decode_sole = _decoder(types[sole], f"{_WHERE}.{sole}.") if sole else None

        def decode(raw: bytes) -> dict[str, Any]:
            if decode_sole is not None and raw[:1] != b"{":
                return {sole: decode_sole(raw)}
            given = decode_object(b"{}" if raw == b"null" else raw)
            return {name: value for name in types if (value := getattr(given, name)) is not UNSET}

        self.decode = decode

    def _caller(self, handler: Callable[..., Any]) -> Callable[[Any], Any]:
        if not self._parameters:
            return lambda _: handler()
        if len(self._parameters) == 1:
            (only,) = self._parameters
            # Why itself: most handlers are such, and there is a call for each job.
            is_named = only.kind is only.KEYWORD_ONLY
            return (lambda value: handler(**{only.name: value})) if is_named else handler
        unnamed = {each.name: each.default for each in self._parameters if each.kind is each.POSITIONAL_ONLY}

        def call(given: dict[str, Any]) -> Any:
            args = [given.get(name, default) for name, default in unnamed.items()]
            return handler(*args, **{name: value for name, value in given.items() if name not in unnamed})

        return call if unnamed else lambda given: handler(**given)


def _decoder(model: Any, where: str) -> Callable[[bytes], Any]:
    """From JSON to the model; TypeError if there can be no such decoder."""
    read = msgspec.json.Decoder(model, dec_hook=models.make).decode
    models.schema_of(model)  # Why: a decoder takes classes that it can never make

    def decode(raw: bytes) -> Any:
        try:
            return read(raw)
        except msgspec.ValidationError as error:
            # Why without the value: the error is logged too, and payloads may hold secrets.
            found = models.problem_of(error, where)
            raise found or bad_input(error, None, model, where, is_private=True) from None
        except msgspec.DecodeError as error:
            raise BadInputError(_WHERE, f"in the store is not JSON: {error}") from None

    return decode


def _parameters(handler: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters that a payload may fill; BadInputError if it can be no handler."""
    if not callable(handler):
        raise BadInputError("handler", f"must be a function, got {handler!r}")
    if inspect.isgeneratorfunction(handler) or inspect.isasyncgenfunction(handler):
        raise BadInputError(
            "handler", f"is a generator function, and calling it runs nothing, got {handler!r}"
        )
    bound = handler.keywords if isinstance(handler, partial) else {}
    found = [each for each in inspect.signature(handler).parameters.values() if each.name not in bound]
    for each in found:
        if each.kind in _VARIABLE:
            raise BadInputError(
                "handler",
                f"must name its parameters, so that payloads can be checked: {handler!r} takes "
                f"{_VARIABLE[each.kind]}{each.name}",
            )
    return found


def result_model(handler: Callable[..., Any]) -> Any:
    """What the handler says that it returns; Any where that is for mypy only."""
    annotation = inspect.signature(handler).return_annotation
    returned = inspect.Parameter("returned", inspect.Parameter.KEYWORD_ONLY, annotation=annotation)
    try:
        return _resolved(handler, returned)
    except BadInputError:
        return Any


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
