"""A running thread queue for a test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rate_envelope_queue import RateEnvelopeQueue


@pytest.fixture
def queue() -> Iterator[RateEnvelopeQueue]:
    with RateEnvelopeQueue("q", workers=2) as queue:
        yield queue
    queue.terminate()
