"""Limiters: how long each failure of an item has to wait; the clock is moved by hand."""

from __future__ import annotations

import gc
import threading
import weakref
from datetime import timedelta
from fractions import Fraction
from sys import float_info
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rate_envelope_queue.clock import SystemClock
from rate_envelope_queue.errors import BadFieldsError
from rate_envelope_queue.limiters import (
    ExponentialBackoff,
    FastSlow,
    Limiter,
    MaxOf,
    TokenBucket,
    WithMaxWait,
    give_clock,
)

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Hashable
    from datetime import datetime

    from rate_envelope_queue.clock import Alarm, Bell


class HandClock:
    """A clock that stands still until the test moves it."""

    tick = 0.0

    def __init__(self, at: float = 0.0) -> None:
        self.at = at

    def now(self) -> float:
        return self.at

    def wall(self) -> datetime:
        raise NotImplementedError

    def wait(self, bell: Bell, until: float, at_most: float = float("inf"), who: object = None) -> bool:
        raise NotImplementedError

    def call_at(self, loop: asyncio.AbstractEventLoop, when: float, callback: Callable[[], None]) -> Alarm:
        raise NotImplementedError


class Plain:
    """A user's own limiter: it says what it was told to and knows no clock."""

    def __init__(self, *waits: float, count: int = 0) -> None:
        self.waits = list(waits)
        self.count = count
        self.asked: list[Hashable] = []
        self.forgotten: list[Hashable] = []

    def when(self, item: Hashable) -> float:
        self.asked.append(item)
        return self.waits.pop(0)

    def forget(self, item: Hashable) -> None:
        self.forgotten.append(item)

    def retries(self, item: Hashable) -> int:
        return self.count


def waits(limiter: Limiter, times: int, item: Hashable = "a") -> list[float]:
    return [limiter.when(item) for _ in range(times)]


def test_exponential_backoff_doubles_from_its_base() -> None:
    """1, 2, 4, 8, 16 ms, exactly."""
    assert waits(ExponentialBackoff(0.001, 1), 5) == [0.001, 0.002, 0.004, 0.008, 0.016]


def test_exponential_backoff_stays_at_its_cap() -> None:
    """A cap between two steps is met exactly and never left."""
    assert waits(ExponentialBackoff(1, 30), 8) == [1, 2, 4, 8, 16, 30, 30, 30]
    assert waits(ExponentialBackoff(1, 8), 5) == [1, 2, 4, 8, 8]
    assert waits(ExponentialBackoff(3, 3), 3) == [3, 3, 3]


def test_exponential_backoff_begins_again_after_forget() -> None:
    """Forgetting an item resets its wait and its count, and nobody else's."""
    limiter = ExponentialBackoff(0.001, 1)
    waits(limiter, 3, "a")
    waits(limiter, 2, "b")
    limiter.forget("a")
    assert limiter.retries("a") == 0
    assert limiter.retries("b") == 2
    assert limiter.when("a") == 0.001
    assert limiter.when("b") == 0.004


@pytest.mark.parametrize("calls", [1_000, 10**5])
@pytest.mark.parametrize(
    ("base", "cap"), [(0.001, 1000.0), (5e-324, float_info.max), (0.75, float_info.max), (1.0, 1.0)]
)
def test_exponential_backoff_never_overflows(base: float, cap: float, calls: int) -> None:
    """However often it is asked, and between the most extreme floats, it ends at the cap and goes on counting."""
    limiter = ExponentialBackoff(base, cap)
    answers = waits(limiter, calls)
    assert answers[0] == base
    assert max(answers) <= cap
    assert limiter.retries("a") == calls
    assert answers[-1] == float(min(Fraction(base) * 2 ** min(calls - 1, 3_000), Fraction(cap)))


def test_exponential_backoff_from_zero_never_waits() -> None:
    """Nothing, doubled, is nothing, also after more calls than the cap has doublings."""
    assert set(waits(ExponentialBackoff(0, 30), 3_000)) == {0.0}


@given(
    base=st.floats(min_value=0, max_value=1e9),
    extra=st.floats(min_value=0, max_value=1e9),
    calls=st.integers(min_value=1, max_value=200),
)
def test_exponential_backoff_is_the_capped_power_of_two(base: float, extra: float, calls: int) -> None:
    """Against exact arithmetic: never negative, never above the cap, never shrinking."""
    cap = base + extra
    answers = waits(ExponentialBackoff(base, cap), calls)
    assert answers == [float(min(Fraction(base) * 2**n, Fraction(cap))) for n in range(calls)]
    assert answers == sorted(answers)
    assert answers[0] >= 0
    assert answers[-1] <= cap


def test_fast_slow_is_fast_for_its_attempts_and_slow_after() -> None:
    """Exactly `attempts` fast answers, then slow ones until it is forgotten."""
    limiter = FastSlow(0.005, 10, 3)
    assert waits(limiter, 5) == [0.005, 0.005, 0.005, 10, 10]
    assert limiter.retries("a") == 5
    limiter.forget("a")
    assert limiter.retries("a") == 0
    assert limiter.when("a") == 0.005


def test_fast_slow_without_attempts_is_always_slow() -> None:
    """Zero attempts is a legal count."""
    assert waits(FastSlow(1, 2, 0), 2) == [2, 2]


COUNTING: list[Callable[[], Limiter]] = [
    lambda: ExponentialBackoff(0.5, 100),
    lambda: FastSlow(1, 7, 2),
    lambda: MaxOf(ExponentialBackoff(0.5, 100), FastSlow(1, 7, 2)),
    lambda: WithMaxWait(ExponentialBackoff(0.5, 100), 3),
]


@pytest.mark.parametrize("make", COUNTING)
@given(steps=st.lists(st.tuples(st.sampled_from(["when", "forget"]), st.sampled_from("abc")), max_size=60))
def test_items_are_independent(make: Callable[[], Limiter], steps: list[tuple[str, str]]) -> None:
    """One limiter for all items answers as one limiter for each would."""
    shared = make()
    apart = {item: make() for item in "abc"}
    counts = dict.fromkeys("abc", 0)
    for verb, item in steps:
        if verb == "forget":
            shared.forget(item)
            apart[item].forget(item)
            counts[item] = 0
        else:
            assert shared.when(item) == apart[item].when(item)
            counts[item] += 1
        assert {each: shared.retries(each) for each in "abc"} == counts


@pytest.mark.parametrize("make", COUNTING)
def test_forget_frees_the_item(make: Callable[[], Limiter]) -> None:
    """An item is kept alive from its first failure until it is forgotten, and no longer."""

    class Item:
        pass

    limiter, item = make(), Item()
    alive = weakref.ref(item)
    limiter.when(item)
    del item
    gc.collect()
    kept = alive()
    assert kept is not None
    limiter.forget(kept)
    del kept
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize("make", COUNTING)
def test_asking_and_forgetting_a_stranger_leaves_no_trace(make: Callable[[], Limiter]) -> None:
    """Neither `retries` nor `forget` makes an item known."""

    class Item:
        pass

    limiter, item = make(), Item()
    alive = weakref.ref(item)
    limiter.forget(item)
    assert limiter.retries(item) == 0
    del item
    gc.collect()
    assert alive() is None


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


def test_max_of_waits_for_the_strictest() -> None:
    """Each call takes the longest answer of that call, whichever limiter gave it."""
    assert waits(MaxOf(Plain(1, 5, 2), Plain(3, 4, 2)), 3) == [3, 5, 2]


def test_max_of_asks_and_forgets_in_every_limiter() -> None:
    """None is left out because another one is stricter."""
    limiters = Plain(9, 9), Plain(1, 1), Plain(5, 5)
    both = MaxOf(*limiters)
    both.when("a")
    both.when("b")
    both.forget("a")
    assert [limiter.asked for limiter in limiters] == [["a", "b"]] * 3
    assert [limiter.forgotten for limiter in limiters] == [["a"]] * 3


def test_max_of_counts_as_the_largest_count() -> None:
    """A bucket's 0 hides nobody's count."""
    assert MaxOf(Plain(count=2), Plain(count=7), Plain(count=0)).retries("a") == 7


def test_max_of_backoff_and_bucket_is_client_go_s_default() -> None:
    """The bucket holds back a burst of first failures, the back-off an item that fails on."""
    limiter = MaxOf(ExponentialBackoff(1, 30), TokenBucket(5, burst=10, clock=HandClock()))
    assert [limiter.when(n) for n in range(10)] == [1] * 10
    assert waits(limiter, 5, item=0) == [2, 4, 8, 16, 30]
    assert limiter.when("new") == pytest.approx(1.2)
    assert limiter.retries(0) == 6


@given(
    st.lists(st.lists(st.floats(min_value=0, max_value=1e9), min_size=5, max_size=5), min_size=1, max_size=4)
)
def test_max_of_is_the_maximum_of_each_call(table: list[list[float]]) -> None:
    """For any limiters, call by call."""
    assert waits(MaxOf(*(Plain(*row) for row in table)), 5) == [
        max(column) for column in zip(*table, strict=True)
    ]


def test_max_wait_caps_the_answer_and_nothing_else() -> None:
    """The limiter inside goes on counting."""
    inner = ExponentialBackoff(1, 100)
    limiter = WithMaxWait(inner, 5)
    assert waits(limiter, 5) == [1, 2, 4, 5, 5]
    assert limiter.retries("a") == inner.retries("a") == 5
    assert inner.when("a") == 32
    limiter.forget("a")
    assert inner.retries("a") == 0
    assert limiter.when("a") == 1


@given(st.lists(st.floats(min_value=0), min_size=1, max_size=9), st.floats(min_value=0, max_value=1e9))
def test_max_wait_is_never_passed(answers: list[float], seconds: float) -> None:
    """Even if the limiter inside says: never."""
    assert waits(WithMaxWait(Plain(*answers), seconds), len(answers)) == [
        min(each, seconds) for each in answers
    ]


def test_durations_may_be_timedeltas() -> None:
    """Everywhere a duration is taken."""
    ms = timedelta(milliseconds=1)
    assert waits(ExponentialBackoff(ms, 3 * ms), 3) == [0.001, 0.002, 0.003]
    assert waits(FastSlow(ms, 2 * ms, 1), 2) == [0.001, 0.002]
    assert waits(WithMaxWait(Plain(1), ms), 1) == [0.001]


NAN, INF = float("nan"), float("inf")
NO_DURATION: list[object] = [-1, -0.001, NAN, INF, -INF, True, False, "1", None, [], timedelta(seconds=-1)]
NO_WHOLE: list[object] = [-1, 1.0, NAN, True, False, "1", None, timedelta(seconds=1)]
NO_CLOCK: list[object] = [0, "clock", object()]
NO_LIMITER: list[object] = [None, 5, object(), ExponentialBackoff, SystemClock()]

WRONG: list[tuple[str, Callable[[Any], Limiter], list[object]]] = [
    ("base", lambda bad: ExponentialBackoff(bad, 1), NO_DURATION),
    ("cap", lambda bad: ExponentialBackoff(1, bad), [*NO_DURATION, 0.999, 0]),
    ("clock", lambda bad: ExponentialBackoff(1, 1, clock=bad), NO_CLOCK),
    ("fast", lambda bad: FastSlow(bad, 1, 1), NO_DURATION),
    ("slow", lambda bad: FastSlow(1, bad, 1), NO_DURATION),
    ("attempts", lambda bad: FastSlow(1, 1, bad), NO_WHOLE),
    ("clock", lambda bad: FastSlow(1, 1, 1, clock=bad), NO_CLOCK),
    ("rate", lambda bad: TokenBucket(bad, 1), [*NO_DURATION, 0, 0.0, 10**400, timedelta(seconds=1)]),
    ("burst", lambda bad: TokenBucket(1, bad), [*NO_WHOLE, 0]),
    ("clock", lambda bad: TokenBucket(1, 1, clock=bad), NO_CLOCK),
    ("limiters", lambda bad: MaxOf(bad), NO_LIMITER),
    ("limiters", lambda bad: MaxOf(FastSlow(1, 1, 1), bad), NO_LIMITER),
    ("limiters", lambda bad: MaxOf(*bad), [()]),
    ("clock", lambda bad: MaxOf(FastSlow(1, 1, 1), clock=bad), NO_CLOCK),
    ("limiter", lambda bad: WithMaxWait(bad, 1), NO_LIMITER),
    ("seconds", lambda bad: WithMaxWait(FastSlow(1, 1, 1), bad), NO_DURATION),
    ("clock", lambda bad: WithMaxWait(FastSlow(1, 1, 1), 1, clock=bad), NO_CLOCK),
]


@pytest.mark.parametrize(
    ("field", "make", "bad"),
    [
        pytest.param(field, make, bad, id=f"{number}-{field}-{index}")
        for number, (field, make, values) in enumerate(WRONG)
        for index, bad in enumerate(values)
    ],
)
def test_a_wrong_argument_is_refused_by_name(field: str, make: Callable[[Any], Limiter], bad: object) -> None:
    """The message begins with the field, shows the value and is one line."""
    with pytest.raises(BadFieldsError) as caught:
        make(bad)
    message = str(caught.value)
    assert message.startswith(f"{field} must ")
    assert message.endswith(f"got {bad!r}")
    assert "\n" not in message


@pytest.mark.parametrize("bad", [None, *NO_CLOCK])
@pytest.mark.parametrize(
    "limiter",
    [ExponentialBackoff(1, 1), FastSlow(1, 1, 1), TokenBucket(1, 1), MaxOf(Plain()), WithMaxWait(Plain(), 1)],
)
def test_no_limiter_uses_what_is_no_clock(limiter: Any, bad: object) -> None:
    """A queue's mistake is seen at once, not at the first failure."""
    with pytest.raises(BadFieldsError, match=r"^clock must be"):
        limiter.use_clock(bad)


@pytest.mark.parametrize(
    ("limiter", "text"),
    [
        (ExponentialBackoff(timedelta(milliseconds=1), 30), "ExponentialBackoff(base=0.001, cap=30.0)"),
        (FastSlow(1, 2, 3), "FastSlow(fast=1.0, slow=2.0, attempts=3)"),
        (TokenBucket(5, 10), "TokenBucket(rate=5.0, burst=10)"),
        (
            MaxOf(FastSlow(1, 2, 3), TokenBucket(5, 10)),
            "MaxOf(FastSlow(fast=1.0, slow=2.0, attempts=3), TokenBucket(rate=5.0, burst=10))",
        ),
        (WithMaxWait(TokenBucket(5, 10), 3), "WithMaxWait(TokenBucket(rate=5.0, burst=10), seconds=3.0)"),
    ],
)
def test_repr_can_be_typed_in_again(limiter: Limiter, text: str) -> None:
    """It names every argument, and evaluates to an equal limiter."""
    assert repr(limiter) == text
    assert repr(eval(text)) == text


@pytest.mark.parametrize(
    "limiter",
    [ExponentialBackoff(1, 1), FastSlow(1, 1, 1), TokenBucket(1, 1), MaxOf(Plain()), WithMaxWait(Plain(), 1)],
)
def test_limiters_have_slots_and_fit_the_protocol(limiter: Limiter) -> None:
    """A misspelt attribute is an error."""
    assert isinstance(limiter, Limiter)
    assert not hasattr(limiter, "__dict__")


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


def test_counting_limiters_take_a_clock_and_need_none() -> None:
    """For the sake of one signature."""
    clock = HandClock()
    for limiter in (ExponentialBackoff(1, 4, clock=clock), FastSlow(1, 2, 1, clock=clock)):
        limiter.use_clock(clock)
        assert waits(limiter, 2) == [1, 2]


def in_threads(count: int, work: Callable[[int], None]) -> None:
    """Run `work(n)` in so many threads that begin at the same moment, and wait for all."""
    barrier = threading.Barrier(count)

    def begin(number: int) -> None:
        barrier.wait()
        work(number)

    threads = [threading.Thread(target=begin, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class SlowKey:
    """An item whose hash lets other threads in: between a read and a write there is time to lose a count."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __hash__(self) -> int:
        _switch()
        return hash(self.name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SlowKey) and other.name == self.name


class SlowInstant(float):
    """An instant that lets other threads in while it is reckoned with."""

    def __sub__(self, other: float) -> float:
        _switch()
        return float(self) - other


class SlowClock(HandClock):
    """A clock that lets other threads in while it is read, and after."""

    def now(self) -> float:
        _switch()
        return SlowInstant(self.at)


def _switch() -> None:
    # Why: waiting for a held lock gives up the interpreter, so that the threads really alternate.
    held = threading.Lock()
    held.acquire()
    held.acquire(timeout=1e-6)


@pytest.mark.parametrize("make", COUNTING)
def test_many_threads_count_exactly(make: Callable[[], Limiter]) -> None:
    """No failure is lost and none is counted twice: the answers are those of one thread, in some order."""
    limiter, item = make(), SlowKey("a")
    answers: list[float] = []
    in_threads(8, lambda _: answers.extend(waits(limiter, 50, item)))
    assert limiter.retries(item) == 400
    assert sorted(answers) == sorted(waits(make(), 400))


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


def test_threads_forget_only_their_own_items() -> None:
    """Each thread sees its item alone, however the others count and forget."""
    limiter = ExponentialBackoff(1, 1000)
    seen: dict[int, list[float]] = {}

    def work(number: int) -> None:
        item, mine = SlowKey(str(number)), []
        for _ in range(20):
            mine += waits(limiter, 3, item)
            limiter.forget(item)
        seen[number] = [*mine, limiter.retries(item)]

    in_threads(8, work)
    assert seen == {number: [1, 2, 4] * 20 + [0] for number in range(8)}
