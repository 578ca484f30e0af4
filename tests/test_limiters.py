"""Limiters: how long each failure of an item has to wait; the clock is moved by hand."""

from __future__ import annotations

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
)

from .support.limiters import HandClock, Plain, SlowKey, in_threads, waits

if TYPE_CHECKING:
    from collections.abc import Callable


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
def test_forget_frees_the_item(collect: Callable[[], None], make: Callable[[], Limiter]) -> None:
    """An item is kept alive from its first failure until it is forgotten, and no longer."""

    class Item:
        pass

    limiter, item = make(), Item()
    alive = weakref.ref(item)
    limiter.when(item)
    del item
    collect()
    kept = alive()
    assert kept is not None
    limiter.forget(kept)
    del kept
    collect()
    assert alive() is None


@pytest.mark.parametrize("make", COUNTING)
def test_asking_and_forgetting_a_stranger_leaves_no_trace(
    collect: Callable[[], None], make: Callable[[], Limiter]
) -> None:
    """Neither `retries` nor `forget` makes an item known."""

    class Item:
        pass

    limiter, item = make(), Item()
    alive = weakref.ref(item)
    limiter.forget(item)
    assert limiter.retries(item) == 0
    del item
    collect()
    assert alive() is None


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


def test_counting_limiters_take_a_clock_and_need_none() -> None:
    """For the sake of one signature."""
    clock = HandClock()
    for limiter in (ExponentialBackoff(1, 4, clock=clock), FastSlow(1, 2, 1, clock=clock)):
        limiter.use_clock(clock)
        assert waits(limiter, 2) == [1, 2]


@pytest.mark.parametrize("make", COUNTING)
def test_many_threads_count_exactly(make: Callable[[], Limiter]) -> None:
    """No failure is lost and none is counted twice: the answers are those of one thread, in some order."""
    limiter, item = make(), SlowKey("a")
    answers: list[float] = []
    in_threads(8, lambda _: answers.extend(waits(limiter, 50, item)))
    assert limiter.retries(item) == 400
    assert sorted(answers) == sorted(waits(make(), 400))


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
