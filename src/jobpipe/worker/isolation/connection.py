"""Connection: a child's end of the socket pair. A thread reads it, so that a handler that blocks does not matter.

The end of the stream means that the worker is gone: then this process ends at once, and its whole group with it.
"""

from __future__ import annotations

import itertools
import os
import signal
import socket
import threading
import traceback
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue

from .messages import Call, Finishing, Frames, Leave, Reply, Setup, Start, ToWorker, error_of, frame, to_child

_AT_ONCE = 65_536


class Connection:
    """What the child says to its worker, and hears from it; used from any thread."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._pid = os.getpid()
        self._outbox: deque[bytes] = deque()
        self._sending = threading.Lock()  # of who empties it
        self._orders: SimpleQueue[Setup | Start | Leave] = SimpleQueue()
        self._replies: dict[int, Future[bytes]] = {}
        self._numbers = itertools.count(1)
        # Why: the stream ends when this process does, also if one that it has forked lives on.
        os.register_at_fork(after_in_child=channel.close)
        threading.Thread(target=self._read, name="jobpipe-connection", daemon=True).start()

    @property
    def is_own(self) -> bool:
        """Is this the process that was started for it, and no fork of it?"""
        return os.getpid() == self._pid

    def next_order(self) -> Setup | Start | Leave:
        """What the worker wants; waits for it."""
        return self._orders.get()

    def send(self, message: ToWorker) -> None:
        """Say it; nothing more is heard of it."""
        if not self.is_own:
            raise RuntimeError("a process that the handler has forked cannot speak for its job")
        self._outbox.append(frame(message))
        # Why never waited for: a signal handler, or what is collected as garbage, may log in the middle of a message.
        while self._outbox and self._sending.acquire(blocking=False):
            try:
                while self._outbox:
                    self._channel.sendall(self._outbox.popleft())
            finally:
                self._sending.release()

    def call(self, verb: str, arguments: bytes) -> bytes:
        """Call a verb of the worker's store; what it returned."""
        return self._ask(lambda number: Call(number, verb, arguments))

    def finishing(self, run: int) -> bytes:
        """The run writes its outcome itself; what it has logged."""
        return self._ask(lambda number: Finishing(number, run))

    def _ask(self, question: Callable[[int], Call | Finishing]) -> bytes:
        number = next(self._numbers)
        reply = self._replies[number] = Future()
        try:
            self.send(question(number))
            return reply.result()
        finally:
            del self._replies[number]

    def _read(self) -> None:
        frames = Frames()
        try:
            while data := self._channel.recv(_AT_ONCE):
                for body in frames.feed(data):
                    self._handle(to_child.decode(body))
        except OSError:
            pass  # as good as the end of the stream
        except Exception:
            traceback.print_exc()
        os.killpg(0, signal.SIGKILL)

    def _handle(self, message: Setup | Start | Reply | Leave) -> None:
        if not isinstance(message, Reply):
            self._orders.put(message)
            return
        reply = self._replies.get(message.call)
        if reply is None:
            return  # who asked has gone
        if message.fault is not None:
            reply.set_exception(error_of(message.fault))
        else:
            reply.set_result(message.result)
