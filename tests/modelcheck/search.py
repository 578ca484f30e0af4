"""The search: every state that can be reached, breadth first, so that what goes wrong is told in the fewest steps."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from .model import Broken

S = TypeVar("S", bound=Hashable)


class Model(Protocol[S]):
    """What is searched."""

    @property
    def start(self) -> S: ...

    def steps(self, state: S) -> Iterable[tuple[str, S]]:
        """All that can happen, with its name; Broken if something happens that must not."""

    def check(self, state: S) -> None:
        """Broken if that does not hold which holds in every state."""

    def canonical(self, state: S) -> S:
        """The one of all states that are the same."""

    def is_ended(self, state: S) -> bool:
        """Is it one that can be reached from everywhere?"""


@dataclass(frozen=True, slots=True)
class Found:
    """What a search came to."""

    states: int
    steps: int
    problem: str | None = None
    path: tuple[str, ...] = ()
    """How to get there, or to a state from which there is no way to the end; numbers may change from step to step."""


def search(model: Model[S]) -> Found:
    """Look at everything that can happen; at the end, from everywhere there must be a way to finish all jobs."""
    first = model.canonical(model.start)
    came_from: dict[S, tuple[S, str] | None] = {first: None}
    before: defaultdict[S, list[S]] = defaultdict(list)
    todo, steps = deque([first]), 0

    def path(state: S, *last: str) -> tuple[str, ...]:
        labels = list(last)
        step = came_from[state]
        while step is not None:
            labels.insert(0, step[1])
            step = came_from[step[0]]
        return tuple(labels)

    while todo:
        state = todo.popleft()
        label = ""
        try:
            for label, reached in model.steps(state):
                steps += 1
                model.check(reached)
                after = model.canonical(reached)
                before[after].append(state)
                if after not in came_from:
                    came_from[after] = (state, label)
                    todo.append(after)
                label = ""
        except Broken as problem:
            return Found(len(came_from), steps, str(problem), path(state, *filter(None, [label])))
    ended = [state for state in came_from if model.is_ended(state)]
    hopeful, todo = set(ended), deque(ended)
    while todo:
        for state in before[todo.popleft()]:
            if state not in hopeful:
                hopeful.add(state)
                todo.append(state)
    for state in came_from:
        if state not in hopeful:
            return Found(len(came_from), steps, "a job was accepted and can never be finished", path(state))
    return Found(len(came_from), steps)
