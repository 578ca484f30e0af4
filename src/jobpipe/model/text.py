"""Text for people: secrets masked in URLs and in what drivers say, what no store can keep cleaned, nouns that fit their numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from logging import LogRecord

HIDDEN = "***"
ESCAPES = (
    "has an unescaped @, /, ? or # in its user or password: write %40 for @, %2F for /, %3F for ?, %23 for #"
)
_PARTS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)([^?#]*)(.*)", re.DOTALL)


def masked(url: str) -> str:
    """The URL without user, password, query and fragment; no more than its scheme where these cannot be told."""
    found = _PARTS.fullmatch(url)
    if found is None:
        return HIDDEN
    scheme, place, path, rest = found.groups()
    if "@" in path + rest:  # a password with a slash that was not escaped looks so
        return f"{scheme}://{HIDDEN}"
    _, at, host = place.rpartition("@")
    return f"{scheme}://{HIDDEN if at else ''}{at}{host}{path}{f'?{HIDDEN}' if rest else ''}"


class Mask:
    """Stars in place of secrets, wherever a driver or a server repeats them.

    A user's name is among them, as many a password stands in its place. What the masked URL shows is no secret.
    """

    def __init__(self, secrets: Iterable[object], shown: str) -> None:
        texts = {text for secret in secrets if secret for text in (str(secret), quote(str(secret), safe=""))}
        hidden = [text for text in texts if not _pattern([text]).search(shown)]
        self._pattern = _pattern(hidden) if hidden else None

    def __call__(self, text: str) -> str:
        return text if self._pattern is None else self._pattern.sub(HIDDEN, text)

    def scrub(self, error: BaseException, kind: type[BaseException]) -> str:
        """What the error says, masked: also in itself and in those of its kind that led to it, for tracebacks."""
        each: BaseException | None = error
        while isinstance(each, kind):
            each.args = tuple(self(arg) if isinstance(arg, str) else arg for arg in each.args)
            each = each.__cause__ or each.__context__
        return self(str(error))


def _pattern(texts: Iterable[str]) -> re.Pattern[str]:
    """The texts as whole words, the longest first."""
    words = "|".join(map(re.escape, sorted(texts, key=len, reverse=True)))
    return re.compile(rf"(?<!\w)(?:{words})(?!\w)")


def message_of(record: LogRecord) -> str:
    """What a log record says, also if its arguments do not fit: a wrong format must not cost the line."""
    try:
        return record.getMessage()
    except Exception:
        return f"{text_of(record.msg)} (its arguments do not fit: {text_of(record.args)})"


def text_of(value: object) -> str:
    """The value as text, whatever it is."""
    try:
        return str(value)
    except Exception:
        return f"<{type(value).__name__} that cannot be shown>"


def counted(number: int, noun: str, one: str = "", many: str = "") -> str:
    """`1 job`, `3,000 jobs`; with verbs for one and for many, `1 job waits`, `0 jobs wait`."""
    verb = one if number == 1 else many
    return f"{number:,} {noun if number == 1 else f'{noun}s'}{f' {verb}' if verb else ''}"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'delay'?`, or nothing where no known name is close."""
    from difflib import get_close_matches  # Why here: needed only once something is wrong

    close = get_close_matches(name[:100], known, n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def clean(text: str, longest: int) -> str:
    """Text that every store can keep: no NUL, no lone surrogates, not longer than that."""
    if len(text) > longest:
        text = text[:longest] + "…"
    return text.encode("utf-8", "backslashreplace").decode().replace("\x00", "\\x00")
