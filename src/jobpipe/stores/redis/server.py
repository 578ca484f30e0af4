"""Server: the connections of one handle to a Redis server, scripts run on it, and its errors mapped to ours, once.

A connection that has gone stale is replaced before it is used. All keys are in one slot, so on a cluster one node
has them all: when it says that they have moved, the next call goes where they are.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.exceptions import (
    AuthenticationError,
    AuthorizationError,
    MovedError,
    NoPermissionError,
    NoScriptError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
)
from redis.retry import Retry

from ...errors import StoreAwayError, StoreError, StoreRefusedError
from .address import Address
from .scripts import Script

_PASSING = re.compile(
    r"\b(OOM|READONLY|MISCONF|CLUSTERDOWN|LOADING|BUSY|MASTERDOWN|NOREPLICAS|TRYAGAIN|ASK|MOVED)\b"
)
"""Errors of a server that time or its operator will mend."""
_CODES: dict[type[RedisError], str] = {OutOfMemoryError: "OOM", ReadOnlyError: "READONLY"}
"""Those of which redis-py cuts the code off."""
_MEANING = {
    "OOM": "it has no memory left (maxmemory)",
    "READONLY": "it is a read-only replica",
    "MISCONF": "it cannot write to its disk",
}
_ELSEWHERE = {"READONLY", "CLUSTERDOWN", "MASTERDOWN", "ASK", "MOVED"}
"""After these, another server may be the one to speak to."""
_MOST_MOVES = 3


class Server:
    """Connections to one server; threads may call at the same time, each with a connection of its own."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._home = address
        self._lock = threading.Lock()
        self._idle: list[Any] = []
        self._process = os.getpid()
        """Whose connections these are: a fork must not speak on those of its parent."""
        self._is_closed = False

    def open(self) -> Any:
        """A new connection, connected; who opens it disconnects it."""
        if self._is_closed:
            raise StoreError(f"the store {self.address.url} was closed")
        address = self.address
        connection = address.connection_class(**address.options, protocol=2, retry=Retry(NoBackoff(), 0))
        try:
            connection.connect()
        except BaseException:
            connection.disconnect()
            raise
        return connection

    def run(self, script: Script, now: str, told: bytes, *, may_repeat: bool) -> Any:
        """Run a script; once more if its connection broke, where a second time comes to the same."""
        root = self.address.root
        with self.mapped_errors():
            for _ in range(_MOST_MOVES):
                try:
                    try:
                        return self._call("EVALSHA", script.sha, 1, root, now, told)
                    except NoScriptError:
                        return self._call("EVAL", script.text, 1, root, now, told)
                    except redis.ConnectionError as error:
                        if not may_repeat or isinstance(error, AuthenticationError | AuthorizationError):
                            raise
                        return self._call("EVAL", script.text, 1, root, now, told)
                except MovedError as moved:
                    self._go_to(self._home.moved(moved.host, moved.port))
            raise StoreAwayError(f"the store {self.address.url} moves from node to node; ask again")

    def ask(self, *command: Any) -> Any:
        """The answer to one command."""
        with self.mapped_errors():
            return self._call(*command)

    def _call(self, *command: Any) -> Any:
        connection = self._take()
        try:
            connection.send_command(*command)
            answer = connection.read_response()
        except redis.ResponseError:
            self._give(connection)
            raise
        except BaseException:
            connection.disconnect()
            raise
        self._give(connection)
        return answer

    def _take(self) -> Any:
        if os.getpid() != self._process:
            self._process, self._idle = os.getpid(), []
        while True:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                return self.open()
            try:
                if not connection.can_read():
                    return connection
            except (RedisError, OSError):
                pass
            connection.disconnect()  # the server has hung up, or has said something that nobody asked for

    def _give(self, connection: Any) -> None:
        with self._lock:
            if not self._is_closed:
                self._idle.append(connection)
                return
        connection.disconnect()

    def _go_to(self, address: Address) -> None:
        """Speak to another node from now on."""
        with self._lock:
            self.address = address
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.disconnect()

    @contextmanager
    def mapped_errors(self) -> Iterator[None]:
        """Errors of redis-py as ours."""
        url, mask = self.address.url, self.address.mask
        try:
            yield
        except (AuthenticationError, AuthorizationError, NoPermissionError) as error:
            raise StoreRefusedError(
                f"the store {url} refuses this user: {mask.scrub(error, RedisError)}; see the rights that it needs in the docs"
            ) from error
        except (redis.ConnectionError, redis.TimeoutError, OSError) as error:
            self._go_to(self._home)  # the node may be gone for good
            raise StoreAwayError(
                f"the store {url} cannot be reached: {mask.scrub(error, RedisError)}"
            ) from error
        except RedisError as error:
            # Why searched for: what a script meets stands within another error.
            words = mask.scrub(error, RedisError)
            passing = _PASSING.search(f"{_CODES.get(type(error), '')} {words}")
            if passing is None:
                raise StoreError(f"the store {url} refused a command: {words}") from error
            if passing[1] in _ELSEWHERE:
                self._go_to(self._home)
            why = _MEANING.get(passing[1], words)
            raise StoreAwayError(f"the store {url} cannot be used for now: {why}") from error

    def close(self) -> None:
        """Disconnect; calls under way end first."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.disconnect()
