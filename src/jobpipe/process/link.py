"""SupervisorLink: a child's end of the socket pair by which its supervisor holds it.

A thread reads it, so that a blocked event loop does not matter: a byte asks to stop, to accept connections, or to
accept none (`acceptors.py`), and the end of the stream means that the supervisor is gone and nobody would end this process
any more, so that it ends at once.
"""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Callable, Mapping
from queue import SimpleQueue
from typing import Any

GO, STOP, OPEN, CLOSE = b"g", b"s", b"o", b"c"
_MOST_SOCKETS = 16


class SupervisorLink:
    """What a child tells its supervisor, and hears from it."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        # Why this queue: its put may interrupt its get, in a signal.
        self._sockets: SimpleQueue[list[socket.socket]] = SimpleQueue()
        self._on_stop: Callable[[], object] | None = None
        self._on_accept: Callable[[bool], object] | None = None
        self.is_stopping = False
        threading.Thread(target=self._watch, name="jobpipe-link", daemon=True).start()

    def greet(self, settings: Mapping[str, Any]) -> list[socket.socket]:
        """Tell what this process is set to, and wait for the listening sockets; none if it is to stop."""
        self._tell({"settings": dict(settings)})
        return self._sockets.get()

    def ready(self) -> None:
        """Tell that this process does its work."""
        self._tell({"ready": True})

    def closed(self) -> None:
        """Tell that this process accepts no connections any more, and has none."""
        self._tell({"closed": True})

    def leave(self) -> None:
        """Ask to be stopped: the supervisor sees to it that callers find another process first."""
        self._tell({"leaves": True})

    def fault(self, text: str, code: int) -> int:
        """Tell why this process can never start; the exit code to end with."""
        self._tell({"fault": text, "code": code})
        return code

    def on_stop(self, callback: Callable[[], object]) -> None:
        """Call it when this process is to stop: in any thread or a signal handler, perhaps more than once, or now."""
        self._on_stop = callback
        if self.is_stopping:
            callback()

    def on_accept(self, callback: Callable[[bool], object]) -> None:
        """Call it, in a thread, when this process is to accept connections (True) or none (False); before `greet`."""
        self._on_accept = callback

    def ask_to_stop(self) -> None:
        """Stop gracefully; as often as one likes."""
        self.is_stopping = True
        self._sockets.put([])
        if self._on_stop is not None:
            self._on_stop()

    def _tell(self, message: Mapping[str, Any]) -> None:
        try:
            self._channel.sendall(json.dumps(message).encode() + b"\n")
        except OSError:
            pass  # the supervisor is gone, and so is this process in a moment

    def _watch(self) -> None:
        while True:
            try:
                data, numbers, _, _ = socket.recv_fds(self._channel, 64, _MOST_SOCKETS)
            except OSError:
                data, numbers = b"", []
            if not data:
                os._exit(1)
            if GO in data:
                self._sockets.put([socket.socket(fileno=number) for number in numbers])
            for byte in data:
                if byte in OPEN + CLOSE and self._on_accept is not None:
                    self._on_accept(byte in OPEN)
            if STOP in data:
                self.ask_to_stop()
