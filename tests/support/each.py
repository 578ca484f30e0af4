"""One test for many cheap cases, where a test for each would take longer to be set up than to be run."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


def for_each(cases: Iterable[T]) -> Callable[[Callable[[T], None]], Callable[[], None]]:
    """Make a test of a rule that must hold for each of the cases; a failure names all for which it does not."""

    def decorate(rule: Callable[[T], None]) -> Callable[[], None]:
        def test() -> None:
            seen = 0
            broken: list[str] = []
            for case in cases:
                seen += 1
                try:
                    rule(case)
                except AssertionError as error:
                    broken.append(f"{case}: {error}")
            assert seen, "a rule without cases holds nothing"
            assert not broken, "\n".join(broken)

        test.__name__, test.__doc__, test.__module__ = rule.__name__, rule.__doc__, rule.__module__
        return test

    return decorate
