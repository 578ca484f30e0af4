"""Words: nouns and verbs that fit their numbers."""

from __future__ import annotations


def counted(number: int, noun: str, one: str = "", many: str = "") -> str:
    """`1 job`, `3,000 jobs`; with verbs for one and for many, `1 job waits`, `0 jobs wait`."""
    verb = one if number == 1 else many
    return f"{number:,} {noun if number == 1 else f'{noun}s'}{f' {verb}' if verb else ''}"
