"""The selection of a claim's candidates through the gates of their limits, without any store."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from jobpipe.model.gate import INSURANCE, LEAD, MOST_PASSED_OVER, Gate, Limit
from jobpipe.model.selection import Candidate, Selection, way_out

NOW = 1_000.0
PACED = Limit(type="paced", interval=0.06)
NARROW = Limit(type="narrow", concurrency=1)
BY_KEY = Limit(type="by key", concurrency=1, is_keyed=True)
PACED_BY_KEY = Limit(type="paced by key", interval=60.0, is_keyed=True)
LIMITS = {limit.type: limit for limit in (PACED, NARROW, BY_KEY, PACED_BY_KEY)}

Told = tuple[int, str | None, float] | int
"""Of one that is taken: seq, gate and starts_in; of one that is parked: seq."""


def candidates(*jobs: tuple[str, str | None]) -> list[Candidate]:
    """One for each type and key, in this order."""
    return [(0, NOW, seq, "q", type, key) for seq, (type, key) in enumerate(jobs)]


def selection(most: int = 10) -> Selection:
    """Through gates of some keys; nobody is in any but those of the key `held`."""
    gates = {
        (limit.type, key): Gate(limit, NOW, running=1 if key == "held" else 0)
        for limit in LIMITS.values()
        for key in ("", "a", "b", "held")
    }
    return Selection(LIMITS, most, NOW, gates)


def told(selection: Selection, *jobs: tuple[str, str | None]) -> list[Told]:
    return [
        seq if place is None else (seq, place[0], round(place[1], 6))
        for (_, _, seq, *_), place in selection.take(candidates(*jobs))
    ]


@pytest.mark.parametrize(
    ("jobs", "expected", "due_in"),
    [
        ([], [], None),
        ([("free", None), ("free", "a")], [(0, None, 0.0), (1, None, 0.0)], None),
        ([("by key", None)] * 2, [(0, None, 0.0), (1, None, 0.0)], None),
        ([("by key", "a"), ("by key", ""), ("by key", "b")], [(0, "a", 0), (1, "", 0), (2, "b", 0)], None),
        ([("by key", "a"), ("by key", "a"), ("by key", "b")], [(0, "a", 0), 1, (2, "b", 0)], None),
        ([("by key", "held"), ("free", None)], [0, (1, None, 0.0)], None),
        ([("narrow", "a"), ("narrow", "b"), ("free", None)], [(0, "", 0), (2, None, 0)], INSURANCE),
        ([("paced", None)] * 3, [(0, "", 0.0), (1, "", 0.06)], 0.12 - LEAD / 2),
        (
            [("narrow", None), ("paced", None)] * 3,
            [(0, "", 0.0), (1, "", 0.0), (3, "", 0.06)],
            0.12 - LEAD / 2,
        ),
    ],
)
def test_each_candidate_is_taken_or_parked_or_its_type_is_closed(
    jobs: list[tuple[str, str | None]], expected: list[Told], due_in: float | None
) -> None:
    found = selection()
    assert told(found, *jobs) == expected
    assert found.due_in == pytest.approx(due_in)


def test_gates_that_park_tell_when_they_open_and_those_with_a_rate_what_comes_next() -> None:
    found = selection()
    jobs = [("by key", "held"), ("by key", "b"), ("paced by key", "a"), ("paced by key", "a")]
    assert told(found, *jobs, ("narrow", None), ("narrow", None)) == [
        0,
        (1, "b", 0),
        (2, "a", 0),
        3,
        (4, "", 0),
    ]
    assert found.closing == {("by key", "held"): NOW + INSURANCE, ("paced by key", "a"): NOW + INSURANCE}
    assert found.closed == {"narrow"}
    assert found.paces() == {("paced by key", "a"): NOW + 60}
    assert found.entered == {("by key", "b"), ("paced by key", "a"), ("narrow", "")}


def test_gates_that_nobody_came_to_or_that_let_more_in_have_room() -> None:
    found = selection()
    names = [("by key", "a"), ("by key", "b"), ("by key", "unread"), ("paced", "")]
    told(found, ("by key", "a"), ("paced", None))
    assert found.with_room(names) == names[1:]


@pytest.mark.parametrize("most", [0, 1, 2])
def test_no_candidate_is_asked_for_after_the_last_that_is_taken(most: int) -> None:
    def one_by_one() -> Iterator[Candidate]:
        yield from candidates(*[("free", None)] * most)
        pytest.fail("there was no need for more")

    assert len(list(selection(most).take(one_by_one()))) == most


def test_next_candidate_is_asked_for_when_the_one_before_is_dealt_with() -> None:
    dealt_with: list[int] = []

    def one_by_one() -> Iterator[Candidate]:
        for candidate in candidates(("free", None), ("by key", "held"), ("free", None)):
            assert len(dealt_with) == candidate[2]
            yield candidate

    for (_, _, seq, *_), _place in selection().take(one_by_one()):
        dealt_with.append(seq)
    assert dealt_with == [0, 1, 2]


def test_claim_ends_after_it_has_passed_over_so_many_and_is_worth_to_be_made_again_at_once() -> None:
    found = selection()
    jobs = [("by key", "held")] * MOST_PASSED_OVER
    assert told(found, ("free", None), *jobs, ("free", None)) == [(0, None, 0), *range(1, len(jobs) + 1)]
    assert found.due_in == 0.0


@pytest.mark.parametrize(
    ("limit", "running", "expected"),
    [
        (None, 0, (10, NOW + LEAD / 2)),
        (BY_KEY, 0, (1, NOW + INSURANCE)),
        (BY_KEY, 1, (0, NOW + INSURANCE)),
        (PACED, 0, (2, NOW + 0.12 - LEAD / 2)),
        (Limit(type="wide", interval=0.001, burst=5), 0, (10, NOW + LEAD / 2)),
    ],
    ids=["no limit any more", "one place", "no place", "a pace", "more than are wanted"],
)
def test_way_out_is_as_wide_as_the_way_in(
    limit: Limit | None, running: int, expected: tuple[int, float]
) -> None:
    trial = None if limit is None else Gate(limit, NOW, running=running)
    assert way_out(trial, 10, NOW) == pytest.approx(expected)
