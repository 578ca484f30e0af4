"""RemoteStore: the store of the worker, as a child uses it: through the worker, on every kind of store.

What is written on a connection of the handler's own is written in this process, by a store that is opened for that.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, Protocol, Self

from msgspec.structs import replace

from ...model.text import masked
from ...stores import open_store
from ...stores.base import Capabilities, News, Store
from ...stores.guests import lent_connections
from .verbs import FORWARDED, READING, verb_of

_LOOK = 0.25
"""Seconds between two looks of a handler that waits for what happens in the store."""


class Calls(Protocol):
    """Calls the worker."""

    def call(self, verb: str, arguments: bytes) -> bytes: ...


class RemoteStore:
    """A store behind a socket; its verbs may be called from any thread."""

    def __init__(self, worker: Calls, url: str, capabilities: Capabilities) -> None:
        self._worker = worker
        self._whole_url = url
        self.url = masked(url)
        self.capabilities = replace(capabilities, blocking=True, push=False)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return partial(self._call, name) if name in FORWARDED else getattr(self._local, name)

    def _call(self, name: str, /, *args: Any, **kwargs: Any) -> Any:
        if name not in READING and lent_connections():
            # Why: the worker would wait for the transaction of the handler, and the handler for the worker. A write of
            # nothing is refused where that is so.
            self._local.write_steps(())
        verb = verb_of(name)
        return verb.decode_result(self._worker.call(name, verb.encode_arguments(args, kwargs)))

    @cached_property
    def _local(self) -> Store:
        """For what happens on the caller's own connection."""
        return open_store(self._whole_url)

    def watch(self, news: News) -> RemoteWatch:
        """One that looks again and again."""
        return RemoteWatch()

    def sibling(self) -> Self:
        return self

    def close(self) -> None:
        """Nothing: the connection is that of the process."""


class RemoteWatch:
    """Says every now and then that there may be news."""

    def __init__(self) -> None:
        closed = threading.Event()
        self._wait: Callable[[float], bool] = closed.wait
        self.close = closed.set

    def wait(self, timeout: float) -> bool:
        return not self._wait(min(timeout, _LOOK))
