"""A Dockerfile as a list of instructions, as far as ours goes: continued lines, comments, stages, exec forms."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import NamedTuple

KNOWN = {
    *("FROM", "WORKDIR", "COPY", "RUN", "ENV", "VOLUME", "EXPOSE", "USER", "HEALTHCHECK", "ENTRYPOINT"),
    *("CMD", "ARG", "LABEL", "STOPSIGNAL", "ADD", "SHELL", "ONBUILD"),
}
_FLAG = re.compile(r"--(?P<name>[\w-]+)=(?P<value>\S+)\s+")


class Instruction(NamedTuple):
    """One of them: its name, the flags before its words, and the rest of the line."""

    name: str
    flags: dict[str, str]
    rest: str

    @property
    def words(self) -> list[str]:
        """Of the exec form, which is JSON, or else of the line."""
        if self.rest.startswith("["):
            words: list[str] = json.loads(self.rest)
            return words
        return self.rest.split()

    @property
    def is_exec(self) -> bool:
        """Is it in the exec form, so that no shell stands in between?"""
        return self.rest.removeprefix("CMD ").startswith("[")


def read_dockerfile(path: Path) -> list[list[Instruction]]:
    """The instructions of each stage; ValueError for a line that is none."""
    lines = [line for line in path.read_text("utf-8").splitlines() if not line.lstrip().startswith("#")]
    stages: list[list[Instruction]] = []
    for line in filter(str.strip, re.sub(r"\\\n\s*", "", "\n".join(lines)).splitlines()):
        name, _, rest = line.partition(" ")
        if name not in KNOWN or not rest.strip():
            raise ValueError(f"not an instruction: {line!r}")
        if name == "FROM":
            stages.append([])
        flags = {}
        rest = rest.strip()
        while found := _FLAG.match(rest):
            flags[found["name"]] = found["value"]
            rest = rest[found.end() :]
        stages[-1].append(Instruction(name, flags, rest))
    return stages


def only(stage: list[Instruction], name: str) -> Instruction:
    """The one instruction of that name."""
    (found,) = [each for each in stage if each.name == name]
    return found


def environment(stage: list[Instruction]) -> dict[str, str]:
    """What ENV sets."""
    pairs = [word for each in stage if each.name == "ENV" for word in each.words]
    return dict(pair.split("=", 1) for pair in pairs)
