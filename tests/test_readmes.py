"""The README and its Russian translation say the same: headings, tables, commands, settings, links and code."""

from __future__ import annotations

import re
from itertools import zip_longest
from pathlib import Path

ROOT = Path(__file__).parent.parent
ENGLISH, RUSSIAN = (ROOT / name for name in ("README.md", "README.ru.md"))

_FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<code>.*?)^```$", re.DOTALL | re.MULTILINE)
_COMMENT = re.compile(r"(?:^|\s+)# (?!\w+\.py$).*$", re.MULTILINE)
_CODE = re.compile(r"`([^`]+)`")
_LINK = re.compile(r"\]\(([^)\s]+)\)")


def prose(page: Path) -> str:
    """The text without its blocks of code, and with code that goes on in the next line in one."""
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    return _CODE.sub(lambda found: " ".join(found[0].split()), text)


def headings(page: Path) -> list[int]:
    """The level of each."""
    return [len(marks) for marks in re.findall(r"^(#+) ", prose(page), re.MULTILINE)]


def rows(page: Path) -> list[tuple[int, list[str]]]:
    """The rows of all tables: the number of columns, and the code that is in them."""
    found = re.findall(r"^\|.*\|$", prose(page), re.MULTILINE)
    return [(len(re.sub(_CODE, "", row).split("|")), sorted(_CODE.findall(row))) for row in found]


def blocks(page: Path) -> list[tuple[str, str]]:
    """The blocks of code, without comments: these are translated."""
    text = page.read_text(encoding="utf-8")
    return [(found["info"], _COMMENT.sub("", found["code"])) for found in _FENCE.finditer(text)]


def test_both_have_the_same_headings() -> None:
    assert headings(RUSSIAN) == headings(ENGLISH)


def test_both_have_the_same_rows_in_their_tables() -> None:
    """A row for each command and each feature, with the same names in it."""
    pairs = zip_longest(rows(ENGLISH), rows(RUSSIAN))
    assert [pair for pair in pairs if pair[0] != pair[1]] == []
    assert len(rows(ENGLISH)) > 60


def test_both_name_the_same_commands_settings_and_pages() -> None:
    for pattern in (_CODE, _LINK):
        english, russian = (set(pattern.findall(prose(page))) for page in (ENGLISH, RUSSIAN))
        assert english - {RUSSIAN.name} == russian - {ENGLISH.name}
    assert f"]({RUSSIAN.name})" in ENGLISH.read_text(encoding="utf-8")
    assert f"]({ENGLISH.name})" in RUSSIAN.read_text(encoding="utf-8")


def test_both_show_the_same_code() -> None:
    assert blocks(RUSSIAN) == blocks(ENGLISH)
