"""RedisWatch: told of changes by a subscription, on a connection of its own.

A hint only: what is published while the connection is down is not heard, so a new connection counts as news. A
peer that has gone without a word is found out by asking for a sign of life.
"""

from __future__ import annotations

import selectors
import socket
import threading
import time
from typing import Any

import redis

from ..base import News
from .server import Server

_QUIET = 2.0
"""Seconds without a word, after which it is asked for one; and again so many, after which it counts as gone."""


class RedisWatch:
    """A subscription to one of the store's channels."""

    def __init__(self, server: Server, news: News) -> None:
        self._server = server
        self._channel = f"{server.address.root}:{news}"
        self._lock = threading.Lock()
        """Held by `wait`, and by who closes what it waits on."""
        self._bell, self._ear = socket.socketpair()
        self._is_closed = False
        self._connection: Any = None
        self._heard_at = self._asked_at = 0.0
        try:
            with server.mapped_errors():
                self._connect()
        except BaseException:
            self.close()
            raise

    def _connect(self) -> None:
        connection = self._server.open()
        try:
            connection.send_command("SUBSCRIBE", self._channel)
            connection.read_response()
        except BaseException:
            connection.disconnect()
            raise
        self._connection = connection
        self._heard_at, self._asked_at = time.monotonic(), 0.0

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.disconnect()

    def wait(self, timeout: float) -> bool:
        until = time.monotonic() + timeout
        with self._lock, self._server.mapped_errors():
            while not self._is_closed:
                if self._connection is None:
                    self._connect()
                    return True
                try:
                    if self._is_told(until):
                        return True
                except (redis.RedisError, OSError):
                    self._disconnect()
                    continue
                if time.monotonic() >= until:
                    return False
        return False

    def _is_told(self, until: float) -> bool:
        """Wait for one thing to happen: a message, the end of the time, or that it is time to ask."""
        connection = self._connection
        if not connection.can_read():
            now = time.monotonic()
            if self._asked_at and now >= self._asked_at + _QUIET:
                raise redis.TimeoutError("no sign of life")
            if not self._asked_at and now >= self._heard_at + _QUIET:
                connection.send_command("PING")
                self._asked_at = now
            quiet_at = (self._asked_at or self._heard_at) + _QUIET
            with selectors.DefaultSelector() as selector:
                selector.register(connection._sock, selectors.EVENT_READ)
                selector.register(self._ear, selectors.EVENT_READ)
                selector.select(max(min(until, quiet_at) - now, 0.0))
        is_told = False
        while not self._is_closed and connection.can_read():
            is_told |= connection.read_response()[0] == b"message"
            self._heard_at, self._asked_at = time.monotonic(), 0.0
        return is_told

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._bell.send(b"!")
        with self._lock:
            self._disconnect()
            self._bell.close()
            self._ear.close()
