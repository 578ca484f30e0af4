"""The line of ready envelopes: by priority, then by arrival; held against a sorted list."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rate_envelope_queue.core.ready_queue import ReadyQueue
from rate_envelope_queue.envelope import Envelope


def work(ctx: object, envelope: object) -> None:
    """Never called here."""


def an_envelope(name: object, priority: int = 0) -> Envelope[Any]:
    return Envelope(work, id=name, priority=priority)


def a_line(*priorities: int) -> ReadyQueue:
    """A line of envelopes with these priorities, named by their arrival."""
    line = ReadyQueue()
    for arrival, priority in enumerate(priorities):
        line.append(an_envelope(arrival, priority))
    return line


def drained(line: ReadyQueue) -> list[object]:
    taken = []
    while line:
        taken.append(line.popleft().id)
    return taken


def test_equal_ones_are_taken_in_order_of_arrival() -> None:
    assert drained(a_line(0, 0, 0, 0)) == [0, 1, 2, 3]


def test_higher_priorities_are_taken_first() -> None:
    assert drained(a_line(-1, 0, 7, 2, 0, 7)) == [2, 5, 3, 1, 4, 0]


@pytest.mark.parametrize("priority", [-3, 0, 3])
def test_a_line_of_one_priority_is_a_plain_queue(priority: int) -> None:
    assert drained(a_line(priority, priority, priority)) == [0, 1, 2]


def test_one_that_arrives_later_overtakes_lower_ones() -> None:
    line = a_line(0, 0)
    assert line.popleft().id == 0
    line.append(an_envelope("urgent", 1))
    line.append(an_envelope("idle", -1))
    assert drained(line) == ["urgent", 1, "idle"]


def test_an_empty_line_has_nothing_to_take() -> None:
    with pytest.raises(IndexError):
        ReadyQueue().popleft()
    emptied = a_line(4, -4)
    drained(emptied)
    with pytest.raises(IndexError):
        emptied.popleft()


def test_no_priority_stays_in_use_when_its_last_envelope_has_gone() -> None:
    line = a_line(5, -5, 9, 0)
    assert line.priorities == [-5, 5, 9]
    drained(line)
    assert line.priorities == []


def test_the_ordinary_ones_stay_the_same_object() -> None:
    """A work queue uses them directly while there are no other priorities."""
    line = a_line(0, 1)
    ordinary = line.ordinary
    line.keep(lambda envelope: envelope.id == 0)
    assert line.ordinary is ordinary
    assert [envelope.id for envelope in ordinary] == [0]


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("append"), st.integers(-3, 3)),
            st.tuples(st.just("take"), st.just(0)),
            st.tuples(st.just("keep"), st.integers(2, 4)),
        )
    )
)
def test_a_line_is_a_list_sorted_by_priority_and_arrival(steps: list[tuple[str, int]]) -> None:
    line = ReadyQueue()
    model: list[Envelope[Any]] = []
    for arrival, (step, number) in enumerate(steps):
        if step == "append":
            envelope = an_envelope(arrival, number)
            line.append(envelope)
            model.append(envelope)
            model.sort(key=lambda each: -each.priority)  # stable: arrival decides between equal ones
        elif step == "keep":
            line.keep(lambda each, by=number: each.id % by == 0)  # type: ignore[misc]
            model = [each for each in model if each.id % number == 0]  # type: ignore[operator]
        elif model:
            assert line.popleft() is model.pop(0)
        assert list(line) == model
        assert len(line) == len(model)
        assert bool(line) == bool(model)
