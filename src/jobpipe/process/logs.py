"""Logs: every event is one line on stderr, whatever was in the strings, as text or as JSON.

Line ends, escape sequences and other characters that a terminal would act on are escaped; an exception is
part of its line. Secrets are kept out by those who log: a store shows its URL without them.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, TextIO

from ..model.text import message_of, text_of

_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "color_message"}
"""What every record has; the rest was given as `extra`. (color_message: uvicorn's twin of the message.)"""
_LEVELS = {
    "httpx": logging.WARNING,
    "httpcore": logging.WARNING,
    "rate_envelope_queue": logging.ERROR,
    "opentelemetry.trace": logging.ERROR,
}
"""Why: the first two log every URL that they call, with its secrets; of runs that fail or are cancelled, the runner tells;
and the last one warns of each header that it cannot read, of which strangers can send many."""


def escape(text: str) -> str:
    """The text with everything that is not printable, line ends among them, as an escape sequence."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


class TextFormatter(logging.Formatter):
    """`time level logger message key=value …`"""

    def format(self, record: logging.LogRecord) -> str:
        parts = [_time(record), record.levelname, escape(record.name), escape(message_of(record))]
        parts += [f"{escape(key)}={_quoted(value)}" for key, value in _extras(self, record).items()]
        return " ".join(parts)


class JsonFormatter(logging.Formatter):
    """An object a line: `time`, `level`, `logger`, `message`, and what was given beside."""

    def format(self, record: logging.LogRecord) -> str:
        event = {
            "time": _time(record),
            "level": record.levelname,
            "logger": record.name,
            "message": message_of(record),
        }
        line = json.dumps(_extras(self, record) | event, default=text_of)
        return line.replace("\x7f", "\\u007f")  # the one control character that JSON lets through


def _time(record: logging.LogRecord) -> str:
    when = datetime.fromtimestamp(record.created, UTC)
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _extras(formatter: logging.Formatter, record: logging.LogRecord) -> dict[str, Any]:
    """What was given beside the message, with the exception last."""
    found = {key: value for key, value in vars(record).items() if key not in _OWN}
    if record.exc_text:
        found["exception"] = record.exc_text
    elif record.exc_info:
        found["exception"] = formatter.formatException(record.exc_info)
    if record.stack_info:
        found["stack"] = record.stack_info
    return found


def _quoted(value: Any) -> str:
    text = text_of(value)
    if text and text.isprintable() and not any(char in text for char in ' "='):
        return text
    return '"' + escape(text).replace('"', '\\"') + '"'


_FORMATTERS: dict[str, type[logging.Formatter]] = {"text": TextFormatter, "json": JsonFormatter}


def setup_logging(
    style: str,
    stream: TextIO | None = None,
    level: str = "info",
    filters: Iterable[logging.Filter] = (),
) -> None:
    """Log everything from the level on to stderr, the program's own loggers too; called again, the last one holds."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(_FORMATTERS[style]())
    for each in filters:
        handler.addFilter(each)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name, least in _LEVELS.items():
        logging.getLogger(name).setLevel(max(least, root.level))
    logging.captureWarnings(True)
    threading.excepthook = _log_thread


def _log_thread(args: threading.ExceptHookArgs) -> None:
    """What a thread died of: the interpreter would print it over many lines."""
    if args.exc_value is None or args.exc_type is SystemExit:
        return
    name = args.thread.name if args.thread is not None else "?"
    trouble = (args.exc_type, args.exc_value, args.exc_traceback)
    logging.getLogger("jobpipe").error("the thread %s died", name, exc_info=trouble)
