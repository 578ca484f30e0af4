"""`cancel`, `retry` and `delete`: of some jobs by their ids, and of many after a question."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from jobpipe import FailureGroup, Failures
from jobpipe.cli import target
from jobpipe.cli.render.tables import print_failures

from .conftest import call, call_json, call_process, terminal


@pytest.fixture
def jobs(there: list[str]) -> list[str]:
    """Three jobs that wait, in two queues."""
    for id, queue in (("a", "mine"), ("b", "mine"), ("c", "other")):
        call("enqueue", "echo", "--id", id, "--queue", queue, "--delay", "600", *there)
    return there


def statuses(there: list[str]) -> dict[str, str]:
    return {job["id"]: job["status"] for job in call_json("jobs", *there)}


def test_one_that_cannot_be_changed_keeps_no_other_from_it(jobs: list[str]) -> None:
    assert call("cancel", "a", "nosuch", "b", *jobs, code=1) == "error: no job has the id 'nosuch'\n"
    assert statuses(jobs) == {"a": "cancelled", "b": "cancelled", "c": "scheduled"}
    changed = call_json("retry", "c", "a", *jobs, code=1)
    assert [job["id"] for job in changed] == ["a"]


def test_many_jobs_are_not_changed_where_nobody_can_be_asked(jobs: list[str]) -> None:
    told = call("cancel", "--queue", "mine", *jobs, code=2)
    assert told == "error: no terminal to confirm on, pass --yes to cancel 2 jobs\n"
    assert set(statuses(jobs).values()) == {"scheduled"}
    assert call("cancel", "--queue", "mine", "--yes", *jobs) == "2 jobs\n"
    assert statuses(jobs) == {"a": "cancelled", "b": "cancelled", "c": "scheduled"}
    assert call_json("retry", "--status", "cancelled", "--type", "echo", "-y", *jobs) == {"count": 2}


def test_nobody_is_asked_about_nothing(jobs: list[str]) -> None:
    for arguments in (["--queue", "empty"], ["--status", "done"], ["--type", "nosuch"]):
        assert call("cancel", *arguments, *jobs) == "0 jobs\n"
        assert call_json("retry", *arguments, *jobs) == {"count": 0}
    assert call("cancel", "--status", "lost", *jobs, code=2).startswith("error: --status ")


def test_the_question_tells_how_many_jobs_it_is_about(jobs: list[str]) -> None:
    with terminal("cancel", "--queue", "mine", *jobs) as shell:
        shell.until(r"cancel 2 jobs\? \[y/N\] ")
        shell.type("n\n")
        assert shell.ended() == (1, "")
        assert "nothing was changed" in shell.shown
    assert set(statuses(jobs).values()) == {"scheduled"}
    with terminal("cancel", "--all", "--json", *jobs) as shell:
        shell.until(r"cancel 3 jobs\? \[y/N\] ")
        shell.type("y\n")
        code, printed = shell.ended()
        assert (code, json.loads(printed)) == (0, {"count": 3})


def test_more_jobs_than_anybody_counts_are_many(jobs: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target, "MOST_COUNTED", 2)
    assert "pass --yes to cancel more than 2 jobs" in call("cancel", "--all", *jobs, code=2)


def test_a_question_is_not_answered_by_a_file(folder: object) -> None:
    call("enqueue", "echo", "--id", "a")
    ended = call_process("cancel", "--all", input="y\n")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "pass --yes to cancel 1 job\n" in ended.stderr


def test_finished_jobs_are_deleted_by_a_filter(jobs: list[str]) -> None:
    call("cancel", "a", "b", *jobs)
    told = call("delete", "--queue", "mine", *jobs, code=2)
    assert told == "error: no terminal to confirm on, pass --yes to delete 2 jobs\n"
    assert call("delete", "--error", "Nothing", *jobs) == "0 jobs\n"
    assert call("delete", "a", *jobs) == "a deleted\n"
    assert call_json("delete", "--all", "--yes", *jobs) == {"count": 1}
    assert statuses(jobs) == {"c": "scheduled"}
    for arguments in ([], ["a", "--all"]):
        assert call("delete", *arguments, *jobs, code=2).startswith("error: ID is required, or a filter")


def test_a_job_is_retried_with_another_payload(jobs: list[str]) -> None:
    call("cancel", "a", "b", *jobs)
    assert call("retry", "a", "--payload", '{"b": 2}', *jobs) == "a queued\n"
    assert call_json("job", "a", *jobs)["payload"] == {"b": 2}
    assert call("retry", "b", "--payload", "{", *jobs, code=2).startswith("error: --payload ")
    for wrong in (["a", "b"], ["--all", "--yes"]):
        told = call("retry", *wrong, "--payload", "1", *jobs, code=2)
        assert told == "error: --payload can be given for one job only, by its ID\n"


def test_failures_are_listed(there: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert call("failures", *there) == "no failed jobs\n"
    assert call_json("failures", *there) == {"failures": [], "counted": 0, "is_complete": True}
    at = datetime(2030, 1, 1, 12, tzinfo=UTC)
    group = FailureGroup(type="mail", error="Boom", count=1234, first_at=at, last_at=at, last_id="a")
    print_failures(Failures(failures=[group], counted=1234, is_complete=False), UTC)
    assert capsys.readouterr().out.splitlines() == [
        "TYPE  ERROR  COUNT  FIRST                 LAST                  LAST ID",
        "mail  Boom   1,234  2030-01-01T12:00:00Z  2030-01-01T12:00:00Z  a",
        "only the 1,234 jobs that failed last are counted",
    ]
