"""What keys do."""

from __future__ import annotations

import pytest

from jobpipe.cli.top.model import Mode, Order, Panel, State, chosen, seen
from jobpipe.cli.top.press import Step, pressed

from .samples import NOW, failed, queue, running, snapshot, state


def press(found: State, *keys: str) -> Step:
    """The last step."""
    step = Step(found)
    for key in keys:
        step = pressed(step.state, key, NOW)
    return step


@pytest.fixture
def found() -> State:
    return state(
        queues=[queue(f"q{number:02}", paused=number == 1) for number in range(30)],
        running=[running("film", 9), running("song", 1)],
        failed=[failed("mail")],
    )


@pytest.mark.parametrize(
    ("keys", "name"),
    [
        (["up"], "q00"),
        (["down"], "q01"),
        (["j", "j", "k"], "q01"),
        (["page down"], "q10"),
        (["end"], "q29"),
        (["end", "down"], "q29"),
        (["end", "page up", "up"], "q18"),
        (["end", "home"], "q00"),
    ],
)
def test_rows_are_chosen(found: State, keys: list[str], name: str) -> None:
    assert chosen(press(found, *keys).state) == name


def test_choosing_among_nothing_does_nothing() -> None:
    assert press(state(), "down", "end").state == state()


def test_tab_goes_round_and_back(found: State) -> None:
    panels = [press(found, *["tab"] * count).state.panel for count in range(5)]
    assert panels == [*Panel, Panel.QUEUES]
    assert press(found, "back tab").state.panel is Panel.FAILED
    assert chosen(press(found, "tab", "down", "tab", "back tab").state) == "song"


def test_p_pauses_or_resumes_the_chosen_queue(found: State) -> None:
    assert press(found, "p").order == Order("pause", "q00")
    assert press(found, "down", "p").order == Order("resume", "q01")


def test_r_retries_the_chosen_failed_job(found: State) -> None:
    assert press(found, "back tab", "r").order == Order("retry", "mail")


@pytest.mark.parametrize(
    ("panel", "key"),
    [
        *((panel, "p") for panel in Panel if panel is not Panel.QUEUES),
        *((panel, "r") for panel in Panel if panel is not Panel.FAILED),
        *((panel, "c") for panel in Panel if panel is not Panel.RUNNING),
    ],
)
def test_a_key_of_another_panel_says_so_and_does_nothing(found: State, panel: Panel, key: str) -> None:
    step = press(found, *["tab"] * list(Panel).index(panel), key)
    assert step.order is None
    assert step.state.mode is Mode.LOOK
    assert step.state.notice is not None
    assert "with Tab" in step.state.notice.text


def test_c_asks_and_only_a_yes_cancels(found: State) -> None:
    asked = press(found, "tab", "c")
    assert asked.order is None
    assert asked.state.mode is Mode.ASK
    for key in ("y", "Y"):
        yes = press(asked.state, key)
        assert yes.order == Order("cancel", "film")
        assert yes.state.mode is Mode.LOOK
    for key in ("n", "enter", "escape", "q", "down", "c", " "):
        no = press(asked.state, key)
        assert no.order is None
        assert no.state.mode is Mode.LOOK
        assert press(no.state, "y").order is None


def test_the_question_stays_with_its_job_while_rows_change(found: State) -> None:
    asked = press(found, "tab", "c").state
    later = seen(asked, snapshot(running=[running("other", 99), running("song", 1)]))
    assert press(later, "y").order == Order("cancel", "film")


def test_what_is_typed_after_a_slash_is_the_filter(found: State) -> None:
    typed = press(found, "/", "q", "2", "c", "backspace")
    assert typed.order is None
    assert typed.state.filter == "q2"
    assert chosen(typed.state) == "q20"
    assert chosen(press(typed.state, "down").state) == "q21"
    kept = press(typed.state, "enter").state
    assert (kept.mode, kept.filter) == (Mode.LOOK, "q2")
    assert press(kept, "/", "9").state.filter == "q29"
    assert press(kept, "escape").state.filter == ""
    dropped = press(typed.state, "escape").state
    assert (dropped.mode, dropped.filter) == (Mode.LOOK, "")
    assert press(found, "/", "backspace").state.filter == ""


def test_a_filter_does_not_grow_for_ever(found: State) -> None:
    assert len(press(found, "/", *"x" * 1_000).state.filter) == 100


def test_q_quits_unless_it_is_typed_or_answers(found: State) -> None:
    assert press(found, "q").order == Order("quit")
    assert press(found, "?", "q").order == Order("quit")
    assert press(found, "/", "q").order is None


def test_any_key_leaves_the_help(found: State) -> None:
    assert press(found, "?").state.mode is Mode.HELP
    assert press(found, "?", "c") == Step(found)


def test_other_keys_do_nothing(found: State) -> None:
    for key in ("x", "left", "enter", "é"):
        assert press(found, key) == Step(found)
