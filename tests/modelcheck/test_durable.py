"""Every state of a job of steps keeps the promises; without one of the rules, some state does not."""

from __future__ import annotations

from dataclasses import fields

import pytest

from .durable import DurableRules
from .search import search


def test_every_promise_is_kept_in_every_state_and_from_each_the_job_can_be_done() -> None:
    """Two workers, one job of a step, a sleep and a wait, with one retry; and signals of two contents."""
    found = search(DurableRules())
    assert (found.problem, found.path) == (None, ())
    assert found.states > 3_000
    assert found.steps > 30_000


NEEDED = {
    "has_fence": "a worker that lost its lease changed something",
    "loads": "a step that is recorded was run again",
    "records_first": "a job was done, and its step is not recorded",
    "gives_back": "a job was begun 0 times, and 1 attempts are counted",
    "wakes": "a job waits, and its signal is there",
    "looks_again": "a job waits, and its signal is there",
    "first_wins": "a wait came to no, and to yes",
    "closes": "a wait has timed out, and a signal for it was accepted",
}
"""Which promise is broken without each rule."""


@pytest.mark.parametrize("rule", NEEDED)
def test_without_a_rule_a_promise_is_broken(rule: str) -> None:
    found = search(DurableRules(**{rule: False}))
    assert found.problem == NEEDED[rule]
    assert found.path


def test_each_rule_is_taken_away_once() -> None:
    assert NEEDED.keys() == {each.name for each in fields(DurableRules)}
