"""How long a job waits before its next retry."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobpipe.errors import BadInputError
from jobpipe.model.outcome import Backoff

SECONDS = st.floats(0, 1e6)


def test_it_doubles_from_a_second_to_ten_minutes() -> None:
    backoff = Backoff(jitter=False)
    assert [backoff.delay(retry) for retry in range(1, 12)] == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600]


@given(base=SECONDS, cap=SECONDS, retry=st.integers(1, 101))
def test_the_delay_is_between_nothing_and_the_bound(base: float, cap: float, retry: int) -> None:
    backoff = Backoff(base, cap)
    assert 0 <= backoff.delay(retry) <= backoff.bound(retry) <= cap
    assert Backoff(base, cap, jitter=False).delay(retry) == backoff.bound(retry)


@given(retry=st.integers(1, 100))
def test_the_bound_never_shrinks(retry: int) -> None:
    assert Backoff().bound(retry) <= Backoff().bound(retry + 1)


def test_the_jitter_is_uniform_over_the_whole_bound() -> None:
    asked = []

    def uniform(low: float, high: float) -> float:
        asked.append((low, high))
        return (low + high) / 2

    assert Backoff(1, 60).delay(3, uniform) == 2
    assert asked == [(0, 4)]


def test_jitter_spreads_the_retries() -> None:
    delays = {Backoff().delay(5) for _ in range(100)}
    assert len(delays) > 50
    assert min(delays) < 4 < max(delays)


def test_the_hundredth_retry_overflows_nothing() -> None:
    assert Backoff(1e300, 1e308, jitter=False).delay(10_000) == 1e308


WRONG: list[tuple[str, Any]] = [
    *[(field, value) for field in ("base", "cap") for value in (-1, nan, inf, "1", None, True)],
    *[("jitter", value) for value in (1, None, "yes")],
]


@pytest.mark.parametrize(("field", "value"), WRONG, ids=ascii)
def test_a_wrong_value_is_refused_by_name(field: str, value: Any) -> None:
    with pytest.raises(BadInputError) as caught:
        Backoff(**{field: value})
    assert caught.value.field == field
