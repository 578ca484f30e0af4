"""One line an event, whatever is in it."""

from __future__ import annotations

import io
import json
import logging
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from jobpipe.process.logs import escape, setup_logging

EVIL = "a\r\nb\x1b[31mred\x00\x07\x7f\x85\x9b\u2028\u202e\ud800"


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level, hook = root.handlers[:], root.level, threading.excepthook
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    threading.excepthook = hook
    logging.captureWarnings(False)


def logged(style: str, *args: Any, **kwargs: Any) -> str:
    stream = io.StringIO()
    setup_logging(style, stream)
    logging.getLogger("some.where").warning(*args, **kwargs)
    text = stream.getvalue()
    assert text.endswith("\n")
    assert text[:-1].isprintable(), text
    return text[:-1]


class Unshowable:
    def __str__(self) -> str:
        raise RuntimeError

    __repr__ = __str__


def test_text_is_time_level_logger_message_and_pairs() -> None:
    line = logged("text", "job %s failed", "t1", extra={"attempt": 2, "reason": 'no "luck"', "empty": ""})
    time, rest = line.split(" ", 1)
    assert time.endswith("Z")
    assert rest == r'WARNING some.where job t1 failed attempt=2 reason="no \"luck\"" empty=""'


def test_json_is_an_object_a_line() -> None:
    event = json.loads(
        logged("json", "job %s failed", "tä1", extra={"attempt": 2, "level": "mine", "odd": {1}})
    )
    assert event.pop("time").endswith("Z")
    assert event == {
        "level": "WARNING",
        "logger": "some.where",
        "message": "job tä1 failed",
        "attempt": 2,
        "odd": "{1}",
    }


@pytest.mark.parametrize("style", ["text", "json"])
def test_nothing_in_a_string_can_begin_a_line_or_move_the_cursor(style: str) -> None:
    line = logged(style, "it said %s", EVIL, extra={"note": EVIL, EVIL: 1})
    assert r"a\r\nb" in line
    assert "[31mred" in line


@pytest.mark.parametrize("style", ["text", "json"])
def test_an_exception_is_on_the_same_line(style: str) -> None:
    try:
        raise ValueError(EVIL)
    except ValueError:
        line = logged(style, "it failed", exc_info=True)
    assert "Traceback (most recent call last)" in line
    assert "ValueError: a" in line


@pytest.mark.parametrize("style", ["text", "json"])
def test_what_cannot_be_formatted_is_logged_all_the_same(style: str) -> None:
    assert "%d wrong" in logged(style, "%d wrong", "x")
    assert "cannot be shown" in logged(style, "%s", Unshowable())
    assert "cannot be shown" in logged(style, "odd", extra={"thing": Unshowable()})


def test_warnings_and_dying_threads_are_lines_too() -> None:
    stream = io.StringIO()
    setup_logging("text", stream)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        setup_logging("text", stream)
        logging.captureWarnings(True)
        warnings.warn("beware", stacklevel=1)
    thread = threading.Thread(target=lambda: 1 / 0, name="doomed")
    thread.start()
    thread.join()
    first, second = stream.getvalue().splitlines()
    assert "beware" in first
    assert "the thread doomed died" in second
    assert "ZeroDivisionError" in second


def test_a_second_setup_replaces_the_first() -> None:
    assert json.loads(logged("json", "one"))
    assert " one" in logged("text", "one")


def test_what_logs_addresses_is_kept_quiet() -> None:
    stream = io.StringIO()
    setup_logging("text", stream)
    logging.getLogger("httpx").info("GET https://me:hunter2@host")
    assert stream.getvalue() == ""


def test_escape_leaves_printable_text_alone() -> None:
    assert escape("größe 漢字 ✓ \\n") == "größe 漢字 ✓ \\n"
    assert escape("\t\x1b") == r"\t\x1b"
