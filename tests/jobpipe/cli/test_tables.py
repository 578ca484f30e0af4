"""What people are shown of jobs: aligned, without blanks at the ends, folded only where they look."""

from __future__ import annotations

import io
import re
import time
from collections.abc import Sequence
from contextlib import redirect_stdout
from datetime import UTC, datetime

import pytest

from jobpipe.cli.render.columns import Cell, Row, print_columns
from jobpipe.cli.render.tables import print_job, print_jobs, print_schedule, print_schedules
from jobpipe.gateway.timetable import ScheduleInfo
from jobpipe.model.job import Attempt, Job, JobError, JobStatus, Progress
from jobpipe.stores.base import Missed

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
BOOM = JobError(type="Boom", message="it broke", traceback="Traceback:\n\n  line 1  \n")
ROWS = [
    (Cell("ID", "bold"), Cell("STATUS", "bold"), Cell("ERROR", "bold")),
    (Cell("a-long-one"), Cell("failed", "red"), Cell("what went wrong takes more words than fit")),
    (Cell("日本"), Cell("done", "green"), Cell("")),
]


def job(status: JobStatus = JobStatus.DONE, *history: Attempt) -> Job:
    return Job(
        id="a",
        type="echo",
        queue="default",
        status=status,
        run_at=NOON,
        created_at=NOON,
        error=BOOM if status is JobStatus.FAILED else None,
        progress=Progress(value=0.5),
        history=history,
    )


def run(number: int, error: JobError | None = None) -> Attempt:
    return Attempt(number=number, began_at=NOON, ended_at=NOON, worker="w1", error=error)


class Screen(io.StringIO):
    """A terminal that somebody looks at."""

    def isatty(self) -> bool:
        return True

    def show(self, rows: Sequence[Row]) -> str:
        """What it shows of them."""
        with redirect_stdout(self):
            print_columns(rows)
        return self.getvalue()


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    """One that is 42 columns wide, and has colours."""
    monkeypatch.setenv("COLUMNS", "42")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return Screen()


def test_columns_are_as_wide_as_their_widest_cell_and_no_line_is_folded_in_a_pipe(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_columns(ROWS)
    assert capsys.readouterr().out.splitlines() == [
        "ID          STATUS  ERROR",
        "a-long-one  failed  what went wrong takes more words than fit",
        "日本        done",
    ]


def test_a_terminal_has_colours_and_the_last_column_folded(screen: Screen) -> None:
    shown = screen.show(ROWS)
    assert "\x1b[31mfailed\x1b[0m" in shown
    assert re.sub(r"\x1b\[[\d;]*m", "", shown).splitlines() == [
        "ID          STATUS  ERROR",
        "a-long-one  failed  what went wrong takes",
        "                    more words than fit",
        "日本        done",
    ]


def test_a_terminal_without_colours_gets_none(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    shown = screen.show(ROWS)
    assert "failed" in shown
    assert "\x1b[31m" not in shown


def test_where_there_is_no_room_to_fold_lines_are_left_to_the_terminal(
    screen: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    assert "takes more words than fit\n" in screen.show(ROWS)


def test_no_line_ends_in_blanks(capsys: pytest.CaptureFixture[str]) -> None:
    schedule = ScheduleInfo(
        name="s",
        type="echo",
        queue="default",
        payload=" ",
        every=60.0,
        cron=None,
        tz=None,
        missed=Missed.ONE,
        next_at=[NOON] * 5,
        last_at=None,
        last_job=None,
    )
    print_jobs([job(), job(JobStatus.FAILED)])
    print_job(job(JobStatus.FAILED, run(1, BOOM)))
    print_schedules([schedule])
    print_schedule(schedule)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 20
    assert [line for line in lines if line != line.rstrip()] == []


@pytest.mark.parametrize(
    ("shown", "ends"),
    [
        (job(JobStatus.DONE, run(1, BOOM), run(2)), ["Boom: it broke", "ok"]),
        (job(JobStatus.CANCELLED, run(1)), ["cancelled"]),
        (job(JobStatus.CANCELLED, run(1, BOOM)), ["Boom: it broke"]),
        (job(JobStatus.RUNNING, run(1), run(2, BOOM)), ["cancelled", "Boom: it broke"]),
        (job(JobStatus.DONE, run(1), run(2)), ["cancelled", "ok"]),
    ],
)
def test_a_run_that_was_cancelled_is_not_ok(
    shown: Job, ends: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    print_job(shown)
    assert re.findall(r"^run .* s, w1: (.*)$", capsys.readouterr().out, re.MULTILINE) == ends


def test_thousands_of_jobs_are_printed_within_a_moment(capsys: pytest.CaptureFixture[str]) -> None:
    """Of this process's own time, of which the tables of rich took more than three seconds for as many."""
    many = [job(JobStatus.FAILED if number % 2 else JobStatus.DONE) for number in range(5_000)]
    began = time.process_time()
    print_jobs(many)
    assert time.process_time() - began < 1.5
    assert len(capsys.readouterr().out.splitlines()) == 5_001
