"""The verbs of the store that a child may call through its worker, with what goes in and comes out of each as MessagePack.

The types are those that `stores.base.Store` declares. What leases jobs, and what a verb does on the caller's own connection,
is not among them.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import cache
from typing import Any, Final, get_type_hints

import msgspec

from ...model.job import JobStatus
from ...model.newjob import Receipt
from ...stores.base import Store
from .messages import Fault, encode, error_of

_OF_WORKERS: Final = {
    *("claim", "begin", "extend", "progress", "write_logs", "settle", "release", "rescue", "prune", "beat"),
    *("fire_tick", "export", "adopt", "discard", "migrate", "check", "sibling", "close", "watch"),
}
READING: Final = frozenset(
    ("get", "logs", "page", "counts", "failures", "key_of", "running_of", "limits", "ahead", "schedules")
) | {"events", "last_event", "workers", "durable"}
"""Verbs that wait for nobody's transaction."""
_RESULTS: Final[Mapping[str, Any]] = {
    "insert": list[list[Receipt] | Fault],
    "retry": list[JobStatus | Fault | None],
}
"""Of the verbs that return errors."""


def _is_forwarded(name: str, verb: Any) -> bool:
    return (
        not name.startswith("_")
        and inspect.isfunction(verb)
        and name not in _OF_WORKERS
        and "connection" not in inspect.signature(verb).parameters
    )


FORWARDED: Final = frozenset(name for name, verb in inspect.getmembers(Store) if _is_forwarded(name, verb))


class Verb:
    """How a verb is called from another process."""

    def __init__(self, name: str) -> None:
        verb = getattr(Store, name)
        self._signature = inspect.signature(verb)
        hints = get_type_hints(verb)
        result = _RESULTS.get(name, hints.pop("return"))
        hints.pop("return", None)
        fields = [(each, hint | msgspec.UnsetType, msgspec.UNSET) for each, hint in hints.items()]
        self._arguments = msgspec.msgpack.Decoder(msgspec.defstruct(name, fields, kw_only=True))
        self._result = msgspec.msgpack.Decoder(result)
        self._returns_errors = name in _RESULTS

    def encode_arguments(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bytes:
        """The arguments of a call, by name."""
        named = dict(self._signature.bind(None, *args, **kwargs).arguments)
        del named["self"]
        return encode(named)

    def decode_arguments(self, raw: bytes) -> dict[str, Any]:
        """The arguments of a call, by name, as the store wants them."""
        found = self._arguments.decode(raw)
        named = {name: getattr(found, name) for name in found.__struct_fields__}
        return {name: value for name, value in named.items() if value is not msgspec.UNSET}

    def decode_result(self, raw: bytes) -> Any:
        """What the verb returned."""
        result = self._result.decode(raw)
        if self._returns_errors:
            return [error_of(each) if isinstance(each, Fault) else each for each in result]
        return result


@cache
def verb_of(name: str) -> Verb:
    """The verb of that name."""
    return Verb(name)
