"""The console blocks of a page, run for real: after `$` comes a command, and below it what it prints.

`jobpipe serve` starts a service on a free port; localhost:8080 stands for it until the page
starts the next one. A block that begins with `# name.ext` is that file. In what is printed, `…` stands for
anything and a time for any time; lines may be left out, fields of JSON may not.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from .processes import Program
from .starting import shell_command
from .waiting import LIMIT

_SERVE = re.compile(r"^(?:\w+=\S* )*(?:python manage\.py )?jobpipe serve\b[^|]*$")
_FILE = re.compile(r"# (?P<name>[\w/]*\.\w+)\n")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)?")
_BARE = re.compile(r"(?<=[\[:,\s])…(?=[\],}\s])")
_OURS = re.compile(r"JOBPIPE_|WORKERS$|QUEUE_SIZE$")


class Command(NamedTuple):
    """A command, what the page shows of its output, and its line within the block."""

    text: str
    shown: str
    line: int


def commands_of(block: str) -> Iterator[Command]:
    """The commands of a console block."""
    lines = block.splitlines()
    begins = [number for number, line in enumerate(lines) if line.startswith("$ ")]
    for begin, end in pairwise([*begins, len(lines)]):
        last = begin
        while lines[last].endswith("\\"):
            last += 1
        text = "\n".join(lines[begin : last + 1])[2:]
        yield Command(text, "\n".join(lines[last + 1 : end]).strip(), begin)


def file_of(block: str) -> str | None:
    """The name of the file that a block is, if it is one."""
    found = _FILE.match(block)
    return found["name"] if found else None


class Terminal:
    """Where commands are run: a folder, and the service that runs in it."""

    def __init__(self, folder: Path, servers: Mapping[str, str]) -> None:
        self._folder = folder
        self._servers = servers
        self._service: Program | None = None
        self._address = "localhost:8080"

    def run(self, command: Command) -> None:
        """Run it; AssertionError unless it ends well and prints what the page shows."""
        text = command.text
        for name, address in self._servers.items():
            text = text.replace(name, address)
        if _SERVE.match(text):
            self._serve(text)
            return
        names = (
            f'jobpipe() {{ {shell_command()} "$@"; }}\npython() {{ {shlex.quote(sys.executable)} "$@"; }}\n'
        )
        ended = subprocess.run(
            ["bash", "-c", names + text.replace("localhost:8080", self._address)],
            cwd=self._folder,
            env={name: value for name, value in os.environ.items() if not _OURS.match(name)},
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
        assert ended.returncode == 0, f"{text}\n{ended.stdout}{ended.stderr}"
        printed = ended.stdout
        for name, address in self._servers.items():
            printed = printed.replace(address, name)
        assert is_shown(command.shown, printed), f"{text}\n{printed}"

    def _serve(self, text: str) -> None:
        self.stop()
        words = shlex.split(os.path.expandvars(text), comments=True)
        place = words.index("jobpipe")
        env = dict(word.split("=", 1) for word in words[:place] if "=" in word)
        start = ["manage.py"] if "manage.py" in words else ["-m"]
        self._service = Program([*start, *words[place:], "--port", "0"], self._folder, env)
        self._address = self._service.line(r"listening on http://([\w.:]+)")[1]

    def stop(self) -> None:
        """Stop the service as Ctrl+C does; it has to end well."""
        service, self._service = self._service, None
        if service is not None:
            service.kill(signal.SIGINT)
            try:
                assert service.code() == 0
            finally:
                service.close()

    def close(self) -> None:
        """End the service, whatever it does."""
        if self._service is not None:
            self._service.close()


@contextmanager
def terminal(folder: Path, servers: Mapping[str, str]) -> Iterator[Terminal]:
    """A terminal in the folder; at the end its service is stopped. Servers that a page names stand for others."""
    opened = Terminal(folder, servers)
    try:
        yield opened
        opened.stop()
    finally:
        opened.close()


def is_shown(shown: str, printed: str) -> bool:
    """Is it what the page shows?"""
    if shown.startswith(("{", "[")):
        return _is_like(json.loads(_BARE.sub('"…"', shown)), json.loads(printed))
    lines = iter(printed.splitlines())
    wanted = [line for line in shown.splitlines() if line.strip() not in ("", "…")]
    return all(any(_matches(want, line) for line in lines) for want in wanted)


def _is_like(shown: Any, value: Any) -> bool:
    if shown == "…" or (shown == ["…"] and isinstance(value, list)):
        return True
    if isinstance(shown, dict) and isinstance(value, dict):
        return shown.keys() == value.keys() and all(_is_like(shown[key], value[key]) for key in shown)
    if isinstance(shown, list) and isinstance(value, list):
        return len(shown) == len(value) and all(map(_is_like, shown, value))
    if isinstance(shown, str) and isinstance(value, str):
        return _matches(shown, value)
    return bool(shown == value)


def _matches(shown: str, printed: str) -> bool:
    """Is it the same text, but for the space between words, times, and what the page leaves open?"""
    pattern = ".*".join(map(re.escape, _TIME.sub("…", " ".join(shown.split())).split("…")))
    return re.fullmatch(pattern, " ".join(printed.split()), re.DOTALL) is not None
