"""Every state of the model keeps the promises; without one of the store's rules, some state does not."""

from __future__ import annotations

from dataclasses import fields

import pytest

from jobpipe.model.job import TRANSITIONS

from .model import START, TABLE, Job, Rules, State, View, canonical
from .search import search


def test_every_promise_is_kept_in_every_state_and_from_each_there_is_a_way_to_the_end() -> None:
    """Two workers, two jobs, each with one retry; `python -m tests.modelcheck` says how many states that are."""
    found = search(Rules())
    assert (found.problem, found.path) == (None, ())
    assert found.states > 10_000
    assert found.steps > 100_000


NEEDED = {
    "has_fence": ("a worker that lost its lease changed something", 4),
    "counts_at_claim": ("a job was begun 1 times, and 0 attempts are counted", 1),
    "gives_back": ("a job was begun 0 times, and 1 attempts are counted", 2),
    "checks_again": ("a job was taken from a worker whose lease was alive", 4),
    "rescues": ("a job was accepted and can never be finished", 1),
    "remembers": ("an outcome that was recorded was refused when it was told again", 2),
}
"""Which promise is broken without each rule, and in how many steps."""


@pytest.mark.parametrize("rule", NEEDED)
def test_without_a_rule_a_promise_is_broken_and_the_shortest_way_there_is_told(rule: str) -> None:
    problem, steps = NEEDED[rule]
    found = search(Rules(**{rule: False}))
    assert found.problem == problem
    assert len(found.path) == steps, found.path


def test_each_rule_is_taken_away_once() -> None:
    assert NEEDED.keys() == {each.name for each in fields(Rules)}


def test_the_model_moves_by_the_table_of_the_service() -> None:
    assert {
        str(status): {str(move): str(to) for move, to in TRANSITIONS[status].items()}
        for status in TRANSITIONS
    } == TABLE


def test_states_that_differ_in_names_only_are_one() -> None:
    running, done = Job("running", 1, token=7, runs=1), Job("done", 1, settled=3, runs=1, ends=1)
    one = State((running, done), (View(0, 7), View(1, 3, "succeed")))
    two = State((done._replace(settled=5), running._replace(token=2)), (View(0, 5, "succeed"), View(1, 2)))
    assert canonical(one) == canonical(two) == canonical(canonical(one))
    assert canonical(one) != canonical(one._replace(workers=(View(0, 6), View(1, 3, "succeed"))))
    assert canonical(START) == START
