"""Keys: the bytes of a terminal, told apart into keys.

A key is a name (`up`, `tab`, `escape` …) or the character itself. Sequences that are not known are swallowed whole, so that no part
of one is taken for a letter.
"""

from __future__ import annotations

import re
from codecs import getincrementaldecoder

_NAMES = {
    "\t": "tab",
    "\r": "enter",
    "\n": "enter",
    "\x7f": "backspace",
    "\x08": "backspace",
    "[A": "up",
    "OA": "up",
    "[B": "down",
    "OB": "down",
    "[H": "home",
    "OH": "home",
    "[1~": "home",
    "[F": "end",
    "OF": "end",
    "[4~": "end",
    "[5~": "page up",
    "[6~": "page down",
    "[Z": "back tab",
}
_WHOLE = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|O.|[^\[O\x1b])", re.DOTALL)
_PART = re.compile(r"\x1b(\[[0-?]*[ -/]*|O)?\Z")


class KeyReader:
    """Takes bytes as they come; a sequence may come in parts."""

    def __init__(self) -> None:
        self._decoder = getincrementaldecoder("utf-8")("replace")
        self._text = ""

    @property
    def is_waiting(self) -> bool:
        """May what came last be the beginning of more?"""
        return bool(self._text)

    def feed(self, data: bytes) -> list[str]:
        """The keys that are whole now."""
        self._text += self._decoder.decode(data)
        keys: list[str] = []
        while self._text and not _PART.match(self._text):
            keys += self._next()
        return keys

    def end(self) -> list[str]:
        """No more came for a while: what waits is whole. An escape by itself is the key Esc."""
        waiting, self._text = self._text, ""
        return ["escape"] if waiting == "\x1b" else []

    def _next(self) -> list[str]:
        if self._text[0] != "\x1b":
            char, self._text = self._text[0], self._text[1:]
            key = _NAMES.get(char, char)
            return [key] if len(key) > 1 or key.isprintable() else []
        if found := _WHOLE.match(self._text):
            self._text = self._text[found.end() :]
            return [name] if (name := _NAMES.get(found[1])) and len(found[1]) > 1 else []
        self._text = self._text[1:]  # Esc, and then what is no sequence of it
        return ["escape"]
