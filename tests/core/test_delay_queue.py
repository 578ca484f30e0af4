"""The queue of delayed envelopes: by time, then by arrival; held against a sorted list."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any
from weakref import ref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rate_envelope_queue.core.delay_queue import DelayQueue, Due
from rate_envelope_queue.envelope import Envelope

if TYPE_CHECKING:
    from collections.abc import Callable

    Made = Callable[..., tuple[DelayQueue, list[Envelope[Any]]]]


def work(ctx: object, envelope: object) -> None:
    """Never called here."""


def an_envelope(name: object = None, key: str | None = None) -> Envelope[Any]:
    return Envelope(work, id=name, key=key)


def a_delay_queue(*instants: float) -> tuple[DelayQueue, list[Envelope[Any]]]:
    """A delay queue with an envelope due at each instant, named by its arrival, and the envelopes."""
    queue = DelayQueue()
    envelopes = [an_envelope(arrival) for arrival, _ in enumerate(instants)]
    for envelope, at in zip(envelopes, instants, strict=True):
        queue.add(envelope, envelope, Due(at))
    return queue, envelopes


def names(envelopes: list[Envelope[Any]]) -> list[object]:
    return [envelope.id for envelope in envelopes]


def slots(queue: DelayQueue) -> int:
    """How much room it takes, also for what was removed."""
    return len(queue._heap) + len(queue._sorted._dues)


def out_of_order(*instants: float) -> tuple[DelayQueue, list[Envelope[Any]]]:
    """A delay queue as of `a_delay_queue`, but one that is entered backwards, so that all but the last to come due are in the heap."""
    queue, envelopes = a_delay_queue(*reversed(instants))
    assert len(queue._heap) == len(instants) - 1
    return queue, envelopes[::-1]


def test_envelopes_come_due_in_order_of_time() -> None:
    queue, _ = a_delay_queue(3, 1, 2)
    assert names(queue.pop_due(3)) == [1, 2, 0]


def test_those_of_one_instant_come_due_in_order_of_arrival() -> None:
    queue, _ = a_delay_queue(2, 1, 2, 1, 2)
    assert names(queue.pop_due(2)) == [1, 3, 0, 2, 4]


def test_nothing_comes_due_before_its_time() -> None:
    queue, _ = a_delay_queue(1, 2)
    assert queue.pop_due(0.999) == []
    assert names(queue.pop_due(1)) == [0]
    assert len(queue) == 1


def test_it_comes_due_at_its_instant_and_only_once() -> None:
    queue, _ = a_delay_queue(1)
    assert names(queue.pop_due(1)) == [0]
    assert queue.pop_due(inf) == []


def test_next_at_is_the_earliest_instant() -> None:
    queue, envelopes = a_delay_queue(5, 3, 3)
    assert queue.next_at == 3
    queue.remove(envelopes[1], Due(3))
    assert queue.next_at == 3
    queue.remove(envelopes[2], Due(3))
    assert queue.next_at == 5
    queue.pop_due(5)
    assert queue.next_at == inf


def test_an_empty_queue_has_no_next_instant() -> None:
    assert DelayQueue().next_at == inf
    assert DelayQueue().pop_due(inf) == []


def test_what_is_removed_never_comes_due() -> None:
    queue, envelopes = a_delay_queue(1, 2, 2, 3)
    assert queue.remove(envelopes[2], Due(2)) is envelopes[2]
    assert queue.remove(envelopes[0], Due(1)) is envelopes[0]
    assert names(queue.pop_due(9)) == [1, 3]


def test_with_a_key_the_envelope_that_is_in_is_the_one_removed() -> None:
    queue = DelayQueue()
    first = an_envelope(key="k")
    queue.add("k", first, Due(1))
    assert queue.remove("k", Due(1)) is first


def test_a_key_finds_its_envelope_among_those_of_one_instant() -> None:
    queue = DelayQueue()
    keyed, plain = an_envelope("keyed", key="k"), an_envelope("plain")
    queue.add("k", keyed, Due(1))
    queue.add(plain, plain, Due(1))
    assert queue.remove("k", Due(1)) is keyed
    assert names(queue.pop_due(1)) == ["plain"]


def test_added_again_at_the_same_instant_it_arrives_last() -> None:
    queue, envelopes = a_delay_queue(1, 1)
    queue.remove(envelopes[0], Due(1))
    queue.add(envelopes[0], envelopes[0], Due(1))
    assert names(queue.pop_due(1)) == [1, 0]


def test_what_is_not_in_cannot_be_removed() -> None:
    queue, _ = a_delay_queue(1)
    with pytest.raises(KeyError):
        queue.remove("stranger", Due(2))


@pytest.mark.parametrize("step", [0.0, 1.0, -1.0], ids=["same instant", "ever later", "ever earlier"])
def test_adding_and_removing_leaves_no_tombstones(step: float) -> None:
    queue, _ = a_delay_queue(*range(1_000_000, 1_000_010))
    envelope = an_envelope()
    largest = 0
    for count in range(100_000):
        due = Due(500_000 + count * step)
        queue.add(envelope, envelope, due)
        queue.remove(envelope, due)
        largest = max(largest, slots(queue))
    assert len(queue) == 10
    assert largest <= 100


@pytest.mark.parametrize("made", [a_delay_queue, out_of_order])
def test_removing_most_of_many_leaves_no_tombstones(made: Made) -> None:
    queue, envelopes = made(*range(10_000))
    for at in [*range(9_998, 5_000, -1), *range(100, 5_001)]:
        queue.remove(envelopes[at], Due(at))
        assert slots(queue) <= len(queue) + max(len(queue), 64) + 2
    assert slots(queue) <= 200
    assert queue.pop_due(inf) == [*envelopes[:100], envelopes[-1]]


@pytest.mark.parametrize("made", [a_delay_queue, out_of_order])
def test_tombstones_do_not_outnumber_the_rest_when_the_rest_has_come_due(made: Made) -> None:
    """What was removed lies behind one that stays; then all but that one and the last come due."""
    queue, envelopes = made(*range(2_000))
    for at in range(1_001, 1_999):
        queue.remove(envelopes[at], Due(at))
    queue.pop_due(999)
    assert len(queue) == 2
    assert slots(queue) <= 2 + 64


def test_what_has_come_due_is_not_kept_alive() -> None:
    queue, envelopes = a_delay_queue(*range(1_000))
    envelopes[7].payload = {"its payload"}
    payload = ref(envelopes[7].payload)
    envelopes.clear()
    queue.pop_due(100)
    assert payload() is None
    assert queue.next_at == 101


def test_those_who_wait_long_do_not_keep_others_out_of_order() -> None:
    """Ticks that come and go stay out of the heap, though a few far ones came between."""
    queue, _ = a_delay_queue(1_000_000, 2_000_000, 3_000_000)
    for at in range(1, 1_000):
        queue.add(ticker := an_envelope(at), ticker, Due(at))
        queue.pop_due(at - 10)
    assert sorted(queue._heap) == [1_000_000, 2_000_000, 3_000_000]
    assert names(queue.pop_due(inf)) == [*range(990, 1_000), 0, 1, 2]


def test_who_leaves_the_sorted_list_for_others_still_comes_before_who_arrived_later() -> None:
    queue, _ = a_delay_queue(100, 100, *range(99, 0, -1))
    assert names(queue.pop_due(100))[-2:] == [0, 1]


def test_what_was_removed_from_between_counts_no_more_once_the_rest_has_come_due() -> None:
    queue, envelopes = a_delay_queue(1, 2, 3, 4)
    queue.remove(envelopes[1], Due(2))
    assert names(queue.pop_due(3)) == [0, 2]
    assert len(queue) == 1


def test_of_one_instant_what_is_in_the_sorted_list_came_first() -> None:
    queue, _ = a_delay_queue(1, 2, 3, 2, 3, 3, 2)
    assert names(list(queue)) == [0, 1, 3, 6, 2, 4, 5]
    assert names(queue.pop_due(2)) == [0, 1, 3, 6]
    assert names(queue.pop_due(3)) == [2, 4, 5]


def test_an_instant_in_the_heap_takes_in_who_comes_later_though_the_sorted_list_is_empty() -> None:
    queue, envelopes = a_delay_queue(5, 3)
    queue.remove(envelopes[0], Due(5))
    late = an_envelope("late")
    queue.add(late, late, Due(3))
    assert names(queue.pop_due(3)) == [1, "late"]


def test_iteration_shows_all_in_the_order_in_which_they_come_due() -> None:
    queue, _ = a_delay_queue(3, 1, 3, 2)
    assert names(list(queue)) == [1, 3, 0, 2]
    assert len(queue) == 4


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("add"), st.integers(0, 12)),
            st.tuples(st.just("remove"), st.integers(0, 30)),
            st.tuples(st.just("pop"), st.integers(0, 12)),
        ),
        max_size=60,
    ),
    st.sampled_from([1, 64]),
)
def test_a_delay_queue_is_a_list_sorted_by_time_and_arrival(steps: list[tuple[str, int]], few: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rate_envelope_queue.core.delay_queue._FEW", few)
        patch.setattr("rate_envelope_queue.core.sorted_list._FEW", few)
        _compare_with_a_list(steps)


def _compare_with_a_list(steps: list[tuple[str, int]]) -> None:
    queue = DelayQueue()
    model: list[tuple[float, Envelope[Any]]] = []
    for step, number in steps:
        if step == "add":
            envelope = an_envelope()
            queue.add(envelope, envelope, Due(number))
            model.append((number, envelope))
            model.sort(key=lambda each: each[0])  # stable: arrival decides between equal ones
        elif step == "remove" and model:
            at, envelope = model.pop(number % len(model))
            assert queue.remove(envelope, Due(at)) is envelope
        elif step == "pop":
            due = [envelope for at, envelope in model if at <= number]
            assert queue.pop_due(number) == due
            model = model[len(due) :]
        assert list(queue) == [envelope for _, envelope in model]
        assert len(queue) == len(model)
        assert queue.next_at == min((at for at, _ in model), default=inf)
