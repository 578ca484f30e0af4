"""What a program gets that has not installed the extra, and which version it has."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version

import pytest

import jobpipe


def without(module: str, *code: str) -> subprocess.CompletedProcess[str]:
    """A process that has no such module."""
    script = "\n".join(["import sys", f"sys.modules[{module!r}] = None", *code])
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("name", "module", "extra"),
    [
        ("Jobpipe", "msgspec", "service"),
        ("Client", "httpx", "client"),
        ("Client", "msgspec", "client"),
    ],
)
def test_a_name_without_its_extra_says_in_one_line_what_to_install(
    name: str, module: str, extra: str
) -> None:
    ended = without(module, f"from jobpipe import {name}")
    assert ended.returncode == 1
    last = ended.stderr.splitlines()[-1]
    assert last == f"ImportError: {name} needs {module}: pip install 'rate-envelope-queue[{extra}]'"
    assert "During handling" not in ended.stderr


def test_the_command_without_its_extra_says_in_one_line_what_to_install() -> None:
    ended = without("typer", "from jobpipe.__main__ import main", "main()")
    assert ended.returncode == 1
    assert ended.stderr == "error: jobpipe needs typer: pip install 'rate-envelope-queue[service]'\n"


def test_a_module_of_ours_that_is_broken_is_not_taken_for_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jobpipe.client.client", None)
    with pytest.raises(ModuleNotFoundError, match=r"jobpipe\.client\.client"):
        _ = jobpipe.Client


def test_the_version_is_that_of_the_distribution() -> None:
    assert jobpipe.__version__ == version("rate-envelope-queue")
