"""Capture: what handlers log through `logging`, and print if that is wanted, goes to the job that they run.

It is a handler of the root logger, so that levels, filters and `propagate` hold as the program has set them. The job is
found by the context: also from tasks, and from threads that have got the context along.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable
from typing import Any, TextIO

from ..jobtypes.current import log_of_current
from ..model.text import message_of

OFF, LOGGING, ALL = "off", "logging", "all"
_LEAST = logging.INFO
not_kept: set[str] = set()
"""Loggers of frameworks: what they say of a run is not what its handler has logged."""
_formatter = logging.Formatter()


class Capture(logging.Handler):
    """The log handler of all services of the process: with two, each line would be kept twice."""

    def __init__(self) -> None:
        super().__init__(_LEAST)
        self.users = 0

    def handle(self, record: logging.LogRecord) -> bool:
        """Why not `emit`: that has a lock around it, for which the handlers of all threads would wait."""
        if not self.filter(record):
            return False
        log = log_of_current()
        if log is not None and record.name not in not_kept:
            try:
                log.add(record.levelname, record.name, full_message(record))
            except Exception:  # Why: a line in the log never costs the job
                self.handleError(record)
        if len(logging.root.handlers) == 1:
            _print_as_before(self, record)
        return True


def full_message(record: logging.LogRecord) -> str:
    """What it says, with the exception and the stack that it has."""
    text = message_of(record)
    if record.exc_info:
        text += f"\n{_formatter.formatException(record.exc_info)}"
    elif record.exc_text:
        text += f"\n{record.exc_text}"
    if record.stack_info:
        text += f"\n{record.stack_info}"
    return text


def _print_as_before(own: logging.Handler, record: logging.LogRecord) -> None:
    """A program that has set up no handler gets warnings on stderr; logging would take ours for one."""
    last = logging.lastResort
    if last is None or record.levelno < last.level:
        return
    logger: logging.Logger | None = logging.getLogger(record.name)
    while logger is not None:
        if any(handler is not own for handler in logger.handlers):
            return
        logger = logger.parent if logger.propagate else None
    last.handle(record)


class _Stdout:
    """The standard output, of which the job gets a copy; one for all services of the process."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.users = 0

    def write(self, text: str) -> int:
        log = log_of_current()
        if log is not None:
            log.print(text)
        return self.stream.write(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


class Captures:
    """What a service has set up, and takes down again."""

    def __init__(self, mode: str) -> None:
        self.mode = mode
        self._handler: Capture | None = None
        self._stdout: _Stdout | None = None

    def start(self) -> None:
        """Capture from now on."""
        if self.mode != OFF:
            others = (each for each in logging.root.handlers if isinstance(each, Capture))
            self._handler = next(others, None) or Capture()
            self._handler.users += 1
            self.renew()
        if self.mode == ALL:
            self._stdout = sys.stdout if isinstance(sys.stdout, _Stdout) else _Stdout(sys.stdout)
            self._stdout.users += 1
            sys.stdout = self._stdout

    def renew(self) -> None:
        """Capture again, if the program has set up `logging` anew meanwhile, which takes all handlers down."""
        if self._handler is not None and self._handler not in logging.root.handlers:
            logging.root.addHandler(self._handler)

    def stop(self) -> None:
        """Capture no more."""
        handler, self._handler = self._handler, None
        if handler is not None:
            handler.users -= 1
            if not handler.users:
                logging.root.removeHandler(handler)
        stdout, self._stdout = self._stdout, None
        if stdout is not None:
            stdout.users -= 1
            if not stdout.users and sys.stdout is stdout:
                sys.stdout = stdout.stream
