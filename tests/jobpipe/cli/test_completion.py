"""Completion, as the shells ask for it: a process with variables of the environment."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from jobpipe.cli.completion.bash import whole
from jobpipe.cli.main import app

from ...support.starting import shell_command
from .conftest import call, call_process, terminal

Offers = Callable[[str], list[str]]


def ask_bash(line: str) -> list[str]:
    words = line.split(" ")
    env = {"COMP_WORDS": "\n".join(words), "COMP_CWORD": str(len(words) - 1)}
    return asked("complete_bash", env).split("\n")


def ask_zsh(line: str) -> list[str]:
    return re.findall(
        r'^(?:_arguments .*\(\()?"([^"]*)"',
        asked("complete_zsh", {"_TYPER_COMPLETE_ARGS": line}),
        re.MULTILINE,
    )


def ask_fish(line: str) -> list[str]:
    env = {"_TYPER_COMPLETE_ARGS": line, "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    return [offer.split("\t")[0] for offer in asked("complete_fish", env).split("\n")]


def asked(instruction: str, env: dict[str, str]) -> str:
    ended = call_process(env={"_JOBPIPE_COMPLETE": instruction, **env})
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout.strip()


@pytest.fixture(params=[ask_bash, ask_zsh, ask_fish], ids=["bash", "zsh", "fish"])
def offers(request: pytest.FixtureRequest) -> Offers:
    asks: Offers = request.param
    return asks


@pytest.fixture
def store(folder: Path) -> None:
    call("enqueue", "echo", "--id", "order-1", "--queue", "mails")
    call("enqueue", "resize", "--id", "order-2", "--queue", "images", "--store", "sqlite:///other.db")
    call("schedules", "put", "nightly", "--type", "echo", "--every", "60")


def test_the_shells_are_offered_commands_options_and_values(offers: Offers, store: None) -> None:
    assert offers("jobpipe re") == ["retry", "resume"]
    assert offers("jobpipe jobs --st") == ["--status", "--store"]
    assert offers("jobpipe jobs --status c") == ["cancelled"]
    assert offers("jobpipe jobs --store sqlite:///other.db --queue ") == ["default", "images"]


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        (
            "jobs --status ",
            ["cancelled", "done", "expired", "failed", "queued", "running", "scheduled", "waiting"],
        ),
        ("jobs --queue ", ["default", "mails"]),
        ("jobs --type e", ["echo"]),
        ("enqueue ", ["echo", "fail", "sleep"]),
        ("enqueue --store sqlite:///other.db ", ["echo", "fail", "resize", "sleep"]),
        ("cancel ord", ["order-1"]),
        ("job --store sqlite:///other.db ", ["order-2"]),
        ("pause m", ["mails"]),
        ("schedules run ", ["nightly"]),
        ("schedules pause ", ["nightly"]),
        ("schedules resume n", ["nightly"]),
        ("schedules put x --missed ", ["one", "none"]),
        ("jobs --store sqlite:///missing.db --queue ", ["default"]),
        ("jobs --store sqlite:///no/folder/x.db --queue ", ["default"]),
        ("jobs --store sqlite:///broken.db --queue ", ["default"]),
        ("jobs --store memory:// --queue ", ["default"]),
        ("jobs --store nosuch://x --queue ", ["default"]),
        ("jobs --url http://localhost:1 --queue ", ["default"]),
        ("job --store sqlite:///missing.db ", [""]),
    ],
)
def test_values_come_from_the_store_that_is_named_and_nothing_is_made(
    folder: Path, store: None, line: str, offered: list[str]
) -> None:
    (folder / "broken.db").write_bytes(b"no database" * 1000)
    before = sorted(folder.iterdir())
    words = f"jobpipe {line}".split(" ")
    env = {
        "_JOBPIPE_COMPLETE": "complete_bash",
        "COMP_WORDS": "\n".join(words),
        "COMP_CWORD": str(len(words) - 1),
    }
    result = CliRunner().invoke(app, [], env=env, prog_name="jobpipe")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.strip().split("\n") == offered
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_is_shown(shell: str) -> None:
    ended = call_process(env={"_JOBPIPE_COMPLETE": f"source_{shell}"})
    assert f"_JOBPIPE_COMPLETE=complete_{shell}" in ended.stdout


@pytest.fixture
def bash(folder: Path) -> Callable[[str], str]:
    """For real: the script is sourced, and its function called as bash calls it."""
    (folder / "bin").mkdir()
    command = folder / "bin" / "jobpipe"
    command.write_text(f'#!/bin/sh\nexec {shell_command()} "$@"\n')
    command.chmod(0o755)

    def complete(broken: str) -> str:
        """What is offered for the last of the words, as bash has broken them."""
        script = f"""
            PATH="$PWD/bin:$PATH"
            eval "$(_JOBPIPE_COMPLETE=source_bash jobpipe)"
            COMP_WORDS=({broken}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
            _jobpipe_completion jobpipe
            echo "${{COMPREPLY[@]}}"
        """
        ended = subprocess.run(
            ["bash", "--norc", "-c", script], capture_output=True, text=True, timeout=30, check=True
        )
        assert ended.stderr == ""
        return ended.stdout.removesuffix("\n")

    return complete


NO_BASH = pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")


@NO_BASH
def test_bash_completes_with_the_script(bash: Callable[[str], str]) -> None:
    assert bash("jobpipe sched") == "schedules"


@NO_BASH
def test_bash_completes_ids_at_whose_characters_it_breaks_words(bash: Callable[[str], str]) -> None:
    """It puts what is offered in place of what follows the last of these characters, and of an @ itself."""
    call("enqueue", "echo", "--id", "tick@2030-01-01T00:30:00Z", "--queue", "a:b")
    call("enqueue", "echo", "--id", "tock")
    assert bash("jobpipe job t") == "tick@2030-01-01T00:30:00Z tock"
    assert bash("jobpipe job tick @") == "@2030-01-01T00:30:00Z"
    assert bash("jobpipe job tick @ 20") == "@2030-01-01T00:30:00Z"
    assert bash("jobpipe cancel tock tick @ 2030-01-01T00 : 3") == "30:00Z"
    assert bash("jobpipe jobs --store sqlite : ///jobpipe.db --queue a : ") == "b"
    assert bash("jobpipe jobs --queue = a : ") == "b"
    assert bash("jobpipe jobs --status = que") == "queued"


@NO_BASH
@pytest.mark.parametrize("typed", ["tick@", "tick@20", "tick@2030-01-01T00:3"])
def test_a_key_in_bash_completes_an_id(bash: Callable[[str], str], folder: Path, typed: str) -> None:
    """With a terminal: what stands in the line after the key is what bash made of it."""
    call("enqueue", "echo", "--id", "tick@2030-01-01T00:30:00Z")
    script = """
        PS1='ready> ' PATH="$PWD/bin:$PATH"
        eval "$(_JOBPIPE_COMPLETE=source_bash jobpipe)"
    """
    (folder / "rc").write_text(script)
    with terminal(command=["bash", "--rcfile", "rc", "-i"]) as shell:
        shell.until("ready> ")
        # The key; then the line becomes the argument of an echo.
        shell.type(f"jobpipe job {typed}\t\x01echo 'found: \x05'; exit\n")
        code, printed = shell.ended()
    assert (code, printed) == (0, "found: jobpipe job tick@2030-01-01T00:30:00Z \n")


@pytest.mark.parametrize(
    ("typed", "words", "kept"),
    [
        ("job|or", "job|or", ""),
        ("job|or|@", "job|or@", "or"),
        ("job|or|@|2", "job|or@2", "or"),
        ("job|or|@|20|:|1", "job|or@20:1", "or@20:"),
        ("job|a|::|b", "job|a::b", "a::"),
        ("job|or|@|", "job|or@|", ""),  # a new word has begun
        ("jobs|--queue|=|a|:|b", "jobs|--queue=a:b", "a:"),
        ("jobs|--status|=", "jobs|--status=", ""),
        ("job|'or@2", "job|'or@2", ""),
    ],
)
def test_words_that_bash_has_broken_are_put_together(typed: str, words: str, kept: str) -> None:
    assert whole(typed.split("|")) == (words.split("|"), kept)


@NO_BASH
def test_completion_is_installed_for_the_shell_that_asks(folder: Path) -> None:
    script = f"{sys.executable} -m jobpipe --install-completion; true"
    env = {"HOME": str(folder), "PATH": "/usr/bin:/bin"}
    ended = subprocess.run(
        ["bash", "--norc", "-c", script], capture_output=True, text=True, timeout=30, env=env, check=True
    )
    assert "bash completion installed" in ended.stdout, ended.stderr
    assert "_jobpipe_completion" in (folder / ".bash_completions" / "jobpipe.sh").read_text()
