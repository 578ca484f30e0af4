"""`jobpipe top` where there is no terminal, or nobody who would stay."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ..conftest import call, call_json, call_process
from .screens import Service, service_in, window


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with service_in(tmp_path_factory.mktemp("service")) as found:
        found.put("later", "step", queue="media", delay=600)
        found.put_failed("mail-1", "\x1b[31mno luck")
        yield found


def test_without_a_terminal_it_prints_once(service: Service) -> None:
    ended = call_process("top", *service.flags)
    assert ended.returncode == 0
    assert re.match(r" jobpipe top  http://127.0.0.1:\d+  \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\n", ended.stdout)
    assert re.search(r"^  media +1 +0 +0 +0 open", ended.stdout, re.MULTILINE)
    assert re.search(r"^  mail-1 .* ValueError: \\x1b\[31mno luck$", ended.stdout, re.MULTILINE)
    assert re.search(r"^  no jobs are running$", ended.stdout, re.MULTILINE)
    assert "\x1b" not in ended.stdout
    assert not any(line.endswith(" ") for line in ended.stdout.splitlines())


def test_once_prints_once_in_a_terminal_too(service: Service) -> None:
    with window(sys.executable, "-m", "jobpipe", "top", "--once", *service.flags) as shell:
        assert shell.code() == 0
        assert "mail-1" in shell.shown
        assert b"\x1b[?1049h" not in shell.raw


def test_a_terminal_that_cannot_be_drawn_on_gets_it_once(service: Service) -> None:
    with window(
        sys.executable, "-m", "jobpipe", "top", *service.flags, env={"TERM": "dumb"}, height=40
    ) as shell:
        assert shell.code() == 0
        assert "mail-1" in shell.shown
        assert b"\x1b" not in shell.raw


def test_json_is_for_programs(service: Service) -> None:
    found = call_json("top", *service.flags)
    assert set(found) == {"url", "at", "stats", "queues", "running", "failed", "workers"}
    assert found["stats"]["failed"] == 1
    assert [queue["name"] for queue in found["queues"]] == ["default", "media"]
    assert found["failed"][0]["id"] == "mail-1"
    assert found["failed"][0].keys() == json.loads(call("jobs", "--json", *service.flags))[0].keys()


def test_where_no_service_answers_it_says_what_to_do(folder: Path) -> None:
    told = call("top", "--url", "http://127.0.0.1:1", code=1)
    assert re.match(r"error: the service at http://127.0.0.1:1 cannot be reached: .*\n$", told)
    with window(sys.executable, "-m", "jobpipe", "top", env={"JOBPIPE_PORT": "1"}) as shell:
        assert shell.code() == 1
        assert shell.shown.replace("\n", "").startswith(
            "error: no service answers at http://127.0.0.1:1: start one with jobpipe serve, or pass another URL with "
        )
        assert shell.attributes() == shell.before


def test_a_wrong_token_is_told_before_anything_is_shown(service: Service) -> None:
    with window(
        sys.executable, "-m", "jobpipe", "top", "--url", service.url, "--token", "wrong", width=200
    ) as shell:
        assert shell.code() == 1
        assert re.match(r"error: the service at \S+ refuses: .*--token", shell.shown)
        assert b"wrong\n" not in shell.raw
        assert b"\x1b[?1049h" not in shell.raw


def test_the_token_may_come_from_the_environment(service: Service) -> None:
    ended = call_process("top", "--url", service.url, env={"JOBPIPE_TOKEN": "secret"})
    assert ended.returncode == 0, ended.stderr


def test_it_looks_where_the_settings_say_that_the_service_listens(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    flags = dict(zip(service.flags[::2], service.flags[1::2], strict=True))
    monkeypatch.setenv("JOBPIPE_PORT", flags["--url"].rpartition(":")[2])
    monkeypatch.setenv("JOBPIPE_TOKEN", flags["--token"])
    assert flags["--url"] in call("top")
