"""`enqueue --file`, on a store and on a service: what goes in, and what is said when it stops."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from jobpipe import Jobpipe
from jobpipe.model.job import DEFAULT_RETRIES

from ...support.jobs import seen
from ...support.waiting import run
from .conftest import Start, call, call_json, terminal


def lines(*jobs: dict[str, Any]) -> str:
    return "".join(f"{json.dumps(job)}\n" for job in jobs)


def many(number: int, begin: int = 0) -> str:
    return lines(*({"id": f"j{each}", "payload": each} for each in range(begin, begin + number)))


def test_the_jobs_of_a_file_go_in_and_again_are_there_already(folder: Path, there: list[str]) -> None:
    (folder / "jobs.jsonl").write_text(many(1_500))
    assert call("enqueue", "--file", "jobs.jsonl", *there) == "1,500 enqueued, 0 already existed\n"
    (folder / "jobs.jsonl").write_text(many(1_510))
    assert call_json("enqueue", "--file", "jobs.jsonl", *there) == {"new": 10, "known": 1_500}
    assert call_json("job", "j1509", *there)["payload"] == 1_509


def test_the_same_line_twice_is_one_job(there: list[str]) -> None:
    given = lines({"id": "a"}, {"id": "b"}, {"id": "a"})
    assert call_json("enqueue", "--file", "-", *there, input=given) == {"new": 2, "known": 1}


def test_options_are_for_lines_that_do_not_say_otherwise(there: list[str]) -> None:
    given = lines({"id": "a", "payload": 1}, {"id": "b", "type": "echo", "queue": "mine"})
    call("enqueue", "sleep", "--file", "-", "--queue", "other", "--delay", "60", *there, input=given)
    first, second = call_json("job", "a", *there), call_json("job", "b", *there)
    assert (first["type"], first["queue"], first["status"]) == ("sleep", "other", "scheduled")
    assert (second["type"], second["queue"], second["status"]) == ("echo", "mine", "scheduled")


@pytest.mark.parametrize(
    ("bad", "said", "code"),
    [
        ({"id": "bad", "priority": 9_999}, "stdin:1205: priority ", 2),
        ({"id": "bad", "payload": "\0"}, "stdin:1205: payload contains the character NUL", 2),
        ({"id": "bad", "payload": "x" * 300_000}, "stdin:1205: payload has 300,002 bytes", 2),
        ({"id": "j7", "payload": "other"}, "stdin:1205: the id 'j7' is taken by a job with other content", 1),
    ],
)
def test_a_bad_line_stops_before_its_chunk(
    there: list[str], bad: dict[str, Any], said: str, code: int
) -> None:
    given = "\n" * 4 + many(1_200) + lines(bad) + many(10, begin=5_000)
    told = call("enqueue", "--file", "-", *there, input=given, code=code)
    assert told.startswith(f"error: {said}")
    assert told.endswith("; lines 1 to 1,004 are enqueued: continue with line 1,005\n")
    assert call_json("job", "j999", *there)["id"] == "j999"
    call("job", "j1000", *there, code=1)


def test_a_bad_first_chunk_leaves_nothing_and_programs_get_the_numbers(there: list[str]) -> None:
    given = lines({"id": "a"}, {"idd": "b"})
    assert call("enqueue", "--file", "-", *there, input=given, code=2).endswith("; nothing was enqueued\n")
    assert call_json("enqueue", "--file", "-", *there, input=given, code=2) == {"new": 0, "known": 0}
    assert call_json("jobs", *there) == []


def test_a_full_queue_takes_what_it_has_room_for(folder: Path) -> None:
    told = call("enqueue", "--file", "-", "--queue-size", "70", input=many(1_200), code=1)
    assert "queue 'default' is full" in told
    assert "; lines 1 to 70 are enqueued: continue with line 71\n" in told
    assert call_json("enqueue", "--file", "-", "--queue-size", "0", input=many(1_200)) == {
        "new": 1_130,
        "known": 70,
    }


def test_the_bound_of_the_environment_is_not_for_the_command_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUEUE_SIZE", "1")
    assert call_json("enqueue", "--file", "-", input=many(100)) == {"new": 100, "known": 0}


def test_the_help_names_the_default_of_retries() -> None:
    """It is written there, as importing it would bring too much along."""
    assert f"0-100 [default: ({DEFAULT_RETRIES})]" in " ".join(call("enqueue", "--help").split())


def test_a_full_queue_of_a_service_takes_what_it_has_room_for(start: Start) -> None:
    serving = start("serve", "--store", "memory://", "--port", "0", "--queue-size", "70", "--workers", "0")
    url = serving.line(r"listening on (http://127\.0\.0\.1:\d+)$")[1]
    told = call("enqueue", "--file", "-", "--url", url, input=many(200), code=1)
    assert "queue 'default' is full" in told
    assert "; lines 1 to 70 are enqueued: continue with line 71\n" in told


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "TYPE or --file is required"),
        (["echo", "1", "--file", "-"], "PAYLOAD cannot be used with --file"),
        (["--file", "-", "--id", "a"], "--id cannot be used with --file"),
        (["echo", "--wait", "--timeout", "-3"], "--timeout must be 0 or more seconds, got -3"),
        (["echo", "--timeout", "3"], "--timeout requires --wait"),
        (["--file", "missing.jsonl"], "--file cannot be read: No such file"),
        (["--file", "-", "--priority", "5000"], "--priority "),
        (
            ["echo", "--url", "http://localhost:1", "--queue-size", "0"],
            "--queue-size cannot be used with --url",
        ),
    ],
)
def test_uses_that_contradict_each_other_are_refused(arguments: list[str], said: str, folder: Path) -> None:
    assert call("enqueue", *arguments, code=2, input="{}\n").startswith(f"error: {said}")
    assert not (folder / "jobpipe.db").exists()


def test_a_batch_is_waited_for(service: str) -> None:
    there = ["--url", service, "--token", "secret"]
    assert call("enqueue", "--file", "-", "--wait", *there, input=many(30)).splitlines() == [
        "30 enqueued, 0 already existed",
        "30 done",
    ]
    given = lines({"type": "echo"}, {"type": "fail", "payload": "no", "max_retries": 0})
    counts = call_json("enqueue", "--file", "-", "--wait", *there, input=given, code=1)
    assert counts == {"new": 2, "known": 0, "done": 1, "failed": 1}


def test_a_batch_on_a_store_is_waited_for(start: Start) -> None:
    start("worker").line("working")
    assert call_json("enqueue", "--file", "-", "--wait", input=many(30))["done"] == 30


def test_who_waits_for_a_batch_in_vain_is_told_once_why(folder: Path) -> None:
    given = lines({"id": "a"}, {"id": "b"})
    told = call("enqueue", "nosuch", "--file", "-", "--wait", "--timeout", "2.5", input=given, code=1)
    assert told.count("No worker knows the type 'nosuch'") == 1
    assert told.endswith("error: timed out after 2.5 s: 2 jobs are not finished; jobpipe jobs shows them\n")
    counts = call_json("enqueue", "nosuch", "--file", "-", "--wait", "--timeout", "0", input=given, code=1)
    assert counts == {"new": 0, "known": 2, "unfinished": 2}


def test_a_terminal_gets_a_bar_and_a_pipe_gets_none(folder: Path) -> None:
    (folder / "jobs.jsonl").write_text(many(50))
    with terminal("enqueue", "--file", "jobs.jsonl") as shell:
        assert shell.ended() == (0, "50 enqueued, 0 already existed\n")
        assert "enqueuing" in shell.shown
    with terminal("enqueue", "--file", "jobs.jsonl", "--json") as shell:
        code, printed = shell.ended()
        assert (code, json.loads(printed), shell.shown) == (0, {"new": 0, "known": 50}, "")
    assert "enqueuing" not in call("enqueue", "--file", "jobs.jsonl")


def test_waiting_has_a_bar_too(start: Start, folder: Path) -> None:
    start("worker").line("working")
    (folder / "jobs.jsonl").write_text(many(20))
    with terminal("enqueue", "--file", "jobs.jsonl", "--wait") as shell:
        code, printed = shell.ended()
    assert (code, printed.splitlines()[-1]) == (0, "20 done")
    assert "waiting" in shell.shown


def test_an_interrupt_says_how_far_it_got(folder: Path) -> None:
    """A line more than a chunk has gone in: the chunk is in, the line is not, and the process waits for more."""
    process = subprocess.Popen(
        [sys.executable, "-m", "jobpipe", "enqueue", "--file", "-", "--queue-size", "0"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    call("migrate")
    pipe = Jobpipe()

    async def one_is_in() -> None:
        async with pipe:
            await seen(pipe, lambda: pipe.page(limit=1), lambda page: page.jobs)

    process.stdin.write(many(1_001))
    process.stdin.flush()
    run(one_is_in())
    process.send_signal(signal.SIGINT)
    printed, told = process.communicate(timeout=30)
    assert process.returncode == 130
    assert told == "error: interrupted; lines 1 to 1,000 are enqueued: continue with line 1,001\n"
    assert printed == "1,000 enqueued, 0 already existed\n"


@pytest.mark.parametrize("given", [["nosuch"], ["nosuch", "--file", "jobs.jsonl"]])
def test_an_interrupt_while_waiting_says_that_the_jobs_go_on(
    start: Start, folder: Path, given: list[str]
) -> None:
    (folder / "jobs.jsonl").write_text(many(3))
    waiting = start("enqueue", *given, "--wait")
    waiting.line("No worker knows the type 'nosuch'")
    waiting.kill(signal.SIGINT)
    assert waiting.code() == 130
    assert any("error: interrupted" in line and "continue" in line for line in waiting.rest())


def test_what_a_lost_answer_leaves_open_is_said() -> None:
    """The service ends between the question and the answer."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def take_and_hang_up() -> None:
            connection, _ = listener.accept()
            connection.recv(10)
            connection.close()

        thread = threading.Thread(target=take_and_hang_up)
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        told = call("enqueue", "--file", "-", "--url", url, input=many(5), code=1)
        thread.join()
    assert "cannot be reached" in told
    assert told.endswith(
        "; nothing was enqueued, lines 1 to 5 may be enqueued or not: it is safe to enqueue lines with an id again\n"
    )


def test_what_was_never_there_leaves_nothing_open() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    for flags in (["--url", url], ["--store", "sqlite:///no/folder.db"]):
        told = call("enqueue", "--file", "-", *flags, input=many(5), code=1)
        assert told.endswith("; nothing was enqueued\n")
