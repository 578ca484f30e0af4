"""The transition table: which events a state knows, where they lead, and who may send when."""

from __future__ import annotations

from itertools import product

import pytest

from rate_envelope_queue.clock import SystemClock
from rate_envelope_queue.core.lifecycle import REFUSES, TRANSITIONS, Event, QueueState
from rate_envelope_queue.core.workqueue import WorkQueue
from rate_envelope_queue.errors import QueueNotRunningError, QueueTerminatedError

INIT, RUNNING, STOPPING, STOPPED, TERMINATED = QueueState

REFUSED = {
    (STOPPING, Event.START): "it waits for the end of the stop",
    (TERMINATED, Event.START): "it never starts again",
    (INIT, Event.ENDED): "there are no workers yet",
    (RUNNING, Event.ENDED): "the workers of a running queue do not end",
    (STOPPED, Event.ENDED): "they have ended",
}
PAIRS = list(product(QueueState, Event))


def queue_in(state: QueueState) -> WorkQueue:
    queue = WorkQueue(capacity=0, clock=SystemClock())
    queue.state = state
    return queue


def reachable(start: QueueState) -> set[QueueState]:
    """All states that some events lead to, `start` included."""
    found = {start}
    while more := {after for (state, _), after in TRANSITIONS.items() if state in found} - found:
        found |= more
    return found


@pytest.mark.parametrize(("state", "event"), PAIRS)
def test_each_state_knows_each_event_unless_the_contract_refuses_it(state: QueueState, event: Event) -> None:
    assert ((state, event) in TRANSITIONS) != ((state, event) in REFUSED)


def test_the_table_has_no_other_rows() -> None:
    assert TRANSITIONS.keys() | REFUSED.keys() == set(PAIRS)


@pytest.mark.parametrize("state", QueueState)
def test_terminate_leads_from_every_state_to_the_end(state: QueueState) -> None:
    assert TRANSITIONS[state, Event.TERMINATE] is TERMINATED


def test_nothing_leads_out_of_the_end() -> None:
    assert reachable(TERMINATED) == {TERMINATED}


def test_every_state_can_be_reached_from_the_first() -> None:
    assert reachable(INIT) == set(QueueState)


def test_the_first_state_never_comes_back() -> None:
    assert INIT not in {after for (state, _), after in TRANSITIONS.items() if state is not INIT}


def test_a_queue_starts_stops_and_starts_again() -> None:
    queue = queue_in(INIT)
    seen = []
    for event in (Event.START, Event.STOP, Event.ENDED, Event.START, Event.STOP, Event.ENDED):
        assert queue.apply(event)
        seen.append(queue.state)
    assert seen == [RUNNING, STOPPING, STOPPED, RUNNING, STOPPING, STOPPED]


def test_start_is_idempotent() -> None:
    assert TRANSITIONS[RUNNING, Event.START] is RUNNING


@pytest.mark.parametrize("state", [INIT, STOPPING, STOPPED, TERMINATED])
def test_a_stop_of_what_does_not_run_changes_nothing(state: QueueState) -> None:
    assert TRANSITIONS[state, Event.STOP] is state


@pytest.mark.parametrize(
    ("state", "after"),
    [
        (INIT, STOPPED),
        (RUNNING, STOPPING),
        (STOPPING, STOPPING),
        (STOPPED, STOPPED),
        (TERMINATED, TERMINATED),
    ],
)
def test_a_cancelled_parent_leaves_no_queue_that_takes_envelopes(
    state: QueueState, after: QueueState
) -> None:
    assert TRANSITIONS[state, Event.PARENT_CANCELLED] is after
    assert after in REFUSES


@pytest.mark.parametrize(("state", "event"), REFUSED)
def test_a_missing_row_is_a_refusal_that_changes_nothing(state: QueueState, event: Event) -> None:
    queue = queue_in(state)
    assert not queue.apply(event)
    assert queue.state is state


@pytest.mark.parametrize(("state", "event"), TRANSITIONS)
def test_a_queue_follows_the_table(state: QueueState, event: Event) -> None:
    queue = queue_in(state)
    assert queue.apply(event)
    assert queue.state is TRANSITIONS[state, event]


def test_who_may_send_when_is_what_the_contract_says() -> None:
    expected = {
        STOPPING: QueueNotRunningError,
        STOPPED: QueueNotRunningError,
        TERMINATED: QueueTerminatedError,
    }
    assert expected == REFUSES


def test_the_names_of_the_states_are_those_of_the_contract() -> None:
    assert [state.name for state in QueueState] == ["INIT", "RUNNING", "STOPPING", "STOPPED", "TERMINATED"]
