"""A rule that is held for many cases in one test."""

from __future__ import annotations

import pytest

from .support.each import for_each


def test_a_failure_names_every_case_that_breaks_the_rule() -> None:
    def rule(number: int) -> None:
        assert number % 2 == 0

    for_each([2, 4])(rule)()
    with pytest.raises(AssertionError, match=r"(?s)^3: .*\n5: "):
        for_each([2, 3, 4, 5])(rule)()


def test_a_rule_without_cases_fails() -> None:
    with pytest.raises(AssertionError, match="without cases"):
        for_each(list[int]())(lambda _: None)()
