"""The token bucket: held against a naive one, and which clock it goes by, also inside other limiters."""

from __future__ import annotations

from fractions import Fraction
from sys import float_info
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rate_envelope_queue.clock import SystemClock
from rate_envelope_queue.limiters import (
    ExponentialBackoff,
    Limiter,
    MaxOf,
    TokenBucket,
    WithMaxWait,
    give_clock,
)

from .support.limiters import HandClock, Plain, SlowClock, in_threads, waits

if TYPE_CHECKING:
    from collections.abc import Callable


def test_token_bucket_lets_a_burst_pass_and_then_paces() -> None:
    """`burst` at once, then each a whole token later than the one before: the bucket goes into debt."""
    bucket = TokenBucket(4, 2, clock=HandClock())
    assert waits(bucket, 5) == [0, 0, 0.25, 0.5, 0.75]


def test_token_bucket_is_shared_by_all_items() -> None:
    """It does not matter who takes the tokens."""
    bucket = TokenBucket(4, 2, clock=HandClock())
    assert [bucket.when(item) for item in "abcd"] == [0, 0, 0.25, 0.5]


def test_token_bucket_grows_back_with_time() -> None:
    """A debt is worked off first, at the rate, by fractions of a token too."""
    clock = HandClock(1000)
    bucket = TokenBucket(4, 2, clock=clock)
    assert waits(bucket, 4) == [0, 0, 0.25, 0.5]
    clock.at += 0.125
    assert bucket.when("a") == 0.625
    clock.at += 0.625
    assert bucket.when("a") == 0.25
    clock.at += 0.5
    assert waits(bucket, 2) == [0, 0.25]


def test_token_bucket_never_holds_more_than_its_burst() -> None:
    """A long rest fills it up and no further."""
    clock = HandClock()
    bucket = TokenBucket(4, 2, clock=clock)
    clock.at = 1e6
    assert waits(bucket, 3) == [0, 0, 0.25]
    clock.at = 2e6
    assert waits(bucket, 3) == [0, 0, 0.25]


def test_token_bucket_is_full_when_it_is_new_on_any_clock() -> None:
    """Where the clock begins does not matter, not even before zero."""
    for at in (-1e6, 0.0, 1e6):
        assert waits(TokenBucket(1, 3, clock=HandClock(at)), 4) == [0, 0, 0, 1]


def test_token_bucket_knows_no_items() -> None:
    """Forgetting gives no token back, and nothing is counted."""
    bucket = TokenBucket(4, 1, clock=HandClock())
    bucket.when("a")
    bucket.forget("a")
    assert bucket.retries("a") == 0
    assert bucket.when("a") == 0.25


def test_token_bucket_takes_a_burst_larger_than_any_float() -> None:
    """Such a bucket is never empty."""
    assert waits(TokenBucket(float_info.max, 10**400, clock=HandClock()), 3) == [0, 0, 0]


class NaiveBucket:
    """Tokens in exact fractions, as golang.org/x/time/rate counts them."""

    def __init__(self, rate: Fraction, burst: int) -> None:
        self.rate, self.burst = rate, burst
        self.tokens, self.at = Fraction(burst), Fraction(0)

    def when(self, now: Fraction) -> Fraction:
        self.tokens = min(self.tokens + (now - self.at) * self.rate, Fraction(self.burst)) - 1
        self.at = now
        return max(-self.tokens / self.rate, Fraction(0))


RATES = st.fractions(min_value=Fraction(1, 20), max_value=50, max_denominator=20)
STEPS = st.lists(
    st.fractions(min_value=0, max_value=5, max_denominator=64) | st.just(Fraction(0)), max_size=60
)


@given(rate=RATES, burst=st.integers(min_value=1, max_value=8), steps=STEPS)
def test_token_bucket_agrees_with_a_naive_one(rate: Fraction, burst: int, steps: list[Fraction]) -> None:
    """Whatever the gaps between the calls, the waits are those of exact arithmetic."""
    clock, now = HandClock(), Fraction(0)
    bucket, naive = TokenBucket(float(rate), burst, clock=clock), NaiveBucket(rate, burst)
    for step in steps:
        now += step
        clock.at = float(now)
        answer = bucket.when("a")
        assert answer >= 0
        assert answer == pytest.approx(float(naive.when(now)), abs=1e-9)


@given(rate=RATES, burst=st.integers(min_value=1, max_value=8), steps=STEPS)
def test_token_bucket_starts_no_more_than_burst_and_rate_in_any_window(
    rate: Fraction, burst: int, steps: list[Fraction]
) -> None:
    """Between any two starts there are at most `burst + rate * window` starts, both included."""
    clock = HandClock()
    bucket = TokenBucket(float(rate), burst, clock=clock)
    starts: list[float] = []
    for step in steps:
        clock.at += float(step)
        starts.append(clock.at + bucket.when("a"))
    assert starts == pytest.approx(sorted(starts), abs=1e-9)
    for first, begin in enumerate(starts):
        for last in range(first, len(starts)):
            assert last - first + 1 <= burst + float(rate) * (starts[last] - begin) + 1e-6


def goes_by(limiter: Limiter, clock: HandClock) -> bool:
    """Whether a bucket of one token a second, empty by now, grows back with this clock."""
    limiter.when("a")
    before = limiter.when("a")
    clock.at += 1
    return limiter.when("a") == before


def test_a_bucket_goes_by_the_clock_that_it_is_given() -> None:
    """In the constructor or later; the last one given later counts."""
    own, queues, another = HandClock(5), HandClock(7), HandClock(3)
    assert goes_by(TokenBucket(1, 1, clock=own), own)
    bucket = TokenBucket(1, 1)
    bucket.use_clock(queues)
    assert goes_by(bucket, queues)
    bucket.use_clock(another)
    assert goes_by(bucket, another)
    assert not goes_by(bucket, queues)


def test_a_bucket_keeps_the_clock_of_its_constructor() -> None:
    """A queue's clock does not replace one that the user chose."""
    own, queues = HandClock(), HandClock()
    bucket = TokenBucket(1, 1, clock=own)
    bucket.use_clock(queues)
    assert not goes_by(bucket, queues)
    assert goes_by(bucket, own)


def test_a_bucket_goes_by_the_system_clock_unless_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """SystemClock's monotonic time is the default."""
    hand = HandClock()
    monkeypatch.setattr(SystemClock, "now", staticmethod(hand.now))
    assert goes_by(TokenBucket(1, 1), hand)


@pytest.mark.parametrize("start", [-1e9, 0.0, 1e9])
def test_a_change_of_clock_neither_adds_nor_takes_tokens(start: float) -> None:
    """What grew back by the old clock counts; how far apart the two clocks are does not."""
    old, new = HandClock(500), HandClock(start)
    bucket = TokenBucket(1, 4)
    bucket.use_clock(old)
    assert waits(bucket, 6) == [0, 0, 0, 0, 1, 2]
    old.at += 1
    bucket.use_clock(new)
    assert bucket.when("a") == 2
    new.at += 2
    assert bucket.when("a") == 1


WRAP: list[Callable[..., MaxOf | WithMaxWait]] = [
    lambda limiter, clock=None: MaxOf(ExponentialBackoff(0, 0), limiter, clock=clock),
    lambda limiter, clock=None: WithMaxWait(limiter, 1e9, clock=clock),
    lambda limiter, clock=None: MaxOf(WithMaxWait(MaxOf(limiter), 1e9), clock=clock),
]


@pytest.mark.parametrize("wrap", WRAP)
def test_a_clock_is_handed_on_to_the_limiters_inside(wrap: Callable[..., MaxOf | WithMaxWait]) -> None:
    """From `use_clock` and from the constructor, through every layer."""
    queues, own = HandClock(5), HandClock(7)
    limiter = wrap(TokenBucket(1, 1))
    limiter.use_clock(queues)
    assert goes_by(limiter, queues)
    assert goes_by(wrap(TokenBucket(1, 1), clock=own), own)


@pytest.mark.parametrize("wrap", WRAP)
def test_a_clock_of_the_constructor_stays_in_all_layers(wrap: Callable[..., MaxOf | WithMaxWait]) -> None:
    """The user's choice outside shuts out the queue's clock, the one inside both."""
    outer, inner, queues = HandClock(1), HandClock(2), HandClock(3)
    limiter = wrap(TokenBucket(1, 1), clock=outer)
    limiter.use_clock(queues)
    assert not goes_by(limiter, queues)
    assert goes_by(limiter, outer)
    limiter = wrap(TokenBucket(1, 1, clock=inner), clock=outer)
    limiter.use_clock(queues)
    assert not goes_by(limiter, queues)
    assert not goes_by(limiter, outer)
    assert goes_by(limiter, inner)


@pytest.mark.parametrize("wrap", WRAP)
def test_a_limiter_without_use_clock_is_left_alone(wrap: Callable[..., MaxOf | WithMaxWait]) -> None:
    """A user's own limiter needs the three methods of the protocol and no more."""
    limiter = wrap(Plain(3), clock=HandClock())
    wrap(Plain()).use_clock(HandClock())
    assert limiter.when("a") == 3


def test_give_clock_reaches_who_has_use_for_it() -> None:
    """And nobody else."""
    clock, bucket = HandClock(), TokenBucket(1, 1)
    give_clock(bucket, clock)
    give_clock(Plain(), clock)
    assert goes_by(bucket, clock)


def test_many_threads_take_each_token_once() -> None:
    """No two reservations of a bucket in debt are for the same token."""
    bucket = TokenBucket(1, 1, clock=SlowClock())
    answers: list[float] = []
    in_threads(8, lambda _: answers.extend(waits(bucket, 50)))
    assert sorted(answers) == list(range(400))


def test_many_threads_work_off_the_debt_once() -> None:
    """Time that passed grows tokens back for one thread only, however many look at the clock."""
    clock = SlowClock()
    bucket = TokenBucket(1, 1, clock=clock)
    waits(bucket, 101)
    clock.at += 100
    answers: list[float] = []
    in_threads(8, lambda _: answers.append(bucket.when("a")))
    assert sorted(answers) == [1, 2, 3, 4, 5, 6, 7, 8]
