"""Press: what a key does, by what keys are for at the moment. One table; a key that is not in it does nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from .model import Choice, Mode, Order, Panel, State, chosen, names_of, settled, told

_LONGEST_FILTER = 100
_PAGE = 10
_FAR = 10**6


class Step(NamedTuple):
    """What becomes of the state, and what is to be done."""

    state: State
    order: Order | None = None


Action = Callable[[State, datetime], Step]


def pressed(state: State, key: str, now: datetime) -> Step:
    """A key was pressed."""
    action = _KEYS[state.mode].get(key)
    if action is not None:
        return action(state, now)
    if state.mode is Mode.FILTER and len(key) == 1 and len(state.filter) < _LONGEST_FILTER:
        return Step(settled(replace(state, filter=state.filter + key)))
    if state.mode is Mode.ASK:  # Why: only a clear yes is one
        return Step(told(_back(state), "nothing was changed", now))
    return Step(_back(state) if state.mode is Mode.HELP else state)


def _move(by: int) -> Action:
    def move(state: State, _: datetime) -> Step:
        names = names_of(state, state.panel)
        choice = state.choices.get(state.panel)
        if choice is None or not names:
            return Step(state)
        place = min(max(choice.place + by, 0), len(names) - 1)
        return Step(replace(state, choices={**state.choices, state.panel: Choice(names[place], place)}))

    return move


def _turn(by: int) -> Action:
    def turn(state: State, _: datetime) -> Step:
        panels = list(Panel)
        panel = panels[(panels.index(state.panel) + by) % len(panels)]
        return Step(settled(replace(state, panel=panel)))

    return turn


def _enter(mode: Mode) -> Action:
    return lambda state, _: Step(replace(state, mode=mode))


def _on_chosen(panel: Panel, what: str, act: Callable[[State, str], Step]) -> Action:
    """Act on the chosen row of a panel; elsewhere, and without one, say what the key is for."""

    def do(state: State, now: datetime) -> Step:
        name = chosen(state) if state.panel is panel else None
        if name is not None:
            return act(state, name)
        where = "there is none here" if state.panel is panel else f"go to {panel} with Tab"
        return Step(told(state, f"{what}: {where}", now))

    return do


def _hold(state: State, name: str) -> Step:
    """Pause a queue, or resume it."""
    paused = {queue.name: queue.paused for queue in state.snapshot.queues}
    return Step(state, Order("resume" if paused[name] else "pause", name))


def _retry(state: State, name: str) -> Step:
    return Step(state, Order("retry", name))


def _ask_to_cancel(state: State, name: str) -> Step:
    return Step(replace(state, mode=Mode.ASK, order=Order("cancel", name), notice=None))


def _say_yes(state: State, _: datetime) -> Step:
    return Step(_back(state), state.order)


def _shorten(state: State, _: datetime) -> Step:
    return Step(settled(replace(state, filter=state.filter[:-1])))


def _clear(state: State, _: datetime) -> Step:
    return Step(settled(replace(_back(state), filter="")))


def _keep(state: State, _: datetime) -> Step:
    return Step(_back(state))


def _quit(state: State, _: datetime) -> Step:
    return Step(state, Order("quit"))


def _back(state: State) -> State:
    return replace(state, mode=Mode.LOOK, order=None)


_MOVES: Mapping[str, Action] = {
    "up": _move(-1),
    "down": _move(1),
    "page up": _move(-_PAGE),
    "page down": _move(_PAGE),
    "home": _move(-_FAR),
    "end": _move(_FAR),
    "tab": _turn(1),
    "back tab": _turn(-1),
}
_KEYS: Mapping[Mode, Mapping[str, Action]] = {
    Mode.LOOK: {
        **_MOVES,
        "k": _move(-1),
        "j": _move(1),
        "p": _on_chosen(Panel.QUEUES, "p pauses and resumes a queue", _hold),
        "r": _on_chosen(Panel.FAILED, "r runs a failed job again", _retry),
        "c": _on_chosen(Panel.RUNNING, "c cancels a running job", _ask_to_cancel),
        "/": _enter(Mode.FILTER),
        "?": _enter(Mode.HELP),
        "escape": _clear,
        "q": _quit,
    },
    Mode.FILTER: {**_MOVES, "enter": _keep, "escape": _clear, "backspace": _shorten},
    Mode.ASK: {"y": _say_yes, "Y": _say_yes},
    Mode.HELP: {"q": _quit},
}
