"""PostgresWatch: told of changes by NOTIFY, on a connection of its own.

What was said while it was not connected is lost: it takes that for a change. Who asks polls too.
"""

from __future__ import annotations

import os
import select
import threading
import time

import psycopg
from psycopg import sql

from ..base import News
from .connection import Connection, Connections
from .statements import Statements


class PostgresWatch:
    """Listens on one of the channels of the schema."""

    def __init__(self, connections: Connections, statements: Statements, news: News) -> None:
        self._connections = connections
        self._sql = statements
        self._news = news
        self._lock = threading.Lock()
        """Held by whoever waits, and by who closes in the end."""
        self._is_closed = False
        self._ear, self._bell = os.pipe()
        try:
            self._connection: Connection | None = self._listen()
        except BaseException:
            self._release()
            raise

    def wait(self, timeout: float) -> bool:
        with self._lock:
            if self._is_closed:
                return False
            if self._connection is None:
                self._connection = self._listen()
                return True
            try:
                with self._connections.mapped_errors():
                    return self._hear(self._connection, timeout)
            except BaseException:
                self._connection.close()
                self._connection = None
                raise

    def _listen(self) -> Connection:
        connection = self._connections.open()
        try:
            with self._connections.mapped_errors():
                channel = sql.Identifier(self._sql.channel(self._news))
                connection.execute(sql.SQL("LISTEN {}").format(channel))
                if self._news is News.CHANGES:
                    connection.execute(self._sql("want_changes"))
        except BaseException:
            connection.close()
            raise
        return connection

    def _hear(self, connection: Connection, timeout: float) -> bool:
        """Wait until the server speaks, somebody closes, or the time is over."""
        until = time.monotonic() + timeout
        poll = select.poll()
        poll.register(connection.fileno(), select.POLLIN)
        poll.register(self._ear, select.POLLIN)
        while True:
            connection.pgconn.consume_input()
            has_news = False
            while connection.pgconn.notifies() is not None:
                has_news = True
            if connection.pgconn.status != psycopg.pq.ConnStatus.OK:
                raise psycopg.OperationalError("the connection that listened was closed by the server")
            left = until - time.monotonic()
            if has_news or left <= 0 or self._is_closed:
                return has_news
            poll.poll(left * 1_000)

    def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        os.write(self._bell, b"!")
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None
            self._release()

    def _release(self) -> None:
        os.close(self._ear)
        os.close(self._bell)
