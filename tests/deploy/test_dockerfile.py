"""The Dockerfile: read, and held against the program, as there is no engine to build it with."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from ..support.processes import program as running
from .dockerfile import environment, only, read_dockerfile
from .program import ROOT, load, parse, probes, unknown

BUILD, FINAL = read_dockerfile(ROOT / "Dockerfile")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def copied() -> list[str]:
    """What is copied from the folder of the build."""
    copies = [each for each in BUILD + FINAL if each.name == "COPY" and "from" not in each.flags]
    return [source for each in copies for source in each.words[:-1]]


@pytest.mark.parametrize("text", ["FROM a\nRUM b\n", "FROM a\nRUN\n"])
def test_the_reader_can_say_no(tmp_path: Path, text: str) -> None:
    (tmp_path / "Dockerfile").write_text(text)
    with pytest.raises(ValueError, match="not an instruction"):
        read_dockerfile(tmp_path / "Dockerfile")


def test_both_stages_have_the_same_slim_base_of_a_python_that_is_supported() -> None:
    bases = {only(stage, "FROM").words[0] for stage in (BUILD, FINAL)}
    (base,) = bases
    version = re.fullmatch(r"python:(3\.\d+)-slim", base)
    assert version is not None
    assert f"Programming Language :: Python :: {version[1]}" in PROJECT["classifiers"]


def test_the_second_stage_takes_what_the_first_has_made() -> None:
    (copy,) = [each for each in FINAL if each.name == "COPY"]
    assert only(BUILD, "FROM").words[-1] == copy.flags["from"]
    made = re.search(r"-m venv (\S+)", only(BUILD, "RUN").rest)
    assert made is not None
    assert copy.words == [made[1], made[1]], "a venv works only where it was made"
    assert environment(FINAL)["PATH"].startswith(f"{made[1]}/bin:")


def test_what_is_copied_exists_and_is_not_ignored() -> None:
    ignored = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    assert "*" in ignored
    assert copied()
    for source in copied():
        assert (ROOT / source).exists(), source
        assert f"!{source}" in ignored


def test_nothing_else_comes_into_the_build() -> None:
    """Neither `.env` nor a store nor the history."""
    allowed = [
        line[1:] for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines() if line[:1] == "!"
    ]
    assert sorted(allowed) == sorted(copied())


def test_all_that_the_package_is_built_from_is_copied() -> None:
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]
    packages = tool["hatch"]["build"]["targets"]["wheel"]["packages"]
    needed = {PROJECT["readme"], *PROJECT["license-files"], *(name.split("/")[0] for name in packages)}
    assert {*needed, "pyproject.toml"} == set(copied())


def test_the_extras_that_are_installed_exist() -> None:
    installed = shlex.split(only(BUILD, "RUN").rest)[-1]
    extras = re.fullmatch(r"\.\[(.+)\]", installed)
    assert extras is not None
    assert extras[1].split(",") == ["service", "postgres", "redis"]
    assert {*extras[1].split(",")} <= PROJECT["optional-dependencies"].keys()


def test_it_runs_the_program_itself_and_not_a_shell() -> None:
    entry, command = only(FINAL, "ENTRYPOINT"), only(FINAL, "CMD")
    assert entry.is_exec
    assert command.is_exec
    assert entry.words[0] in PROJECT["scripts"]
    assert parse([*entry.words[1:], *command.words]) == "serve"


def test_it_is_not_root_and_owns_its_data() -> None:
    user = only(FINAL, "USER").rest
    assert re.fullmatch(r"[1-9]\d+:[1-9]\d+", user)
    made = only(FINAL, "RUN").rest
    assert f"--uid {user.partition(':')[0]} " in made
    (volume,) = only(FINAL, "VOLUME").words
    assert f"install -d -o jobpipe -g jobpipe {volume}" in made
    assert environment(FINAL)["JOBPIPE_STORE"].startswith(f"sqlite:///{volume}/")


def test_its_settings_are_settings_and_hold_no_secrets() -> None:
    ours = {name: value for name, value in environment(FINAL).items() if name not in _OF_PYTHON}
    assert unknown(ours) == []
    assert not {"JOBPIPE_TOKEN", "JOBPIPE_READ_TOKEN", "JOBPIPE_TOKEN_FILE"} & ours.keys()
    assert only(FINAL, "EXPOSE").words == [str(load(ours).port)]


_OF_PYTHON = {"PATH", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"}


def test_without_a_token_it_refuses_to_listen(tmp_path: Path) -> None:
    """The image listens on every address, so somebody has to set one."""
    host = environment(FINAL)["JOBPIPE_HOST"]
    env = {"JOBPIPE_HOST": host, "JOBPIPE_PORT": "0", "WORKERS": "0"}
    with running(["-m", "jobpipe", "serve"], tmp_path, env) as program:
        program.line("set JOBPIPE_TOKEN")
        assert program.code() == 2


def test_its_health_check_tells_a_service_that_is_there_from_none(tmp_path: Path) -> None:
    check = only(FINAL, "HEALTHCHECK")
    assert check.is_exec
    python, *arguments = check._replace(rest=check.rest.removeprefix("CMD ")).words
    assert python == "python"
    assert any(path in arguments[-1] for path in probes())

    def is_healthy(port: str) -> bool:
        ended = subprocess.run(
            [sys.executable, *arguments],
            env={"JOBPIPE_PORT": port},
            capture_output=True,
            check=False,
            timeout=30,
        )
        return ended.returncode == 0

    env = {"JOBPIPE_TOKEN": "t", "WORKERS": "0"}
    with running(["-m", "jobpipe", "serve", "--port", "0"], tmp_path, env) as program:
        port = program.line(r"listening on http://[\d.]+:(\d+)")[1]
        assert is_healthy(port)
    assert not is_healthy(port)
