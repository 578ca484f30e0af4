"""JobpipeTesting: the type of the pytest fixture `jobpipe_testing`, for the annotations of tests."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ...app import Jobpipe
    from .tester import JobTester


class JobpipeTesting(Protocol):
    """Begins a block of `pipe.testing()` that lasts until the end of the test."""

    def __call__(self, pipe: Jobpipe, *, start: datetime | None = None, workers: int = 1) -> JobTester:
        """The jobs of the block."""
