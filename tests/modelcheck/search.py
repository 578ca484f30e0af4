"""The search: every state that can be reached, breadth first, so that what goes wrong is told in the fewest steps."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass

from .model import ENDS, START, Broken, Rules, State, canonical, check


@dataclass(frozen=True, slots=True)
class Found:
    """What a search came to."""

    states: int
    steps: int
    problem: str | None = None
    path: tuple[str, ...] = ()
    """How to get there, or to a state from which there is no way to the end; numbers may change from step to step."""


def search(rules: Rules, start: State = START) -> Found:
    """Look at everything that can happen; at the end, from everywhere there must be a way to finish all jobs."""
    first = canonical(start)
    came_from: dict[State, tuple[State, str] | None] = {first: None}
    before: defaultdict[State, list[State]] = defaultdict(list)
    todo, steps = deque([first]), 0

    def path(state: State, *last: str) -> tuple[str, ...]:
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
            for label, reached in rules.steps(state):
                steps += 1
                for job in reached.jobs:
                    check(job)
                after = canonical(reached)
                before[after].append(state)
                if after not in came_from:
                    came_from[after] = (state, label)
                    todo.append(after)
                label = ""
        except Broken as problem:
            return Found(len(came_from), steps, str(problem), path(state, *filter(None, [label])))
    ended = [state for state in came_from if all(job.status in ENDS for job in state.jobs)]
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
