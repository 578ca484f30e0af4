"""The decision table: it has a row for every way in which a run can end, and says what the contract says."""

from __future__ import annotations

import pytest

from rate_envelope_queue.core.run import Outcome
from rate_envelope_queue.core.verdict import VERDICTS, Ending, Mode, Next, Verdict
from rate_envelope_queue.decision import Choice, Decision, drop, retry_after, retry_now

PERIODIC = [Mode.INTERVAL, Mode.BACKOFF]
DECISIONS = [None, drop(), retry_now(), retry_after(5)]


@pytest.mark.parametrize("decision", DECISIONS)
@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("ending", Ending)
def test_there_is_a_row_for_whatever_a_run_can_end_in(
    ending: Ending, mode: Mode, decision: Decision | None
) -> None:
    outcome = Outcome(ending, None, decision)
    assert (ending, mode, outcome.choice) in VERDICTS


def test_there_is_no_row_that_no_run_can_end_in() -> None:
    reachable = {
        (ending, mode, Outcome(ending, None, decision).choice)
        for ending in Ending
        for mode in Mode
        for decision in DECISIONS
    }
    assert VERDICTS.keys() == reachable


@pytest.mark.parametrize("decision", DECISIONS)
@pytest.mark.parametrize("ending", [ending for ending in Ending if ending is not Ending.ERROR])
def test_only_an_error_leaves_a_choice(ending: Ending, decision: Decision | None) -> None:
    assert Outcome(ending, None, decision).choice is None


def test_a_one_off_that_succeeded_is_finished() -> None:
    assert VERDICTS[Ending.SUCCESS, Mode.ONCE, None] == Verdict(Next.NEVER, done=1)


@pytest.mark.parametrize("mode", PERIODIC)
def test_a_periodic_one_that_succeeded_runs_at_its_next_tick(mode: Mode) -> None:
    assert VERDICTS[Ending.SUCCESS, mode, None] == Verdict(Next.TICK, done=1)


def test_a_one_off_that_is_given_up_is_dropped() -> None:
    assert VERDICTS[Ending.ERROR, Mode.ONCE, Choice.DROP] == Verdict(Next.NEVER, failed=1, dropped=1)


@pytest.mark.parametrize("mode", Mode)
def test_a_retry_moves_the_next_run_whether_periodic_or_not(mode: Mode) -> None:
    assert VERDICTS[Ending.ERROR, mode, Choice.RETRY_NOW] == Verdict(Next.NOW, failed=1, retried=1)
    assert VERDICTS[Ending.ERROR, mode, Choice.RETRY_AFTER] == Verdict(Next.AFTER, failed=1, retried=1)


def test_after_an_error_a_periodic_one_goes_on_with_its_next_tick() -> None:
    assert VERDICTS[Ending.ERROR, Mode.INTERVAL, Choice.DROP] == Verdict(Next.TICK, failed=1)


def test_after_an_error_a_periodic_one_may_back_off_which_counts_as_a_retry() -> None:
    expected = Verdict(Next.BACKOFF, failed=1, retried=1)
    assert VERDICTS[Ending.ERROR, Mode.BACKOFF, Choice.DROP] == expected


@pytest.mark.parametrize("mode", Mode)
def test_a_panic_finishes_the_envelope_and_is_counted(mode: Mode) -> None:
    assert VERDICTS[Ending.PANIC, mode, None] == Verdict(Next.NEVER, failed=1, panicked=1)


@pytest.mark.parametrize("mode", Mode)
def test_a_stop_finishes_the_envelope_and_counts_as_nothing(mode: Mode) -> None:
    assert VERDICTS[Ending.STOP_ENVELOPE, mode, None] == Verdict(Next.NEVER)


@pytest.mark.parametrize("mode", Mode)
def test_a_stopped_type_is_banned_besides(mode: Mode) -> None:
    assert VERDICTS[Ending.STOP_TYPE, mode, None] == Verdict(Next.NEVER, bans=True)


@pytest.mark.parametrize(("key", "verdict"), VERDICTS.items())
def test_a_run_is_done_or_failed_but_never_both(
    key: tuple[Ending, Mode, Choice | None], verdict: Verdict
) -> None:
    ending, _, _ = key
    assert verdict.done == (ending is Ending.SUCCESS)
    assert verdict.failed == (ending in (Ending.ERROR, Ending.PANIC))
    assert verdict.panicked == (ending is Ending.PANIC)


@pytest.mark.parametrize("verdict", VERDICTS.values())
def test_only_what_runs_again_is_retried_and_only_what_does_not_is_dropped(verdict: Verdict) -> None:
    assert not (verdict.retried and verdict.next is Next.NEVER)
    assert not (verdict.dropped and verdict.next is not Next.NEVER)


@pytest.mark.parametrize(("key", "verdict"), VERDICTS.items())
def test_only_a_stopped_type_is_banned(key: tuple[Ending, Mode, Choice | None], verdict: Verdict) -> None:
    assert verdict.bans == (key[0] is Ending.STOP_TYPE)
