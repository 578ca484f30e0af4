"""Nouns and verbs that fit their numbers."""

from __future__ import annotations

import pytest

from jobpipe.model.text import counted


@pytest.mark.parametrize(
    ("number", "noun", "with_verb"),
    [
        (0, "0 jobs", "0 jobs wait"),
        (1, "1 job", "1 job waits"),
        (2, "2 jobs", "2 jobs wait"),
        (1_234, "1,234 jobs", "1,234 jobs wait"),
    ],
)
def test_what_is_counted_fits_its_number(number: int, noun: str, with_verb: str) -> None:
    assert counted(number, "job") == noun
    assert counted(number, "job", "waits", "wait") == with_verb
