"""The pytest plugin: a manual clock for each test that asks for one, and the test kit of `jobpipe`.

    def test_the_report_is_made_each_hour(manual_clock):
        with RateEnvelopeQueue("reports", workers=1, clock=manual_clock) as queue:
            queue.send(every(3600, report))
            manual_clock.advance("3 days")

It comes with the package: there is nothing to set up.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

# Why not at the top: pytest imports this in every project that has the package installed.
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .testing import AsyncManualClock, ManualClock


@pytest.fixture
def manual_clock() -> ManualClock:
    """A `testing.ManualClock`: time for the thread queue that moves only by `advance`."""
    from .testing import ManualClock

    return ManualClock()


@pytest.fixture
def async_manual_clock() -> AsyncManualClock:
    """A `testing.AsyncManualClock`: time for the asyncio queue that moves only by `await advance(...)`."""
    from .testing import AsyncManualClock

    return AsyncManualClock()


@pytest.fixture
def jobpipe_testing() -> Iterator[Callable[..., Any]]:
    """`jobs = jobpipe_testing(pipe)`: as `with pipe.testing() as jobs`, until the end of the test."""
    with ExitStack() as blocks:

        def enter(pipe: Any, **options: Any) -> Any:
            return blocks.enter_context(pipe.testing(**options))

        yield enter
