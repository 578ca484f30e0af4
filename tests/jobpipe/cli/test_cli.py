"""The commands: their arguments in this process, their life in real ones."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from jobpipe import __version__
from jobpipe.cli.main import app
from jobpipe.errors import JobpipeError, SettingsError
from jobpipe.process.listening import listen, url_of
from jobpipe.settings import Settings, flag_of
from jobpipe.stores import open_store

from ...support.processes import Program, program

APP = """
import os, time
from pathlib import Path
from jobpipe import Jobpipe

pipe = Jobpipe("sqlite:///jobs.db", lease=1, port=0)

@pipe.job("poison", max_retries=1)
def poison():
    os._exit(9)

@pipe.job("stuck")
def stuck():
    print("stuck in a thread", flush=True)
    time.sleep(1000)

@pipe.job("block")
async def block():
    print("blocked", flush=True)
    time.sleep(1000)
"""

Start = Callable[..., Program]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [*os.environ]:
        if name.startswith("JOBPIPE_") or name in ("WORKERS", "QUEUE_SIZE"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.py").write_text(APP)
    return tmp_path


@pytest.fixture
def empty_store(folder: Path) -> None:
    store = open_store("sqlite:///jobpipe.db")
    store.migrate()
    store.close()


@pytest.fixture
def start(folder: Path) -> Iterator[Start]:
    with ExitStack() as stack:
        yield lambda *arguments: stack.enter_context(program(["-m", "jobpipe", *arguments], folder))


def call(*arguments: str, code: int = 0) -> str:
    """What the command prints: on stdout, or one line on stderr if it fails."""
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == code, result.output
    if code:
        assert result.stdout == ""
        assert len(result.stderr.splitlines()) == 1 or "Usage" in result.stderr
        return result.stderr
    return result.stdout


def call_json(*arguments: str) -> Any:
    return json.loads(call(*arguments, "--json"))


def ask(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=30) as answer:
        return json.load(answer)


# Arguments


def test_the_version_is_shown() -> None:
    assert call("--version").startswith("jobpipe ")


@pytest.mark.parametrize("command", [[], ["schedules"]], ids=["jobpipe", "schedules"])
def test_the_list_of_commands_is_whole_in_80_columns(command: list[str]) -> None:
    """What a command does is said in one short sentence: click cuts longer ones."""
    shown = CliRunner().invoke(app, [*command, "--help"], env={"COLUMNS": "80"}).stdout
    commands = shown.partition("Commands:")[2].splitlines()
    assert len(commands) > 5
    assert not [line for line in commands if line.endswith(("...", "…"))]


def test_serve_has_a_flag_for_every_setting_and_worker_for_all_but_the_web() -> None:
    serve, worker = call("serve", "--help"), call("worker", "--help")
    for each in fields(Settings):
        assert flag_of(each.name) in serve
        assert each.metadata["env"] in serve
    assert "--workers" in worker
    assert "--port" not in worker
    assert "--token" not in worker


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["serve", "--workers", "x"], "error: --workers must be a whole number from 0 to 10000, got 'x'"),
        (["worker", "--log", "xml"], "error: --log must be text or json"),
        (
            ["worker", "--queues", "a=2,b"],
            "slots must be given once for every queue or for none, got 'a=2,b'",
        ),
        (
            ["serve", "--queues", "a=2,b=3", "--workers", "4"],
            "error: --workers must be the sum of the slots in --queues, which is 5, got 4: leave it out",
        ),
        (
            ["worker", "--queues", "a", "--except-queues", "b"],
            "error: --except-queues cannot be combined with --queues",
        ),
        (["worker", "--processes", "0"], "error: --processes must be a whole number from 1 to 1000, got 0"),
        (["worker", "--processes", "two"], "'--processes': must be a whole number, such as 5, got 'two'"),
        (["jobs", "--limit", "many"], "'--limit': must be a whole number, such as 5, got 'many'"),
        (
            ["enqueue", "echo", "--priority", "1.5"],
            "'--priority': must be a whole number, such as 5, got '1.5'",
        ),
        (["jobs", "--store", "memory://"], "error: --store must be a store that other processes can use"),
        (["jobs", "--store", "foo://x"], "error: --store must begin with"),
        (["jobs", "--status", "lost"], "error: --status "),
        (
            ["schedules", "--store", "memory://"],
            "error: --store must be a store that other processes can use",
        ),
        (["jobs", "--limit", "0"], "error: --limit must be a whole number, 1 or more"),
        (["enqueue", "echo", "1", "--priority", "5000"], "error: --priority "),
        (["enqueue", "echo", "1", "--run-at", "2030-01-01T00:00:00"], "error: --run-at "),
        (
            ["enqueue", "echo", "1", "--delay", "1", "--run-at", "2030-01-01T00:00:00Z"],
            "error: --delay and --run-at ",
        ),
        (["enqueue", "echo", "1", "--on-duplicate", "replace"], "error: --on-duplicate requires --unique"),
        (
            ["enqueue", "echo", "1", "--unique", "a", "--on-duplicate", "drop"],
            "error: --on-duplicate must be",
        ),
        (["enqueue", "echo", "1", "--expires-in", "-1"], "error: --expires-in must be"),
        (["enqueue", "echo", "1", "--tag", "a", "--tag", ""], "error: --tag must not be empty"),
        (["enqueue", "a b", "1"], "error: TYPE "),
        (["enqueue", "echo", "hello"], """such as '"hello"'"""),
        (["enqueue", "echo", '{"a":1,"a":2}'], "the key 'a' appears twice"),
        (["enqueue", "echo", "NaN"], "NaN is not JSON"),
        (["nonsense"], "No such command"),
    ],
)
def test_what_is_asked_wrongly_is_refused_with_code_2(
    arguments: list[str], said: str, empty_store: None
) -> None:
    assert said in call(*arguments, code=2)


def test_a_wrong_environment_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUEUE_SIZE", "many")
    assert "error: QUEUE_SIZE must be" in call("worker", code=2)


# Jobs


def test_a_job_is_put_in_and_seen() -> None:
    assert (
        call("enqueue", "echo", '{"a": [1, 2]}', "--id", "t1", "--max-retries", "0", "--priority", "-5")
        == "t1 queued\n"
    )
    assert "already existed" in call(
        "enqueue", "echo", '{"a":[1,2]}', "--id", "t1", "--max-retries", "0", "--priority", "-5"
    )
    assert "other content" in call("enqueue", "echo", "1", "--id", "t1", code=1)
    job = call_json("job", "t1")
    assert (job["payload"], job["max_retries"], job["priority"], job["history"]) == ({"a": [1, 2]}, 0, -5, [])
    assert '{"a": [1, 2]}' in call("job", "t1")
    assert call_json("job", "t1", "--explain")["reason"] == "no_worker"
    assert "No worker knows" in call("job", "t1", "--explain")


def test_a_job_is_put_in_with_a_unique_name_an_expiry_and_tags() -> None:
    more = ["--unique", "n", "--on-duplicate", "replace", "--expires-in", "60", "--tag", "b", "--tag", "a c"]
    assert call("enqueue", "echo", "1", "--id", "t1", *more) == "t1 queued\n"
    job = call_json("job", "t1")
    assert (job["unique"], job["on_duplicate"], job["tags"]) == ("n", "replace", ["b", "a c"])
    shown = call("job", "t1")
    assert all(words in shown for words in ("unique", "b, a c", "expires"))


def test_reading_makes_no_store_where_there_is_none(folder: Path) -> None:
    for arguments in (["jobs"], ["job", "t1"]):
        assert "sqlite:///jobpipe.db" in call(*arguments, code=2)
    assert not (folder / "jobpipe.db").exists()


def test_who_waits_in_vain_is_told_why(folder: Path) -> None:
    result = CliRunner().invoke(app, ["enqueue", "nosuch", "1", "--wait", "--timeout", "2.5"])
    assert result.exit_code == 1
    assert "No worker knows the type 'nosuch'" in result.stderr
    assert "queued" in result.stdout
    (id,) = re.findall(
        r"^error: timed out after 2\.5 s: the job (\S+) is queued and continues; jobpipe job \1 shows it$",
        result.stderr,
        re.MULTILINE,
    )
    assert call_json("job", id)["status"] == "queued"


def test_an_unknown_job_is_an_error_with_code_1(empty_store: None) -> None:
    assert call("job", "t1", code=1) == "error: no job has the id 't1'\n"
    assert call("job", "t1\x1b", "--explain", code=1).isascii()


def test_jobs_are_filtered_and_limited(empty_store: None) -> None:
    assert call("jobs") == "no jobs\n"
    assert call_json("jobs") == []
    for number in range(5):
        call(
            "enqueue",
            "echo",
            str(number),
            "--id",
            f"t{number}",
            "--queue",
            "even" if number % 2 == 0 else "odd",
        )
    call("enqueue", "sleep", "1", "--id", "late", "--delay", "60")
    assert [job["id"] for job in call_json("jobs", "--queue", "even", "--limit", "2")] == ["t4", "t2"]
    assert [job["id"] for job in call_json("jobs", "--status", "scheduled", "--type", "sleep")] == ["late"]
    assert "payload" not in call_json("jobs")[0]
    assert len(call("jobs").splitlines()) == 7


def test_more_jobs_than_a_page_has_can_be_listed(folder: Path) -> None:
    from jobpipe import Jobpipe, JobRequest

    pipe = Jobpipe(queue_size=0)
    pipe.enqueue_many_sync(JobRequest(id=f"j{number}") for number in range(700))
    pipe.close()
    assert len({job["id"] for job in call_json("jobs", "--limit", "600")}) == 600
    assert len(call_json("jobs", "--limit", "1000")) == 700


def test_what_is_in_a_job_is_shown_as_text() -> None:
    call("enqueue", "echo", r'"[red]\u001b[31m\n[/red]"', "--id", "t1")
    shown = call("job", "t1")
    assert r"[red]\u001b[31m\n[/red]" in shown
    assert "\x1b" not in shown


# Schedules


def test_schedules_are_listed_for_people_and_for_programs(folder: Path, empty_store: None) -> None:
    from jobpipe import Jobpipe, ScheduleRequest

    assert call("schedules") == "no schedules\n"
    assert call_json("schedules") == []
    pipe = Jobpipe()

    async def put() -> None:
        async with pipe:
            await pipe.schedules.put("tidy", ScheduleRequest(type="sleep", payload=1, every=60))
            await pipe.schedules.put("fast", ScheduleRequest(type="echo", every=0.5))
            await pipe.schedules.put(
                "nightly", ScheduleRequest(type="echo", cron="0 3 * * *", tz="Europe/Berlin")
            )

    asyncio.run(put())
    found = call_json("schedules")
    assert [each["name"] for each in found] == ["fast", "nightly", "tidy"]
    assert (found[1]["cron"], found[1]["last_at"], len(found[1]["next_at"])) == ("0 3 * * *", None, 5)
    head, fast, nightly, tidy = call("schedules").splitlines()
    assert re.split(r"\s{2,}", head.strip()) == ["NAME", "TYPE", "TIMING", "NEXT", "LAST RUN"]
    assert re.split(r"\s{2,}", fast.strip())[:3] == ["fast", "echo", "every 0.5 s"]
    assert re.split(r"\s{2,}", nightly.strip())[:3] == ["nightly", "echo", "0 3 * * * Europe/Berlin"]
    assert re.fullmatch(r"tidy +sleep +every 60 s +[\d-]{10}T[\d:]{8}[+-][\d:]{5} +in \d+ s", tidy.strip())


def test_the_last_run_of_a_schedule_is_shown(start: Start, folder: Path) -> None:
    (folder / "beats.py").write_text(
        "from jobpipe import Jobpipe\n"
        "pipe = Jobpipe('sqlite:///jobs.db')\n"
        "@pipe.every(0.1)\n"
        "def beat():\n"
        "    print('a beat', flush=True)\n"
    )
    start("worker", "beats:pipe").line("a beat")
    (beat,) = call_json("schedules", "--store", "sqlite:///jobs.db")
    assert beat["last_job"].startswith("beat@")
    _, line = call("schedules", "--store", "sqlite:///jobs.db").splitlines()
    assert re.fullmatch(
        r"beat +beat +every 0\.1 s +[\d-]{10}T[\d:]{8}\S{6} +in 0 s +[\d-]{10}T[\d:]{8}\S{6}", line.strip()
    )


# Sockets


def test_a_host_that_others_can_reach_is_refused_without_a_token() -> None:
    for host in ("0.0.0.0", "::"):
        with pytest.raises(SettingsError, match="--insecure"):
            listen(host, 0)
    (listener,) = listen("0.0.0.0", 0, beyond_loopback=True)
    listener.close()


def test_a_name_is_listened_on_with_all_its_addresses_on_one_port() -> None:
    sockets = listen("localhost", 0)
    assert len({each.getsockname()[1] for each in sockets}) == 1
    assert url_of(sockets[0]).startswith("http://127.0.0.1:")
    for each in sockets:
        each.close()


def test_a_host_that_is_none_is_refused() -> None:
    with pytest.raises(SettingsError, match="JOBPIPE_HOST"):
        listen("no such host", 0)
    with pytest.raises(SettingsError, match="JOBPIPE_HOST"):
        listen("192.0.2.1", 0, beyond_loopback=True)


def test_a_taken_port_is_waited_for_a_moment_and_then_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        began = time.monotonic()
        with pytest.raises(JobpipeError, match="is in use by another program"):
            listen("127.0.0.1", other.getsockname()[1])
        assert 0.9 < time.monotonic() - began < 20


# Whole processes


@pytest.mark.parametrize(
    ("arguments", "said", "code"),
    [
        (["worker", "no_such_app:pipe"], "error: APP names the module 'no_such_app'", 2),
        (
            ["worker", "shop:pope", "--processes", "3"],
            "error: APP 'shop:pope': 'shop' has no 'pope'; try shop:pipe",
            2,
        ),
        (
            ["worker", "--store", "memory://", "--processes", "2"],
            "error: --processes must be 1 with memory://",
            2,
        ),
        (["worker", "--store", "foo://", "--processes", "2"], "error: JOBPIPE_STORE must begin with", 2),
        (
            ["worker", "--store", "sqlite:///jobs.db", "--workers", "0"],
            "error: WORKERS must be at least 1",
            2,
        ),
        (
            ["worker", "shop:pipe", "--store", "sqlite:///jobs.db", "--types", "ecko"],
            "error: --types (JOBPIPE_TYPES) names 'ecko', a type that the app does not have; did you mean 'echo'?",
            2,
        ),
        (["serve", "--host", "0.0.0.0", "--port", "0"], "error: JOBPIPE_HOST '0.0.0.0' can be reached", 2),
    ],
)
def test_what_can_never_start_ends_with_one_line(
    start: Start, arguments: list[str], said: str, code: int
) -> None:
    jobpipe = start(*arguments)
    assert jobpipe.code() == code
    (line,) = jobpipe.rest()
    assert said in line


@pytest.mark.real
def test_an_error_in_the_program_shows_its_traceback_once(start: Start, folder: Path) -> None:
    (folder / "broken.py").write_text("1 / 0\n")
    jobpipe = start("worker", "broken:pipe", "--processes", "2")
    assert jobpipe.code() == 1
    lines = jobpipe.rest()
    assert sum("ZeroDivisionError: division by zero" in line for line in lines) == 2, (
        "the traceback, and the line"
    )
    assert lines[0].startswith("Traceback")


def test_a_taken_port_ends_serve_with_one_line(start: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        jobpipe = start("serve", "--port", str(other.getsockname()[1]))
        assert jobpipe.code() == 1
        (line,) = jobpipe.rest()
        assert "is in use" in line


@pytest.mark.real
def test_serve_listens_runs_jobs_and_stops_with_code_0(start: Start) -> None:
    jobpipe = start("serve", "shop:pipe", "--processes", "2", "--except-queues", "a,b")
    runs = "types block, echo, poison, stuck; all queues but a, b; 4 slots; 2 processes"
    url = jobpipe.line(rf"store sqlite:///jobs\.db; {runs}; listening on (http://127\.0\.0\.1:\d+)$")[1]
    assert ask(f"{url}/health") == {"status": "ok"}
    job = call_json("enqueue", "echo", "[1]", "--wait", "--store", "sqlite:///jobs.db")
    assert (job["status"], job["result"]) == ("done", [1])
    assert ask(f"{url}/jobs/{job['id']}")["status"] == "done"
    jobpipe.kill(signal.SIGINT)
    assert jobpipe.code() == 0


def test_a_failed_job_that_was_waited_for_is_code_1(start: Start) -> None:
    start("worker", "shop:pipe", "--builtins").line("working")
    arguments = ["enqueue", "fail", '"boo"', "--max-retries", "0", "--wait", "--store", "sqlite:///jobs.db"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 1
    assert "JobFailed: boo" in result.stdout


def test_a_poison_job_fails_at_its_last_attempt_and_others_flow(start: Start) -> None:
    jobpipe = start("worker", "shop:pipe")
    jobpipe.line("working")
    call("enqueue", "poison", "null", "--id", "p", "--max-retries", "1", "--store", "sqlite:///jobs.db")
    jobpipe.line("ended with code 9; starting another")
    assert call_json("enqueue", "echo", "1", "--wait", "--store", "sqlite:///jobs.db")["status"] == "done"
    jobpipe.line("ended with code 9; starting another")
    jobpipe.line("job p was lost .* failed")
    job = call_json("job", "p", "--store", "sqlite:///jobs.db")
    assert (job["status"], job["attempts"], job["error"]["message"]) == ("failed", 2, "worker lost")


def test_a_job_stuck_in_a_thread_is_given_back_at_the_stop(start: Start) -> None:
    jobpipe = start("worker", "shop:pipe", "--grace", "0.2")
    call("enqueue", "stuck", "--id", "s", "--store", "sqlite:///jobs.db")
    jobpipe.line("stuck in a thread")
    jobpipe.kill(signal.SIGTERM)
    assert jobpipe.code() == 0
    assert not any("did not end in time: killed" in line for line in jobpipe.rest())
    job = call_json("job", "s", "--store", "sqlite:///jobs.db")
    assert (job["status"], job["attempts"]) == ("queued", 0)


@pytest.mark.real
@pytest.mark.parametrize("command", ["worker", "serve"])
def test_a_killed_supervisor_takes_a_blocked_process_with_it(start: Start, command: str) -> None:
    jobpipe = start(command, "shop:pipe")
    call("enqueue", "block", "--store", "sqlite:///jobs.db")
    jobpipe.line("blocked")
    jobpipe.kill(signal.SIGKILL)
    jobpipe.code()
    jobpipe.rest()  # it waits for the process: it holds the outputs


@pytest.mark.real
def test_a_second_signal_ends_a_blocked_process_with_130(start: Start) -> None:
    jobpipe = start("worker", "shop:pipe")
    call("enqueue", "block", "--store", "sqlite:///jobs.db")
    jobpipe.line("blocked")
    jobpipe.kill(signal.SIGTERM)
    jobpipe.line("stopping")
    jobpipe.kill(signal.SIGINT)
    assert jobpipe.code() == 130


def test_logs_are_json_where_the_program_wants_it(start: Start, folder: Path) -> None:
    (folder / "quiet.py").write_text("from jobpipe import Jobpipe\npipe = Jobpipe('memory://', log='json')\n")
    jobpipe = start("worker", "quiet:pipe")
    event = json.loads(jobpipe.line(".*working.*")[0])
    assert (
        event["message"]
        == f"jobpipe {__version__}; store memory://; types echo; all queues; 4 slots; working"
    )
    jobpipe.kill(signal.SIGTERM)
    assert jobpipe.code() == 0
    assert all(json.loads(line) for line in jobpipe.rest())


def test_jobs_are_cancelled_and_retried_by_id_and_by_filter(empty_store: None) -> None:
    for id in ("a", "b"):
        call("enqueue", "echo", "1", "--id", id)
    assert call("cancel", "a") == "a cancelled\n"
    assert call_json("retry", "a")[0]["status"] == "queued"
    assert call("cancel", "--type", "echo", "--yes") == "2 jobs\n"
    assert call_json("retry", "--all", "-y") == {"count": 2}
    assert "job 'a' is queued" in call("retry", "a", code=1)
    call("enqueue", "echo", "1", "--id", "t", "--tag", "x y")
    assert [job["id"] for job in call_json("jobs", "--tag", "x y")] == ["t"]
    assert call("cancel", "--tag", "x y", "--yes") == "1 job\n"
    assert "error: --tag must be" in call("jobs", "--tag", "", code=2)
    assert "no job has the id 'x'" in call("cancel", "x", code=1)


@pytest.mark.parametrize("arguments", [[], ["a", "--all"], ["--all", "--queue", "q"]])
def test_which_jobs_are_meant_must_be_said_in_one_way(arguments: list[str], empty_store: None) -> None:
    assert "error: ID is required" in call("cancel", *arguments, code=2)


def test_finished_jobs_are_deleted_by_id(empty_store: None) -> None:
    for id in ("a", "b", "c"):
        call("enqueue", "echo", "1", "--id", id)
    call("cancel", "a", "b")
    assert call("delete", "a", "b") == "a deleted\nb deleted\n"
    assert "job 'c' is queued: it cannot be deleted: only finished jobs can" in call("delete", "c", code=1)
    assert "no job has the id 'x'" in call("delete", "x", code=1)
    call("cancel", "c")
    assert call_json("delete", "c") == {"count": 1}
    assert call_json("jobs") == []


def test_a_queue_is_paused_and_resumed(empty_store: None) -> None:
    call("enqueue", "echo", "1", "--id", "a")
    assert call("pause", "default") == "default paused: 1 queued, 0 scheduled, 0 waiting, 0 running\n"
    assert "paused" in call("job", "a", "--explain")
    assert call_json("resume", "default")["paused"] is False


def test_a_store_is_migrated_and_checked(folder: Path) -> None:
    assert "0001_jobs" in call("migrate")
    assert call("migrate") == "sqlite:///jobpipe.db: up to date\n"
    assert "on disk" in call("check")
    (folder / "broken.db").write_bytes(b"no database" * 1000)
    assert "no SQLite file" in call("check", "--store", "sqlite:///broken.db", code=1)


def test_the_commands_speak_to_a_running_service_with_its_token(
    start: Start, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    token = "a-long-secret"
    jobpipe = start("serve", "--store", "memory://", "--port", "0", "--token", token)
    url = jobpipe.line(r"listening on (http://127\.0\.0\.1:\d+)$")[1]
    there = ["--url", url, "--token", token]
    job = call_json("enqueue", "echo", "[1]", "--id", "a", "--wait", *there)
    assert (job["status"], job["result"]) == ("done", [1])
    assert "already existed" in call("enqueue", "echo", "[1]", "--id", "a", *there)
    assert [each["id"] for each in call_json("jobs", *there)] == ["a"]
    assert call_json("job", "a", *there)["history"][0]["number"] == 1
    assert call("job", "a", "--explain", *there) == "It is done.\n"
    assert "job 'a' is done" in call("cancel", "a", *there, code=1)
    assert call("pause", "default", *there) == "default paused: 0 queued, 0 scheduled, 0 waiting, 0 running\n"
    call("enqueue", "echo", "--id", "b", *there)
    assert call("cancel", "--all", "--yes", *there) == "1 job\n"
    assert call("retry", "--status", "cancelled", "--yes", *there) == "1 job\n"
    assert call("schedules", *there) == "no schedules\n"
    assert call("enqueue", "echo", "--max-retries", "500", *there, code=2).startswith("error: --max-retries ")
    assert "no job has the id 'x'" in call("job", "x", *there, code=1)
    assert "token" in call("jobs", "--url", url, code=1)
    monkeypatch.setenv("JOBPIPE_TOKEN", token)
    assert len(call_json("jobs", "--url", url)) == 2
    jobpipe.kill(signal.SIGTERM)
    assert jobpipe.code() == 0
    assert "cannot be reached" in call("jobs", "--url", url, code=1)
    assert not (folder / "jobpipe.db").exists()


@pytest.mark.parametrize(
    "url", ["localhost:8080", "ftp://x", "http://", "file:///etc/passwd", "http://u:p@x"]
)
def test_a_url_that_leads_to_no_service_is_refused(url: str) -> None:
    assert "error: --url must be the URL of a service" in call("jobs", "--url", url, code=2)
