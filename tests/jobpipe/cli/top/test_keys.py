"""Bytes of a terminal, told apart into keys."""

from __future__ import annotations

import pytest

from jobpipe.cli.top.keys import KeyReader


@pytest.mark.parametrize(
    ("data", "keys"),
    [
        (b"pq?", ["p", "q", "?"]),
        (b"\x1b[A\x1b[B", ["up", "down"]),
        (b"\x1bOA\x1bOB", ["up", "down"]),
        (b"\t\x1b[Z", ["tab", "back tab"]),
        (b"\r\n", ["enter", "enter"]),
        (b"\x7f\x08", ["backspace", "backspace"]),
        (b"\x1b[H\x1b[1~\x1bOF\x1b[4~", ["home", "home", "end", "end"]),
        (b"\x1b[5~\x1b[6~", ["page up", "page down"]),
        ("é日".encode(), ["é", "日"]),
        (b"\x1b\x1b[A", ["escape", "up"]),
        (b"\x00\x01\x1f", []),
        (b"\xff", ["\ufffd"]),
    ],
)
def test_keys_have_names(data: bytes, keys: list[str]) -> None:
    assert KeyReader().feed(data) == keys


@pytest.mark.parametrize(
    "sequence", [b"\x1b[1;5A", b"\x1b[24~", b"\x1bOP", b"\x1b[?1;2c", b"\x1b[<0;3;4M", b"\x1bp", b"\x1b\t"]
)
def test_of_an_unknown_sequence_no_part_is_a_key(sequence: bytes) -> None:
    """The c of an answer of the terminal, or Alt+P, must not cancel or pause anything."""
    reader = KeyReader()
    assert reader.feed(sequence) + reader.end() == []
    assert reader.feed(b"q") == ["q"]


@pytest.mark.parametrize("data", [b"\x1b[A", b"\x1bOB", b"\x1b[5~", "日".encode()])
def test_a_key_may_come_in_parts(data: bytes) -> None:
    whole = KeyReader().feed(data)
    reader = KeyReader()
    assert [key for byte in data for key in reader.feed(bytes([byte]))] == whole


def test_an_escape_after_which_nothing_comes_is_a_key() -> None:
    reader = KeyReader()
    assert reader.feed(b"\x1b") == []
    assert reader.is_waiting
    assert reader.end() == ["escape"]
    assert not reader.is_waiting
    assert reader.end() == []


def test_a_sequence_that_does_not_end_is_dropped() -> None:
    reader = KeyReader()
    assert reader.feed(b"\x1b[1;") == []
    assert reader.end() == []
    assert reader.feed(b"A") == ["A"]
