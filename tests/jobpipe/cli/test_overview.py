"""`queues`, `workers`, `limits`, `stats`, `enqueue --app` and times: on a store and on a service."""

from __future__ import annotations

import json
import re
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from jobpipe import Jobpipe
from jobpipe.cli.render.tables import print_limits, print_stats, print_workers
from jobpipe.gateway.limits import LimitInfo
from jobpipe.gateway.views import Stats, Worker
from jobpipe.model.counts import WorkerInfo

from .conftest import call, call_json, call_process

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
APP = """
from jobpipe import BadInputError, Jobpipe

pipe = Jobpipe("sqlite:///of_the_app.db")

def not_spam(to: str) -> None:
    if "spam" in to:
        raise BadInputError("payload", "is spam")

@pipe.job(queue="mail", max_retries=2, priority=5, check=not_spam)
def email(to: str) -> None: ...
"""


def test_queues_and_stats_are_listed(there: list[str]) -> None:
    assert call("queues", *there) == "no queues\n"
    call("pause", "held", *there)
    call("enqueue", "echo", "--queue", "held", *there)
    call("enqueue", "echo", "--delay", "3600", *there)
    assert call("queues", *there).splitlines() == [
        "QUEUE    STATE    SCHEDULED  WAITING  QUEUED  RUNNING",
        "default  running  1          0        0       0",
        "held     paused   0          0        1       0",
    ]
    assert call_json("queues", *there)[1] == {
        "name": "held",
        "paused": True,
        "scheduled": 0,
        "waiting": 0,
        "queued": 1,
        "running": 0,
    }
    shown = call("stats", *there).splitlines()
    assert shown[0].split()[:2] == ["STATUS", "JOBS"]
    assert ("PER SECOND" in shown[0]) is bool(there)
    assert {line.split()[0]: line.split()[1] for line in shown[1:]} == {
        "scheduled": "1",
        "waiting": "0",
        "queued": "1",
        "running": "0",
        "done": "0",
        "failed": "0",
        "cancelled": "0",
        "expired": "0",
    }
    assert bool(call_json("stats", *there)["per_second"]) is bool(there)


def test_workers_and_limits_are_listed(there: list[str]) -> None:
    assert call("limits", *there) == "no limits\n"
    assert call_json("limits", *there) == []
    if there:
        assert [worker["types"] for worker in call_json("workers", *there)] == [["echo", "fail", "sleep"]]
        assert re.search(
            r"\S+  4      0        all     \S+  \S+  echo, fail, sleep$",
            call("workers", *there),
            re.MULTILINE,
        )
    else:
        assert call("workers") == "no workers\n"


def test_limits_of_live_workers_are_shown(folder: Path) -> None:
    pipe = Jobpipe("sqlite:///jobpipe.db")
    pipe.job("email", rate="5/s", concurrency=2)(lambda to: None)
    limit = pipe.types["email"].limit
    assert limit is not None
    info = WorkerInfo(name="w", types=("email",), slots=1, running=(), started_at=0.0, limits=(limit,))
    pipe.store.beat(info, 3600)
    pipe.close()
    assert call("limits").splitlines() == [
        "QUEUE  TYPE   KEY  RATE  CONCURRENCY  RUNNING  QUEUED  NEXT",
        "       email       5/s   2            0        0",
    ]


def test_tables_say_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    print_workers(
        [Worker(name="w", types=("a", "b"), slots=4, running=("x",), started_at=NOON, seen_at=NOON)], UTC
    )
    print_limits([LimitInfo(type="a", is_keyed=True), LimitInfo(type="a", key="k", cools_until=NOON)], UTC)
    counts = dict.fromkeys(("scheduled", "waiting", "queued", "running", "failed", "cancelled", "expired"), 0)
    print_stats(Stats(done=1_234, **counts, per_second={"done": 2.5}))
    lines = capsys.readouterr().out.splitlines()
    assert "w       4      1        all     2030-01-01T12:00:00Z  2030-01-01T12:00:00Z  a, b" in lines
    assert "       a     (each)                     0" in lines
    assert (
        "       a     k                          0                cools until 2030-01-01T12:00:00Z" in lines
    )
    assert "done       1,234  2.5" in lines


def test_times_are_local_with_their_offset_and_can_be_pasted_back(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    time.tzset()
    try:
        call("enqueue", "echo", "--id", "a", "--run-at", "2030-01-01T00:00:00Z")
        found = re.search(r"^run at +(\S+)$", call("job", "a"), re.MULTILINE)
        assert found is not None
        assert found[1] == "2030-01-01T05:45:00+05:45"
        call("enqueue", "echo", "--id", "b", "--run-at", found[1])
        assert call_json("job", "b")["run_at"] == "2030-01-01T00:00:00Z"
        assert re.search(r"^run at +2030-01-01T00:00:00Z$", call("job", "a", "--utc"), re.MULTILINE)
        assert "+05:45" in call("jobs")
        assert "Z" in call("jobs", "--utc").splitlines()[1]
        call("schedules", "put", "s", "--type", "echo", "--cron", "@yearly")
        assert "-01-01T05:45:00+05:45  in " in call("schedules")
        assert "-01-01T00:00:00Z in" in call("schedules", "show", "s", "--utc")
    finally:
        monkeypatch.undo()
        time.tzset()


def test_the_app_gives_defaults_checks_and_store(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "shop.py").write_text(APP)
    monkeypatch.syspath_prepend(str(folder))
    ended = call_process("enqueue", "email", '"ada@b"', "--id", "a", "--app", "shop:pipe")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "a queued\n", "")
    job = call_json("job", "a", "--store", "sqlite:///of_the_app.db")
    assert (job["queue"], job["max_retries"], job["priority"]) == ("mail", 2, 5)
    assert not (folder / "jobpipe.db").exists()
    for payload, said in (('"spam"', "PAYLOAD is spam"), ("7", "PAYLOAD must be")):
        ended = call_process("enqueue", "email", payload, "--app", "shop:pipe")
        assert (ended.returncode, ended.stdout) == (2, "")
        assert ended.stderr.startswith(f"error: {said}"), ended.stderr
    ended = call_process("enqueue", "email", '"x"', "--app", "shop:pipe", "--store", "sqlite:///other.db")
    assert ended.returncode == 0
    assert len(call_json("jobs", "--store", "sqlite:///other.db")) == 1
    lines = "\n".join(json.dumps({"payload": to}) for to in ("a", "b"))
    ended = call_process("enqueue", "email", "--app", "shop:pipe", "--file", "-", input=lines)
    assert ended.stdout == "2 enqueued, 0 already existed\n"


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--app", "nosuch:pipe"], "error: --app names the module 'nosuch', but there is no"),
        (["--app", "app.py"], "error: --app must name a module, not a file"),
        (["--app", "a:b", "--url", "http://localhost:1"], "error: --app and --url exclude each other"),
    ],
)
def test_an_app_that_is_none_is_a_line(flags: list[str], said: str) -> None:
    ended = call_process("enqueue", "echo", *flags)
    assert ended.returncode == 2
    assert ended.stderr.startswith(said), ended.stderr
    assert ended.stderr.count("\n") == 1


def test_an_unknown_type_is_one_line_on_stderr(there: list[str]) -> None:
    said = "warning: no running worker knows the type 'ecko'; did you mean 'echo'?\n"
    ended = call_process("enqueue", "ecko", "--delay", "1000", "--id", "a", *there)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "a scheduled\n", said)
    lines = '{"type": "ecko", "delay": 9}\n{"type": "echo"}\n{"type": "ecko", "delay": 9}\n'
    ended = call_process("enqueue", "--file", "-", "--json", *there, input=lines)
    assert (ended.returncode, json.loads(ended.stdout)["new"], ended.stderr) == (0, 3, said)
