"""What follows a run that raised, by the kind of what it raised."""

from __future__ import annotations

from datetime import timedelta
from math import inf, nan
from typing import Any

import pytest

from jobpipe.errors import BadInputError, Cancel, Retry, Snooze
from jobpipe.model.job import Move, instant
from jobpipe.model.outcome import Backoff, Carried, Hopeless, error_of, outcome_of
from jobpipe.stores.base import Claim, Lease, Outcome
from rate_envelope_queue import RateLimited, StopType

BACKOFF = Backoff(1, 60, jitter=False)


def claim(attempts: int = 1, max_retries: int = 3) -> Claim:
    return Claim(
        lease=Lease("a", attempts, "w", "t"),
        type="work",
        queue="default",
        payload=b"null",
        attempts=attempts,
        max_retries=max_retries,
        priority=0,
        deadline=None,
        run_at=0,
        created_at=0,
        started_at=0,
    )


def follow(error: BaseException, attempts: int = 1, max_retries: int = 3) -> Outcome:
    return outcome_of(error, claim(attempts, max_retries), BACKOFF)


def test_an_error_is_retried_after_the_back_off_while_a_retry_is_left() -> None:
    found = [follow(ValueError("no"), attempts) for attempts in (1, 2, 3, 4)]
    assert [each.move for each in found] == [Move.RETRY, Move.RETRY, Move.RETRY, Move.FAIL]
    assert [each.delay for each in found] == [1, 2, 4, 0]
    assert all(
        each.error and each.error.type == "ValueError" and each.error.message == "no" for each in found
    )


def test_without_retries_the_first_error_is_the_last() -> None:
    assert follow(ValueError(), max_retries=0).move is Move.FAIL


def test_a_retry_comes_after_the_time_the_handler_chose() -> None:
    assert follow(Retry(7)).delay == 7
    assert follow(Retry(timedelta(minutes=1))).delay == 60
    assert follow(Retry(0)).delay == 0
    assert follow(Retry()).delay == 1, "the back-off"
    found = follow(Retry(7, "the other side is away"))
    assert found.move is Move.RETRY
    assert found.error is not None
    assert (found.error.type, found.error.message) == ("Retry", "the other side is away")


def test_a_retry_costs_an_attempt_and_fails_where_none_is_left() -> None:
    assert follow(Retry(7), attempts=4).move is Move.FAIL


def test_a_snooze_costs_nothing_also_at_the_last_attempt() -> None:
    assert follow(Snooze(9), attempts=4) == Outcome(move=Move.SNOOZE, delay=9)
    assert follow(Snooze(timedelta(hours=1))).delay == 3600


def test_a_rate_limit_costs_nothing_also_at_the_last_attempt() -> None:
    assert follow(RateLimited(9), attempts=4) == Outcome(move=Move.SNOOZE, delay=9, cools=9)


def test_a_cancel_ends_it_with_its_reason() -> None:
    found = follow(Cancel("not needed any more"))
    assert found.move is Move.CANCEL
    assert found.error is not None
    assert (found.error.type, found.error.message) == ("Cancel", "not needed any more")


def test_what_is_hopeless_fails_at_once_for_the_reason_behind_it() -> None:
    error = Hopeless()
    error.__cause__ = KeyError("x")
    found = follow(error)
    assert found.move is Move.FAIL
    assert found.error is not None
    assert found.error.type == "KeyError"
    assert follow(Hopeless("why")).error is not None


def test_a_carried_signal_counts_as_what_it_carries() -> None:
    assert follow(Carried(RateLimited(3))).delay == 3
    found = follow(Carried(StopType("no more")))
    assert found.move is Move.RETRY
    assert found.error is not None
    assert found.error.type == "StopType"


@pytest.mark.parametrize("error", [Retry(1e300), Snooze(1e300), RateLimited(1e15)], ids=ascii)
def test_no_delay_is_so_long_that_the_time_cannot_be_told(error: Exception) -> None:
    assert instant(1_800_000_000 + follow(error).delay).year < 9999


def test_no_back_off_is_so_long_that_the_time_cannot_be_told() -> None:
    found = outcome_of(ValueError(), claim(), Backoff(1e300, 1e300, jitter=False))
    assert instant(1_800_000_000 + found.delay).year < 9999


@pytest.mark.parametrize("seconds", [-1, nan, inf, "1", True, None, timedelta(seconds=-1)], ids=ascii)
def test_a_signal_with_a_wrong_time_is_refused_where_it_is_made(seconds: Any) -> None:
    with pytest.raises(BadInputError):
        Snooze(seconds)
    if seconds is not None:
        with pytest.raises(BadInputError):
            Retry(seconds)


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


class Worse(Exception):
    def __str__(self) -> str:
        raise SystemExit(3)


@pytest.mark.parametrize("kind", [Unspeakable, Worse])
def test_an_error_that_cannot_be_told_is_told_of_anyway(kind: type[Exception]) -> None:
    found = error_of(kind())
    assert found.type == kind.__name__
    assert "cannot be read" in found.message


def test_an_error_is_kept_with_the_end_of_its_traceback() -> None:
    try:
        raise ValueError("here")
    except ValueError as error:
        found = error_of(error)
    assert found.traceback is not None
    assert found.traceback.startswith("Traceback")
    assert found.traceback.rstrip().endswith("ValueError: here")


def test_a_huge_error_is_trimmed() -> None:
    found = error_of(ValueError("x" * 10_000_000))
    assert len(found.message) <= 2_001
    assert found.traceback is not None
    assert len(found.traceback) <= 8_001


def test_an_error_holds_nothing_that_a_store_cannot_keep() -> None:
    found = error_of(ValueError("a\x00b\udcffc"))
    for text in (found.type, found.message, found.traceback or ""):
        assert "\x00" not in text
        text.encode()
    assert found.message == "a\\x00b\\udcffc"
