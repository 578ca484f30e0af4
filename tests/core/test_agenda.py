"""The agenda of delayed envelopes: by time, then by arrival; held against a sorted list."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any
from weakref import ref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rate_envelope_queue.core.agenda import Agenda, Due
from rate_envelope_queue.envelope import Envelope

if TYPE_CHECKING:
    from collections.abc import Callable

    Made = Callable[..., tuple[Agenda, list[Envelope[Any]]]]


def work(ctx: object, envelope: object) -> None:
    """Never called here."""


def an_envelope(name: object = None, key: str | None = None) -> Envelope[Any]:
    return Envelope(work, id=name, key=key)


def an_agenda(*instants: float) -> tuple[Agenda, list[Envelope[Any]]]:
    """An agenda with an envelope due at each instant, named by its arrival, and the envelopes."""
    agenda = Agenda()
    envelopes = [an_envelope(arrival) for arrival, _ in enumerate(instants)]
    for envelope, at in zip(envelopes, instants, strict=True):
        agenda.add(envelope, envelope, Due(at))
    return agenda, envelopes


def names(envelopes: list[Envelope[Any]]) -> list[object]:
    return [envelope.id for envelope in envelopes]


def slots(agenda: Agenda) -> int:
    """How much room it takes, also for what was removed."""
    return len(agenda._heap) + len(agenda._track._dues)


def off_the_track(*instants: float) -> tuple[Agenda, list[Envelope[Any]]]:
    """An agenda as of `an_agenda`, but one that is entered backwards, so that all but the last to come due are in the heap."""
    agenda, envelopes = an_agenda(*reversed(instants))
    assert len(agenda._heap) == len(instants) - 1
    return agenda, envelopes[::-1]


def test_envelopes_come_due_in_order_of_time() -> None:
    agenda, _ = an_agenda(3, 1, 2)
    assert names(agenda.pop_due(3)) == [1, 2, 0]


def test_those_of_one_instant_come_due_in_order_of_arrival() -> None:
    agenda, _ = an_agenda(2, 1, 2, 1, 2)
    assert names(agenda.pop_due(2)) == [1, 3, 0, 2, 4]


def test_nothing_comes_due_before_its_time() -> None:
    agenda, _ = an_agenda(1, 2)
    assert agenda.pop_due(0.999) == []
    assert names(agenda.pop_due(1)) == [0]
    assert len(agenda) == 1


def test_it_comes_due_at_its_instant_and_only_once() -> None:
    agenda, _ = an_agenda(1)
    assert names(agenda.pop_due(1)) == [0]
    assert agenda.pop_due(inf) == []


def test_next_at_is_the_earliest_instant() -> None:
    agenda, envelopes = an_agenda(5, 3, 3)
    assert agenda.next_at == 3
    agenda.remove(envelopes[1], Due(3))
    assert agenda.next_at == 3
    agenda.remove(envelopes[2], Due(3))
    assert agenda.next_at == 5
    agenda.pop_due(5)
    assert agenda.next_at == inf


def test_an_empty_agenda_has_no_next_instant() -> None:
    assert Agenda().next_at == inf
    assert Agenda().pop_due(inf) == []


def test_what_is_removed_never_comes_due() -> None:
    agenda, envelopes = an_agenda(1, 2, 2, 3)
    assert agenda.remove(envelopes[2], Due(2)) is envelopes[2]
    assert agenda.remove(envelopes[0], Due(1)) is envelopes[0]
    assert names(agenda.pop_due(9)) == [1, 3]


def test_with_a_key_the_envelope_that_is_in_is_the_one_removed() -> None:
    agenda = Agenda()
    first = an_envelope(key="k")
    agenda.add("k", first, Due(1))
    assert agenda.remove("k", Due(1)) is first


def test_a_key_finds_its_envelope_among_those_of_one_instant() -> None:
    agenda = Agenda()
    keyed, plain = an_envelope("keyed", key="k"), an_envelope("plain")
    agenda.add("k", keyed, Due(1))
    agenda.add(plain, plain, Due(1))
    assert agenda.remove("k", Due(1)) is keyed
    assert names(agenda.pop_due(1)) == ["plain"]


def test_added_again_at_the_same_instant_it_arrives_last() -> None:
    agenda, envelopes = an_agenda(1, 1)
    agenda.remove(envelopes[0], Due(1))
    agenda.add(envelopes[0], envelopes[0], Due(1))
    assert names(agenda.pop_due(1)) == [1, 0]


def test_what_is_not_in_cannot_be_removed() -> None:
    agenda, _ = an_agenda(1)
    with pytest.raises(KeyError):
        agenda.remove("stranger", Due(2))


@pytest.mark.parametrize("step", [0.0, 1.0, -1.0], ids=["same instant", "ever later", "ever earlier"])
def test_adding_and_removing_leaves_no_tombstones(step: float) -> None:
    agenda, _ = an_agenda(*range(1_000_000, 1_000_010))
    envelope = an_envelope()
    largest = 0
    for count in range(100_000):
        due = Due(500_000 + count * step)
        agenda.add(envelope, envelope, due)
        agenda.remove(envelope, due)
        largest = max(largest, slots(agenda))
    assert len(agenda) == 10
    assert largest <= 100


@pytest.mark.parametrize("made", [an_agenda, off_the_track])
def test_removing_most_of_many_leaves_no_tombstones(made: Made) -> None:
    agenda, envelopes = made(*range(10_000))
    for at in [*range(9_998, 5_000, -1), *range(100, 5_001)]:
        agenda.remove(envelopes[at], Due(at))
        assert slots(agenda) <= len(agenda) + max(len(agenda), 64) + 2
    assert slots(agenda) <= 200
    assert agenda.pop_due(inf) == [*envelopes[:100], envelopes[-1]]


@pytest.mark.parametrize("made", [an_agenda, off_the_track])
def test_tombstones_do_not_outnumber_the_rest_when_the_rest_has_come_due(made: Made) -> None:
    """What was removed lies behind one that stays; then all but that one and the last come due."""
    agenda, envelopes = made(*range(2_000))
    for at in range(1_001, 1_999):
        agenda.remove(envelopes[at], Due(at))
    agenda.pop_due(999)
    assert len(agenda) == 2
    assert slots(agenda) <= 2 + 64


def test_what_has_come_due_is_not_kept_alive() -> None:
    agenda, envelopes = an_agenda(*range(1_000))
    envelopes[7].payload = {"its payload"}
    payload = ref(envelopes[7].payload)
    envelopes.clear()
    agenda.pop_due(100)
    assert payload() is None
    assert agenda.next_at == 101


def test_those_who_wait_long_do_not_keep_others_off_the_track() -> None:
    """Ticks that come and go stay out of the heap, though a few far ones came between."""
    agenda, _ = an_agenda(1_000_000, 2_000_000, 3_000_000)
    for at in range(1, 1_000):
        agenda.add(ticker := an_envelope(at), ticker, Due(at))
        agenda.pop_due(at - 10)
    assert sorted(agenda._heap) == [1_000_000, 2_000_000, 3_000_000]
    assert names(agenda.pop_due(inf)) == [*range(990, 1_000), 0, 1, 2]


def test_who_leaves_the_track_for_others_still_comes_before_who_arrived_later() -> None:
    agenda, _ = an_agenda(100, 100, *range(99, 0, -1))
    assert names(agenda.pop_due(100))[-2:] == [0, 1]


def test_what_was_removed_from_between_counts_no_more_once_the_rest_has_come_due() -> None:
    agenda, envelopes = an_agenda(1, 2, 3, 4)
    agenda.remove(envelopes[1], Due(2))
    assert names(agenda.pop_due(3)) == [0, 2]
    assert len(agenda) == 1


def test_of_one_instant_what_is_on_the_track_came_first() -> None:
    agenda, _ = an_agenda(1, 2, 3, 2, 3, 3, 2)
    assert names(list(agenda)) == [0, 1, 3, 6, 2, 4, 5]
    assert names(agenda.pop_due(2)) == [0, 1, 3, 6]
    assert names(agenda.pop_due(3)) == [2, 4, 5]


def test_an_instant_in_the_heap_takes_in_who_comes_later_though_the_track_is_empty() -> None:
    agenda, envelopes = an_agenda(5, 3)
    agenda.remove(envelopes[0], Due(5))
    late = an_envelope("late")
    agenda.add(late, late, Due(3))
    assert names(agenda.pop_due(3)) == [1, "late"]


def test_iteration_shows_all_in_the_order_in_which_they_come_due() -> None:
    agenda, _ = an_agenda(3, 1, 3, 2)
    assert names(list(agenda)) == [1, 3, 0, 2]
    assert len(agenda) == 4


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
def test_an_agenda_is_a_list_sorted_by_time_and_arrival(steps: list[tuple[str, int]], few: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rate_envelope_queue.core.agenda._FEW", few)
        patch.setattr("rate_envelope_queue.core.track._FEW", few)
        _compare_with_a_list(steps)


def _compare_with_a_list(steps: list[tuple[str, int]]) -> None:
    agenda = Agenda()
    model: list[tuple[float, Envelope[Any]]] = []
    for step, number in steps:
        if step == "add":
            envelope = an_envelope()
            agenda.add(envelope, envelope, Due(number))
            model.append((number, envelope))
            model.sort(key=lambda each: each[0])  # stable: arrival decides between equal ones
        elif step == "remove" and model:
            at, envelope = model.pop(number % len(model))
            assert agenda.remove(envelope, Due(at)) is envelope
        elif step == "pop":
            due = [envelope for at, envelope in model if at <= number]
            assert agenda.pop_due(number) == due
            model = model[len(due) :]
        assert list(agenda) == [envelope for _, envelope in model]
        assert len(agenda) == len(model)
        assert agenda.next_at == min((at for at, _ in model), default=inf)
