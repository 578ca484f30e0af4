"""What the screen looks like, made from what is known alone."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from jobpipe.cli.top.glyphs import ASCII, UNICODE, age, bar, fit, glyphs_for, sparkline
from jobpipe.cli.top.model import Choice, Mode, Order, Panel, State, Trend, lost, told
from jobpipe.cli.top.view import SMALLEST, Size, screen_lines, snapshot_lines
from jobpipe.model.counts import ChildInfo
from jobpipe.model.job import Progress

from .samples import NOW, ago, failed, queue, running, state, worker


def shown(found: State, width: int = 80, height: int = 24) -> str:
    lines = [line.plain for line in screen_lines(found, Size(width, height), NOW, UNICODE)]
    assert len(lines) == height
    assert all(cell_len(line) <= width for line in lines)
    return "\n".join(line.rstrip() for line in lines)


def has(text: str, pattern: str) -> bool:
    return re.search(pattern, text, re.MULTILINE) is not None


# Pictures


def test_a_sparkline_reaches_from_none_to_the_most_of_what_it_shows() -> None:
    assert sparkline([0, 1, 2, 4, 8], 5, UNICODE) == "▁▂▃▅█"
    assert sparkline([0, 1, 2, 4, 8], 5, ASCII) == "_.:=#"
    assert sparkline([100, 0, 0.001], 2, UNICODE) == "▁█"
    assert sparkline([0, 0], 4, UNICODE) == "  ▁▁"
    assert sparkline([], 2, UNICODE) == "  "
    assert sparkline([1, 2], 0, UNICODE) == ""


def test_a_bar_is_as_full_as_the_part() -> None:
    assert [bar(part, 4, UNICODE) for part in (0, 0.5, 1, 7, -1)] == ["░░░░", "██░░", "████", "████", "░░░░"]


def test_text_is_padded_or_cut_to_cells() -> None:
    assert fit("ab", 4, UNICODE) == "ab  "
    assert fit("ab", 4, UNICODE, is_right=True) == "  ab"
    assert fit("abcdef", 4, UNICODE) == "abc…"
    assert fit("abcdefghijkl", 7, UNICODE, keeps_end=True) == "ab…ijkl"
    assert fit("日本語", 4, UNICODE) == "日 …"
    assert fit("abc", 1, UNICODE) == "a"
    assert fit("abc", 0, UNICODE) == ""


@given(st.text(), st.integers(0, 40), st.booleans(), st.booleans())
def test_a_fitted_text_has_just_as_many_cells(text: str, width: int, is_right: bool, keeps_end: bool) -> None:
    printable = "".join(char for char in text if char.isprintable())
    assert cell_len(fit(printable, width, UNICODE, is_right=is_right, keeps_end=keeps_end)) == width


def test_ages_are_short() -> None:
    assert [age(seconds) for seconds in (-5, 0.4, 59, 119, 120, 7_200, 200_000)] == [
        *("0 s", "0 s", "59 s", "119 s", "2 min", "2 h", "2 d"),
    ]


def test_glyphs_are_those_that_can_be_written() -> None:
    assert glyphs_for("utf-8") is UNICODE
    assert glyphs_for("ascii") is ASCII
    assert glyphs_for("latin-1") is ASCII
    assert "".join(ASCII).isascii()


# The screen


def test_an_empty_service_says_what_there_could_be() -> None:
    text = shown(state())
    assert has(text, "^  no queues yet: a queue appears with its first job$")
    assert has(text, "^  no jobs are running$")
    assert has(text, "^  no workers: start one with jobpipe worker$")
    assert has(text, "^  no jobs have failed$")


def test_workers_show_what_they_run_or_could_run() -> None:
    found = state(workers=[worker("host:1", "a", "b"), worker("host:2", seen_at=ago(30))])
    text = shown(found)
    assert has(text, r"^  host:1 +2/4 +2 h +1 s a, b$")
    assert has(text, r"^  host:2 +0/4 +2 h +30 s \(knows mail\)$")


def test_isolated_jobs_show_their_processes() -> None:
    child = ChildInfo(pid=4711, memory=96 * 2**20, cpu=12.34)
    found = state(
        numbers={"waiting": 0},
        running=[running("a"), running("b")],
        workers=[worker("host:1", "a", "b", children={"a": child})],
    )
    text = shown(found, 140)
    assert has(text, r"AGE PROGRESS +PROCESS +MEMORY +CPU NOTE")
    assert has(text, r"^  a .* 4711 +96 MB +12\.3 s")
    assert not has(shown(state(numbers={"waiting": 0}, running=[running("a")]), 140), "MEMORY")


def test_workers_of_chosen_queues_name_them() -> None:
    slots = {"mail": 3, "media": 1}
    found = state(
        workers=[
            worker("host:1", queues=("mail", "media"), slots_by_queue=slots, running_by_queue={"mail": 2}),
            worker("host:2", "a", except_queues=("media",)),
        ]
    )
    text = shown(found)
    assert has(text, r"^  host:1 .* \[mail 2/3, media 0/1\] \(knows mail\)$")
    assert has(text, r"^  host:2 .* \[all but media\] a$")


def test_ids_that_are_long_keep_their_ends_or_are_whole_where_there_is_room() -> None:
    id = "0199a3c2-7b5e-7e2b-9f2d-3d1c8a7b6e5f"
    found = state(running=[running(id, progress=Progress(value=0.25, note="page 4"))])
    assert has(shown(found), r"^  0199a3…-3d1c8a7b6e5f mail .* ██░░░░░░  25% page 4$")
    assert id in shown(found, 120)


def test_not_all_of_many_are_shown_and_the_heading_tells() -> None:
    found = state(running=[running("a")], numbers={"running": 1_234})
    assert has(shown(found), "^  RUNNING 1 of 1,234 ")
    assert "FAILED 1 of 123,456,789" in shown(state(failed=[failed("a")], numbers={"failed": 123_456_789}))


def test_the_chosen_row_is_always_in_view() -> None:
    queues = [queue(f"q{number:02}") for number in range(40)]
    for place in range(40):
        found = replace(state(queues=queues), choices={Panel.QUEUES: Choice(f"q{place:02}", place)})
        assert has(shown(found), f"^▸ q{place:02} ")


def test_only_the_panel_that_keys_are_for_has_marks() -> None:
    found = replace(state(queues=[queue("a")], running=[running("job")]), panel=Panel.RUNNING)
    found = replace(found, choices={Panel.QUEUES: Choice("a", 0), Panel.RUNNING: Choice("job", 0)})
    assert [line.split()[1] for line in shown(found).splitlines() if "▸" in line] == ["RUNNING", "job"]


def test_the_newest_number_of_a_picture_is_never_cut() -> None:
    found = state(queues=[queue("a")])
    found = replace(found, trend=Trend(pending={"a": (*[0] * 299, 5)}, done=(*[0.0] * 299, 5.0)))
    assert has(shown(found), "^▸ a .*▁█$")
    assert has(shown(found), "^ done/s 5.0 ▁+█ failed/s")


def test_rows_of_jobs_do_not_move_when_jobs_come_and_go() -> None:
    few = state(queues=[queue("a")], running=[running("x")])
    many = state(queues=[queue("a")], running=[running(f"x{number}") for number in range(50)])

    def headings(found: State) -> list[int]:
        return [number for number, line in enumerate(shown(found).splitlines()) if has(line, "^. [A-Z]{6}")]

    assert headings(few) == headings(many)
    assert len(headings(few)) == 4


TITLES = {
    "QUEUES": ["SCHEDULED", "WAITING", "QUEUED", "RUNNING", "STATE", "PENDING TREND"],
    "RUNNING": ["TYPE", "QUEUE", "AGE", "PROGRESS", "NOTE"],
    "WORKERS": ["BUSY", "UP", "SEEN", "RUNS"],
    "FAILED": ["TYPE", "QUEUE", "AGO", "TRIES", "ERROR"],
}


def full() -> State:
    job = running("job-1", progress=Progress(value=0.25, note="page 4"))
    others = {"workers": [worker("host:1", "job-1")], "failed": [failed("job-2")]}
    return state(queues=[queue("mails", queued=7, paused=True)], running=[job], **others)


@pytest.mark.parametrize("width", range(SMALLEST[0], 150))
def test_a_column_is_there_whole_or_not_at_all(width: int) -> None:
    lines = shown(full(), width, 24).splitlines()
    for panel, titles in TITLES.items():
        (heading,) = [line for line in lines if has(line, f"^. {panel} 1( |$)")]
        there = re.split(r" {1,}(?=[A-Z])(?!TREND)", heading[2:].rstrip())[1:]
        assert there == [title for title in titles if title in there], heading
        assert there if width < 80 else there == titles
    assert not has(lines[2], "…")
    assert lines[-1].endswith("? help   q quit")


def test_a_small_terminal_has_the_columns_that_matter_most() -> None:
    text = shown(full(), *SMALLEST)
    assert has(text, "^. QUEUES 1 +QUEUED STATE$")
    assert has(text, "^. mails +7 paused$")
    assert has(text, "^  RUNNING 1 +TYPE +AGE$")
    assert has(text, "^  job-1 +mail +5 s$")
    assert has(text, "^  WORKERS 1 +BUSY +SEEN$")
    assert has(text, "^  FAILED 1 +AGO ERROR$")
    assert has(text, "^ queued 7  running 1  failed 1$")


def test_a_wide_terminal_has_two_columns() -> None:
    text = shown(state(queues=[queue("a")], failed=[failed("mail-1")]), 160, 30)
    assert has(text, "^▸ QUEUES 1 .* RUNNING 0 ")
    assert has(text, "mail-1 .*ValueError")


@pytest.mark.parametrize("size", [(39, 24), (80, 12), (10, 1), (1, 1)])
def test_a_terminal_that_is_too_small_says_so(size: tuple[int, int]) -> None:
    assert shown(state(), *size).startswith("too small"[: size[0] - 1])


def test_every_panel_has_a_row_in_the_smallest_terminal() -> None:
    found = state(
        queues=[queue("a"), queue("b")],
        running=[running("c")],
        workers=[worker("d"), worker("e")],
        failed=[failed("f")],
    )
    text = shown(found, *SMALLEST)
    assert all(has(text, f"^. {name} ") for name in "acdf")


def test_a_lost_connection_is_told_with_its_reason_and_nothing_grows_older() -> None:
    found = lost(state(running=[running("job", 5)]), "the service cannot be reached: \x1bno")
    found = replace(found, snapshot=found.snapshot)
    lines = screen_lines(found, Size(80, 24), ago(-3_600), UNICODE)
    text = "\n".join(line.plain.rstrip() for line in lines)
    assert has(text, "connection lost, trying again$")
    assert has(text, r"^ the service cannot be reached: \\x1bno$")
    assert has(text, "^  job .* 5 s")


def test_the_line_at_the_bottom_says_what_matters_most() -> None:
    found = state(failed=[failed("mail", message="no such\naddress")], running=[running("job")])
    in_failed = replace(found, panel=Panel.FAILED, choices={Panel.FAILED: Choice("mail", 0)})
    assert has(shown(in_failed), r"^ ValueError: no such\\naddress$")
    filtered = replace(in_failed, filter="mail")
    assert has(shown(filtered), r"^ filter: mail \(Esc clears it\)$")
    assert has(shown(told(lost(filtered, "gone"), "queue a is paused", NOW)), "^ queue a is paused$")
    asked = replace(filtered, mode=Mode.ASK, order=Order("cancel", "job"))
    assert has(shown(asked), r"^ cancel job job\? \[y/N\]$")
    typed = replace(found, mode=Mode.FILTER, filter="x" * 100)
    assert has(shown(typed), "…x+_$")


def test_a_paused_queue_says_so_in_words() -> None:
    assert has(shown(state(queues=[queue("a", paused=True)])), "^▸ a .* paused")


_HOSTILE = st.text(st.characters(codec="utf-8"), max_size=60)


@settings(max_examples=50)
@given(_HOSTILE, _HOSTILE, st.integers(1, 200), st.integers(1, 50), st.sampled_from(Panel))
def test_nothing_of_a_job_is_raw_or_breaks_a_line(
    text: str, note: str, width: int, height: int, panel: Panel
) -> None:
    found = state(
        queues=[queue(text or "a")],
        running=[running("job", progress=Progress(value=0.5, note=note))],
        failed=[failed("mail", message=text)],
        workers=[worker(note, text)],
    )
    found = told(replace(found, panel=panel, filter=""), text, NOW)
    assert all(line.isprintable() for line in shown(found, width, height).split("\n"))


def test_a_snapshot_shows_every_row_and_no_marks() -> None:
    found = state(
        queues=[queue("a")],
        running=[running(f"job-{number}") for number in range(40)],
        failed=[failed("mail")],
    )
    text = "\n".join(line.plain.rstrip() for line in snapshot_lines(found, 120, NOW, UNICODE))
    assert text.startswith(" jobpipe top  http://127.0.0.1:8080  2026-03-01 12:00:00 UTC\n")
    assert all(has(text, f"^  job-{number} ") for number in range(40))
    assert "▸" not in text
