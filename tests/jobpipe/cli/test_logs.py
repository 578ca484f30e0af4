"""`jobpipe logs`: once, and until the job ends; on a store and on a service."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from typer.testing import CliRunner

from jobpipe.cli.logs import _follow as follow
from jobpipe.cli.main import app
from jobpipe.cli.target import Target
from jobpipe.errors import JobpipeError, UnauthorizedError, UnreachableError
from jobpipe.model.job import instant
from jobpipe.model.logs import JobLogs, LogLine

from .conftest import Start, call, call_json

APP = """
import logging, pathlib, time
from jobpipe import Jobpipe

pipe = Jobpipe("sqlite:///jobs.db")

@pipe.job
def work(go: str) -> None:
    logging.info("begin")
    while not pathlib.Path(go).exists():
        time.sleep(0.01)
    logging.warning("two\\x1b\\nlines")
"""

LINE = LogLine(attempt=2, at=instant(0), level="INFO", logger="app", message="")


def test_logs_are_followed_until_the_job_ends(folder: Path, start: Start) -> None:
    (folder / "app.py").write_text(APP)
    serving = start("serve", "app:pipe", "--port", "0")
    url = serving.line(r"listening on (http://127\.0\.0\.1:\d+)$")[1]
    there = [["--store", "sqlite:///jobs.db"], ["--url", url]]
    for number, flags in enumerate(there):
        id, go = f"job{number}", f"go{number}"
        call("enqueue", "work", json.dumps(go), "--id", id, *there[1])
        followed = start("logs", id, "--follow", "--utc", *flags)
        followed.line(r"^20\d\d-.*Z #1 INFO root: begin$")
        (folder / go).touch()
        followed.line(r"^20\d\d-.*Z #1 WARNING root: two\\x1b$")
        followed.line("^    lines$")
        assert followed.code() == 0
    for flags in there:
        assert [line["message"] for line in call_json("logs", "job0", *flags)["lines"]] == [
            "begin",
            "two\x1b\nlines",
        ]
        lines = call("logs", "job0", "--follow", "--json", *flags).splitlines()
        assert [json.loads(line)["level"] for line in lines] == ["INFO", "WARNING"]


def test_logs_of_no_job_are_one_line(there: list[str]) -> None:
    for flags in ([], ["--follow"]):
        assert call("logs", "nope", *flags, *there, code=1) == "error: no job has the id 'nope'\n"


class _Away:
    """A job that logs a line between two looks; each of these answers, or fails."""

    def __init__(self, *looks: JobLogs | JobpipeError) -> None:
        self._looks = iter(looks)
        self.asked: list[int] = []

    def job(self, id: str) -> SimpleNamespace:
        return SimpleNamespace(is_finished=False)

    def logs(self, id: str, after: int) -> JobLogs:
        self.asked.append(after)
        found = next(self._looks)
        if isinstance(found, JobpipeError):
            raise found
        return found

    def job_within(self, id: str, seconds: float) -> SimpleNamespace:
        return SimpleNamespace(is_finished=len(self.asked) > 2)


def test_each_line_is_followed_once_where_lines_between_are_cut() -> None:
    target = _Away(
        JobLogs([LINE] * 10, 0, 10), JobLogs([LINE] * 3, 5, 18), JobLogs([], 9, 18), JobLogs([], 9, 18)
    )
    found = list(follow(cast("Target", target), "x"))
    assert target.asked == [0, 10, 18, 18]
    assert [(len(each.lines), each.cut) for each in found] == [(10, 0), (3, 5), (0, 0), (0, 0)]


def test_following_goes_on_when_the_service_was_away(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobpipe.cli.logs._TRY_AGAIN", 0)
    away = UnreachableError("the service cannot be reached")
    target = _Away(JobLogs([LINE], 0, 1), away, away, JobLogs([LINE], 0, 2), JobLogs([], 0, 2))
    assert [len(each.lines) for each in follow(cast("Target", target), "x")] == [1, 1, 0]
    assert target.asked == [0, 1, 1, 1, 2]
    assert capsys.readouterr().err == "the service cannot be reached; trying again\n"
    with pytest.raises(UnauthorizedError):
        list(follow(cast("Target", _Away(JobLogs([LINE], 0, 1), UnauthorizedError("no token"))), "x"))


def test_job_that_logged_nothing_is_said_on_stderr(there: list[str]) -> None:
    call("enqueue", "echo", "--id", "silent", "--delay", "3600", *there)
    call("cancel", "silent", *there)
    for flags in ([], ["--follow"]):
        shown = CliRunner().invoke(app, ["logs", "silent", *flags, *there])
        assert (shown.exit_code, shown.stdout) == (0, "")
        assert shown.stderr == "the job 'silent' has logged nothing\n"


def test_lines_that_were_cut_are_said_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    from jobpipe.cli.render.tables import print_logs as print_lines

    print_lines(JobLogs([LINE], 3, 4))
    out, err = capsys.readouterr()
    assert out.endswith(" #2 INFO app: \n")
    assert err == "3 older lines were cut: the logs of a job are kept up to a limit\n"
