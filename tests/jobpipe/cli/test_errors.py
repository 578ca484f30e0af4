"""What goes wrong is a line and an exit code: 2 for what was asked wrongly, 1 for the rest, and never a traceback."""

from __future__ import annotations

import http.server
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from .conftest import Called, Start, call, call_json, call_process


def check_line(ended: Called, code: int, said: str) -> None:
    assert ended.returncode == code, ended
    assert ended.stdout == ""
    assert "Traceback" not in ended.stderr
    (line,) = ended.stderr.splitlines()
    assert line.startswith("error: ")
    assert said in line


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["canel"], "No such command 'canel'. Did you mean 'cancel'?"),
        (["schedules", "putt"], "No such command 'putt'. Did you mean 'put'"),
        (["jobs", "--statsu", "done"], "No such option"),
        (["jobs", "--statsu", "done"], "--status"),
        (["job"], "Missing argument 'ID'"),
        (["jobs", "--limit", "many"], "--limit"),
    ],
)
def test_a_misspelt_word_gets_a_suggestion(arguments: list[str], said: str) -> None:
    ended = call_process(*arguments)
    assert ended.returncode == 2
    assert said in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_store_that_is_away_is_a_line(folder: Path) -> None:
    check_line(call_process("jobs"), 2, "names a store that does not exist: 'sqlite:///jobpipe.db'")
    check_line(call_process("enqueue", "echo", "--store", "sqlite:///no/x.db"), 1, "does not exist: make it")
    (folder / "broken.db").write_bytes(b"no database" * 1000)
    check_line(call_process("jobs", "--store", "sqlite:///broken.db"), 1, "no SQLite file")
    check_line(call_process("jobs", "--store", "nosuch://x"), 2, "must begin with")


def test_an_unknown_job_is_a_line(there: list[str]) -> None:
    check_line(call_process("job", "x", *there), 1, "no job has the id 'x'")
    for arguments in (["job", "x", "--explain"], ["cancel", "x"], ["retry", "x"]):
        assert call(*arguments, *there, code=1) == "error: no job has the id 'x'\n"


def test_an_address_that_is_none_is_shown() -> None:
    check_line(call_process("jobs", "--url", "localhost:8080"), 2, "got 'localhost:8080'")
    check_line(call_process("jobs", "--url", "http://me:s3cret@"), 2, "--url must be the URL")
    told = call("jobs", "--url", "http://localhost:1", "--store", "sqlite:///jobs.db", code=2)
    assert "--store and --url exclude each other" in told


def test_a_service_that_is_away_is_a_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    check_line(call_process("jobs", "--url", url), 1, f"the service at {url} cannot be reached: ")
    for arguments in (["enqueue", "echo"], ["schedules", "drop", "x"], ["pause", "q"]):
        assert "cannot be reached" in call(*arguments, "--url", url, code=1)


def test_a_wrong_token_is_a_line_that_does_not_show_it(service: str) -> None:
    for flags in ([], ["--token", "wrong-one"]):
        ended = call_process("jobs", "--url", service, *flags)
        check_line(ended, 1, "pass the service's token with --token or JOBPIPE_TOKEN")
        assert "wrong-one" not in ended.stderr


def test_a_token_for_reading_is_told_from_a_wrong_one(start: Start) -> None:
    tokens = ["--token", "secret", "--read-token", "look"]
    serving = start("serve", "--store", "memory://", "--port", "0", *tokens)
    url = serving.line(r"listening on (http://127\.0\.0\.1:\d+)$")[1]
    there = ["--url", url, "--token", "look"]
    assert call_json("jobs", *there) == []
    check_line(
        call_process("enqueue", "echo", *there), 1, "for reading only; pass the token that allows writing"
    )


class Stranger(http.server.BaseHTTPRequestHandler):
    """A web server that is none of ours, and would like to see the token."""

    seen: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.seen.append(self.path)
        if self.path.startswith("/jobs/"):
            self.send_response(302)
            self.send_header("Location", "/elsewhere")
            self.end_headers()
            return
        self.send_response(404 if self.path == "/schedules" else 200)
        self.end_headers()
        self.wfile.write(b"<h1>Welcome</h1>")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def stranger() -> Iterator[str]:
    with http.server.HTTPServer(("127.0.0.1", 0), Stranger) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_what_is_no_jobpipe_service_is_told_and_not_followed(stranger: str) -> None:
    check_line(call_process("jobs", "--url", stranger), 1, "is not a jobpipe service")
    check_line(call_process("schedules", "--url", stranger), 1, "answered 404")
    check_line(call_process("job", "a", "--url", stranger, "--token", "x"), 1, "answered 302")
    assert "/elsewhere" not in Stranger.seen


def test_control_characters_of_others_do_not_reach_the_terminal(folder: Path) -> None:
    call("migrate")
    ended = call_process("job", "\x1b[31mred\n")
    check_line(ended, 1, "no job has the id")
    assert "\x1b" not in ended.stderr


def test_a_payload_that_no_store_can_keep_is_refused_before_it_is_sent(there: list[str]) -> None:
    assert call("enqueue", "echo", r'"\u0000"', *there, code=2).startswith(
        "error: PAYLOAD contains the character NUL"
    )
    assert call("enqueue", "echo", r'"\ud800"', *there, code=2).startswith(
        "error: PAYLOAD contains a lone surrogate"
    )


def test_who_reads_our_output_may_leave_early(folder: Path) -> None:
    call("enqueue", "echo", "--id", "a")
    ended = subprocess.run(
        [
            "bash",
            "-c",
            f"{sys.executable} -m jobpipe jobs --json | true; {sys.executable} -m jobpipe jobs | head -1",
        ],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["enqueue", "echo", "--id", "b"],
        ["jobs"],
        ["job", "a"],
        ["job", "a", "--explain"],
        ["cancel", "a"],
        ["cancel", "--all", "--yes"],
        ["retry", "--all", "--yes"],
        ["pause", "default"],
        ["resume", "default"],
        ["schedules"],
        ["schedules", "put", "x", "--type", "echo", "--every", "60"],
        ["schedules", "show", "s"],
        ["schedules", "run", "s"],
        ["schedules", "drop", "s"],
        ["migrate"],
        ["check"],
        ["promote", "sqlite:///jobpipe.db", "sqlite:///other.db"],
    ],
    ids=" ".join,
)
def test_every_command_speaks_json(arguments: list[str]) -> None:
    call("enqueue", "echo", "--id", "a")
    call("schedules", "put", "s", "--type", "echo", "--every", "60")
    found = call_json(*arguments)
    assert isinstance(found, list if arguments in (["jobs"], ["schedules"], ["cancel", "a"]) else dict)


SPELT: list[tuple[list[str], str]] = [
    (
        ["enqueue", "echo", "--run-at", "noon"],
        "--run-at must be a time, such as 2030-01-31T12:00:00Z, got 'noon'",
    ),
    (
        ["enqueue", "echo", "--max-retries", "101"],
        "--max-retries must be a whole number, 100 or less, got 101",
    ),
    (["enqueue", "echo", "--delay=-1"], "--delay must be a number of seconds, 0 or more, got -1.0"),
    (
        ["enqueue", "echo", "--delay", "1", "--run-at", "2030-01-31T12:00:00Z"],
        "--delay and --run-at exclude each other: give one of them",
    ),
    (
        ["enqueue", "a b"],
        "TYPE must consist of A-Z a-z 0-9 . _ : @ -, beginning with a letter or digit, got 'a b'",
    ),
    (["enqueue", "sleep", '"long"'], "PAYLOAD must be a number, got a string"),
    (["jobs", "--limit", "0"], "--limit must be a whole number, 1 or more, got 0"),
    (
        ["jobs", "--status", "odd"],
        "--status must be one of scheduled, waiting, queued, running, done, failed, cancelled, expired, got 'odd'",
    ),
    (["pause", "a b"], "QUEUE must be 1 to 100 characters of "),
    (["schedules", "put", "a b", "--type", "echo", "--every", "60"], "NAME must be 1 to 100 characters of "),
]


@pytest.mark.parametrize(("arguments", "said"), SPELT, ids=ascii)
def test_what_is_wrong_is_named_as_it_was_typed(there: list[str], arguments: list[str], said: str) -> None:
    """Whether the store or a service says so."""
    told = call(*arguments, *there, code=2)
    assert told.startswith(f"error: {said}"), told


def test_a_wrong_option_for_the_lines_of_a_file_is_named_as_it_was_typed_and_a_field_as_it_stands_there(
    there: list[str], folder: Path
) -> None:
    (folder / "jobs.jsonl").write_text('{"max_retries": 101}\n')
    told = call("enqueue", "--file", "jobs.jsonl", "--max-retries", "-1", *there, code=2)
    assert told == "error: --max-retries must be a whole number, 0 or more, got -1\n"
    told = call("enqueue", "--file", "jobs.jsonl", *there, code=2)
    assert "error: jobs.jsonl:1: max_retries must be a whole number, 100 or less, got 101" in told


def test_a_store_is_named_as_it_was_given(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert call("jobs", "--store", "foo://x", code=2).startswith("error: --store must begin with")
    assert call("check", "--store", "memory://", code=2).startswith("error: --store must be")
    monkeypatch.setenv("JOBPIPE_STORE", "foo://x")
    assert call("jobs", code=2).startswith("error: JOBPIPE_STORE must begin with")
