"""`schedules` and what can be done with one, on a store and on a service."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from jobpipe.cli.render.tables import until

from .conftest import call, call_json


def test_a_schedule_is_made_shown_run_and_dropped(there: list[str]) -> None:
    made = call_json(
        *("schedules", "put", "nightly", "--type", "echo", "--payload", '{"a": 1}', "--queue", "mine"),
        *("--cron", "0 3 * * *", "--tz", "Europe/Berlin", "--missed", "none", *there),
    )
    assert (made["type"], made["payload"], made["queue"]) == ("echo", {"a": 1}, "mine")
    assert (made["cron"], made["tz"], made["missed"], len(made["next_at"])) == (
        "0 3 * * *",
        "Europe/Berlin",
        "none",
        5,
    )
    assert call_json("schedules", "show", "nightly", *there) == made
    assert call_json("schedules", *there) == [made]
    ran = call_json("schedules", "run", "nightly", *there)
    assert call_json("job", ran["id"], *there)["payload"] == {"a": 1}
    assert call("schedules", "drop", "nightly", *there) == "nightly dropped\n"
    assert call("schedules", *there) == "no schedules\n"
    for verb in ("show", "run", "pause", "resume", "drop"):
        told = call("schedules", verb, "nightly", *there, code=1)
        assert told == "error: no schedule has the name 'nightly'\n"


def test_people_see_the_next_ticks_with_words(there: list[str]) -> None:
    shown = call("schedules", "put", "tidy", "--type", "echo", "--every", "3600", *there).splitlines()
    assert "timing every 3600 s" in [" ".join(line.split()) for line in shown]
    ticks = [line.strip() for line in shown if "in " in line][-5:]
    assert ticks[1].endswith((" in 119 min", " in 2 h"))
    assert ticks[4].endswith((" in 4 h", " in 5 h"))
    assert " in 59 min" in call("schedules", *there) or " in 60 min" in call("schedules", *there)


def test_people_are_told_what_becomes_of_what_was_missed(there: list[str]) -> None:
    put = ("schedules", "put", "tidy", "--type", "echo", "--every", "3600", *there)
    call(*put)
    due = "missed   ticks missed while nothing runs are "
    assert f"{due}made up for by one job\n" in call("schedules", "show", "tidy", *there)
    assert f"{due}skipped\n" in call(*put, "--missed", "none")


def test_a_schedule_is_paused_and_goes_on(there: list[str]) -> None:
    made = call_json("schedules", "put", "tidy", "--type", "echo", "--every", "3600", *there)
    paused = {**made, "paused": True, "next_at": []}
    assert call_json("schedules", "pause", "tidy", *there) == paused
    assert call("schedules", "pause", "tidy", *there) == "tidy paused\n"
    (_, line) = call("schedules", *there).splitlines()
    assert line.split() == ["tidy", "echo", "every", "3600", "s", "paused"]
    assert "next     none while paused" in call("schedules", "show", "tidy", *there)
    assert call("schedules", "run", "tidy", *there).endswith(" queued\n")
    told = call("schedules", "resume", "tidy", *there)
    assert re.fullmatch(r"tidy resumed: next [\d-]{10}T[\d:]{8}\S{6} in (59|60) min\n", told)
    assert call_json("schedules", "resume", "tidy", *there) == made


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--every", "60"], "Missing option '--type'"),
        (["--type", "echo"], "error: --every or --cron must be given"),
        (
            ["--type", "echo", "--every", "60", "--cron", "* * * * *"],
            "error: --every or --cron must be given",
        ),
        (["--type", "echo", "--every", "60", "--tz", "UTC"], "error: --tz is for --cron"),
        (["--type", "echo", "--every", "0"], "error: --every must be"),
        (["--type", "echo", "--cron", "nonsense"], "error: --cron "),
        (["--type", "echo", "--cron", "* * * * *", "--tz", "Mars/Base"], "error: --tz must be"),
        (["--type", "echo", "--every", "60", "--missed", "all"], "error: --missed "),
        (["--type", "a b", "--every", "60"], "error: --type "),
        (["--type", "echo", "--every", "60", "--payload", "hello"], "error: --payload is not JSON"),
    ],
)
def test_what_is_asked_wrongly_names_the_field(there: list[str], arguments: list[str], said: str) -> None:
    assert said in call("schedules", "put", "x", *arguments, *there, code=2)
    assert call_json("schedules", *there) == []


def test_options_come_after_the_action() -> None:
    """Why refused: before it they would be those of the list, and be lost."""
    told = call("schedules", "--store", "sqlite:///other.db", "drop", "x", code=2)
    assert told == "error: --store must come after 'drop'\n"


def test_only_put_makes_a_store(folder: Path) -> None:
    for arguments in (["schedules"], ["schedules", "run", "x"]):
        assert "names a store that does not exist" in call(*arguments, code=2)
    call("schedules", "put", "x", "--type", "echo", "--every", "60")
    assert (folder / "jobpipe.db").exists()


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-5, "in 0 s"),
        (0.4, "in 0 s"),
        (59, "in 59 s"),
        (119, "in 119 s"),
        (120, "in 2 min"),
        (7_199, "in 119 min"),
        (7_200, "in 2 h"),
        (172_799, "in 47 h"),
        (172_800, "in 2 d"),
    ],
)
def test_how_long_it_is_until_then(seconds: float, words: str) -> None:
    now = datetime(2030, 1, 1, tzinfo=UTC)
    assert until(now + timedelta(seconds=seconds), now) == words


@pytest.mark.parametrize(
    ("given", "bad_input"),
    [
        (["--every", "five"], "--every.*must be a number of seconds, such as 90 or 0.5, got 'five'"),
        (["--every", "60", "--missed", "two"], "error: --missed must be one or none, got 'two'"),
    ],
)
def test_what_is_wrong_is_said_with_what_is_right(given: list[str], bad_input: str) -> None:
    told = call("schedules", "put", "tidy", "--type", "echo", *given, code=2)
    assert re.search(bad_input, " ".join(told.split())), told
