"""How many jobs are claimed ahead, and when they are given back."""

from __future__ import annotations

from math import inf

from jobpipe.worker.prefetch import Prefetch


def after_ends(count: int, at: float = 100.0) -> Prefetch:
    prefetch = Prefetch(slots=4)
    for _ in range(count):
        prefetch.ended(at)
    return prefetch


def test_at_first_only_slots_are_filled() -> None:
    prefetch = Prefetch(slots=4)
    assert prefetch.room(0, 100.0) == 4
    assert prefetch.room(4, 100.0) == 0
    assert not prefetch.has_turnover(100.0)


def test_as_many_are_claimed_ahead_as_have_ended_just_now() -> None:
    assert after_ends(10).room(0, 100.01) == 14
    assert after_ends(5_000).room(0, 100.01) == 1_004


def test_none_is_claimed_ahead_while_no_job_ends() -> None:
    prefetch = after_ends(10)
    assert prefetch.room(0, 100.06) == 4
    assert not prefetch.has_turnover(100.06)


def test_more_are_claimed_when_half_are_left() -> None:
    prefetch = after_ends(16)
    assert prefetch.room(11, 100.01) == 0
    assert prefetch.room(prefetch.refill_at, 100.01) == 10


def test_what_waits_is_stale_when_no_job_ends_and_after_a_while_in_any_case() -> None:
    prefetch = after_ends(1)
    assert prefetch.stale_before(100.01) == 100.01 - 0.2
    assert prefetch.stale_before(100.06) == 100.06 - 0.05


def test_jobs_that_took_long_to_hand_over_are_not_stale_at_once() -> None:
    prefetch = after_ends(1)
    prefetch.sent(100.06)
    assert prefetch.stale_before(100.06) == 100.06 - 0.2


def test_it_looks_for_stale_ones_only_while_some_wait() -> None:
    prefetch = Prefetch(slots=4)
    assert prefetch.pause(4) == inf
    assert prefetch.pause(5) == 0.05
