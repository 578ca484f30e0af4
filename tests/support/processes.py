"""Program: a real process under test, of which a test can await lines and the end."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, Queue

from .starting import popen
from .waiting import LIMIT


class Program:
    """A process in a group of its own; its two outputs are read line by line."""

    def __init__(self, arguments: list[str], folder: Path, env: Mapping[str, str] | None = None) -> None:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("JOBPIPE_")}
        self.process = popen(
            [sys.executable, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=folder,
            env={**clean, **(env or {})},
            start_new_session=True,
        )
        self.pid = self.process.pid
        self.seen: list[str] = []
        self._lines: Queue[str | None] = Queue()
        """None where an output ends."""
        self._readers = [
            threading.Thread(target=self._read, args=(stream,))
            for stream in (self.process.stdout, self.process.stderr)
        ]
        self._open = len(self._readers)
        """Outputs of which `line` has not seen the end."""
        for reader in self._readers:
            reader.start()

    def _read(self, stream: Iterator[str]) -> None:
        for line in stream:
            self._lines.put(line.rstrip("\n"))
        self._lines.put(None)

    def line(self, pattern: str) -> re.Match[str]:
        """The next line that matches."""
        try:
            while self._open:  # one may be at its end while lines of the other are still to come
                line = self._lines.get(timeout=LIMIT)
                if line is None:
                    self._open -= 1
                    continue
                self.seen.append(line)
                if found := re.search(pattern, line):
                    return found
        except Empty:
            pass
        raise AssertionError(f"no line matches {pattern!r}: {self.seen}")

    def kill(self, number: int) -> None:
        os.kill(self.pid, number)

    def code(self) -> int:
        """The exit code."""
        return self.process.wait(LIMIT)

    def rest(self) -> list[str]:
        """All lines, once every process that could still write one has ended."""
        for reader in self._readers:
            reader.join(LIMIT)
            assert not reader.is_alive(), f"a process still holds the outputs: {self.seen}"
        while not self._lines.empty():
            line = self._lines.get()
            self.seen += [] if line is None else [line]
        return self.seen

    def close(self) -> None:
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait(LIMIT)
        self.rest()
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()


@contextmanager
def program(arguments: list[str], folder: Path, env: Mapping[str, str] | None = None) -> Iterator[Program]:
    running = Program(arguments, folder, env)
    try:
        yield running
    finally:
        running.close()
