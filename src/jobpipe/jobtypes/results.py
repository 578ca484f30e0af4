"""How the recorded results of steps are read: as what the function of the step is annotated to return."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from types import FunctionType
from typing import Any, TypeAlias

import msgspec

from ..errors import BadInputError, StepResultError
from . import models
from .signature import result_model

Decode: TypeAlias = Callable[[bytes, str], Any]
"""What a step of that name returned, from its JSON."""


def result_of(name: str) -> str:
    """What errors call the result of the step of that name."""
    return f"the result of step {name!r}"


def decoder_of(function: Callable[..., Any]) -> Decode:
    """From JSON to what the function says that it returns; with the name of the step."""
    if not callable(function):
        raise BadInputError("function", f"must be a function, got {function!r}")
    holds_others = not isinstance(function, FunctionType) or function.__closure__ or function.__defaults__
    # Why not always known: what a function holds, such as a connection, is not to be kept.
    return _decoder(function) if holds_others else _known_decoder(function)


def _decoder(function: Callable[..., Any]) -> Decode:
    try:
        read = msgspec.json.Decoder(result_model(function), dec_hook=models.make).decode
    except (TypeError, ValueError):
        read = msgspec.json.decode
    called = getattr(function, "__name__", "its function")

    def decode(raw: bytes, name: str) -> Any:
        try:
            return read(raw)
        except msgspec.ValidationError as error:
            raise StepResultError(
                result_of(name), f"does not fit what {called} is annotated to return: {error}"
            ) from None

    return decode


_known_decoder = lru_cache(maxsize=1_000)(_decoder)
