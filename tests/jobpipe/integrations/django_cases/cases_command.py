"""`manage.py jobpipe`: which command it becomes, in which environment."""

from __future__ import annotations

import os
import sys
from typing import Any

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.test import override_settings

from jobpipe import SettingsError
from jobpipe.integrations.django import app
from jobpipe.integrations.django.blame import module_at_fault
from jobpipe.process.loading import AppBrokenError, load_pipe

from . import project, tasks


@pytest.fixture
def became(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str], dict[str, str]]]:
    """What this process would have become: the arguments after Python's own, and the environment."""
    seen: list[tuple[list[str], dict[str, str]]] = []

    def execve(path: str, arguments: list[str], env: dict[str, str]) -> None:
        assert path == arguments[0] == sys.executable
        seen.append((arguments[arguments.index("-m") :], env))

    monkeypatch.setattr(os, "execve", execve)
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "shop.settings")
    monkeypatch.delenv("PYTHONPATH", raising=False)
    return seen


def setting_of(*aliases: str) -> dict[str, Any]:
    backend = project.tasks_setting()["default"]
    immediate = {"BACKEND": f"{project.NAME}.backends.immediate.ImmediateBackend", "QUEUES": project.QUEUES}
    return {"default": immediate} | dict.fromkeys(aliases, backend)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (["worker", "--queues", "mail=2"], ["worker", app.SPEC, "--queues", "mail=2"]),
        (["serve", "--port=0", "--settings=shop.settings"], ["serve", app.SPEC, "--port=0"]),
        (["enqueue", "shop.tasks.add"], ["enqueue", "--app", app.SPEC, "shop.tasks.add"]),
        (["jobs", "--json"], ["jobs", "--json"]),
        ([], ["--help"]),
    ],
)
def test_it_becomes_the_command_line_of_jobpipe(
    became: list[tuple[list[str], dict[str, str]]], given: list[str], wanted: list[str]
) -> None:
    call_command("jobpipe", *given)
    ((arguments, env),) = became
    assert arguments == ["-m", "jobpipe", *wanted]
    assert env[app.VARIABLE] == "default"
    assert env["DJANGO_SETTINGS_MODULE"] == "shop.settings"
    assert env.get("JOBPIPE_STORE") == (None if app.SPEC in wanted else "memory://")


def test_its_processes_find_what_manage_py_finds(
    became: list[tuple[list[str], dict[str, str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", ["/a/project", "/an/addition", *sys.path])
    monkeypatch.setenv("PYTHONPATH", "/given")
    call_command("jobpipe", "worker")
    paths = became[0][1]["PYTHONPATH"].split(os.pathsep)
    assert (paths[:2], paths[-1]) == (["/a/project", "/an/addition"], "/given")
    assert not any("site-packages" in path or path.endswith(".zip") for path in paths)


@pytest.mark.parametrize("is_chosen", [True, False])
def test_times_are_shown_in_the_zone_of_the_project_or_of_the_machine(
    became: list[tuple[list[str], dict[str, str]]], monkeypatch: pytest.MonkeyPatch, is_chosen: bool
) -> None:
    monkeypatch.setitem(vars(settings), "is_overridden", lambda name: is_chosen)
    monkeypatch.setenv("TZ", "America/Chicago")  # as Django does, with its default too
    call_command("jobpipe", "jobs")
    assert became[0][1].get("TZ") == ("America/Chicago" if is_chosen else None)


def test_the_backend_is_the_only_one_or_the_one_that_is_named(
    became: list[tuple[list[str], dict[str, str]]],
) -> None:
    with override_settings(TASKS=setting_of("mail")):
        call_command("jobpipe", "worker")
        with pytest.raises(CommandError, match="--backend must be one of 'mail', got 'default'"):
            call_command("jobpipe", "--backend", "default", "worker")
    with override_settings(TASKS=setting_of("mail", "media")):
        call_command("jobpipe", "--backend", "media", "worker")
        with pytest.raises(CommandError, match="--backend must be one of 'mail', 'media', got 'default'"):
            call_command("jobpipe", "worker")
    with (
        override_settings(TASKS=setting_of()),
        pytest.raises(
            CommandError, match=r"TASKS has no backend jobpipe\.integrations\.django\.JobpipeBackend"
        ),
    ):
        call_command("jobpipe", "worker")
    with (
        override_settings(TASKS=project.tasks_setting(retries=3)),
        pytest.raises(CommandError, match=r"^TASKS\['default'\] is wrong: retries is not a known option"),
    ):
        call_command("jobpipe", "worker")
    assert [env[app.VARIABLE] for _, env in became] == ["mail", "media"]


def test_it_needs_a_module_of_settings(
    became: list[tuple[list[str], dict[str, str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DJANGO_SETTINGS_MODULE")
    with pytest.raises(CommandError, match="DJANGO_SETTINGS_MODULE is not set"):
        call_command("jobpipe", "worker")
    assert became == []


def test_a_process_loads_all_tasks_of_the_project(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those that were made for another backend: `using(backend=…)` may have sent them here."""
    with override_settings(TASKS=setting_of("mail")):
        monkeypatch.setenv(app.VARIABLE, "mail")
        pipe = load_pipe(app.SPEC)
        wanted = {f"{tasks.__name__}.{name}" for name in ("add", "note_async", "send")}
        assert wanted <= pipe.types.keys()
        pipe.close()


@pytest.mark.parametrize(
    ("raised", "wanted"),
    [
        (AttributeError("no such thing"), AppBrokenError),
        (SystemExit(3), AppBrokenError),
        (SettingsError("TASKS", "is wrong"), SettingsError),
    ],
)
def test_a_project_that_cannot_be_loaded_is_told(
    monkeypatch: pytest.MonkeyPatch, raised: BaseException, wanted: type[Exception]
) -> None:
    def discover(*_: object) -> None:
        raise raised

    monkeypatch.setattr("jobpipe.integrations.django.backend.JobpipeBackend.discover", discover)
    with pytest.raises(wanted, match="cannot be imported" if wanted is AppBrokenError else "TASKS is wrong"):
        load_pipe(app.SPEC)
    with pytest.raises(AttributeError, match="nothing"):
        app.nothing  # noqa: B018


def test_a_worker_blames_the_module_that_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "shop.settings")
    with (
        project.app_with_a_typo("other_typo"),
        pytest.raises(
            AppBrokenError,
            match=r"^the module 'other_typo\.tasks' cannot be imported: TypeError: "
            r"@task_options of other_typo\.tasks\.send: unknown option 'max_retires'",
        ),
    ):
        load_pipe(app.SPEC)
    assert module_at_fault(SyntaxError("bad", ("a.py", 1, 1, "")), "shop.settings") == "a.py"
    assert module_at_fault(OSError(), "shop.settings") == "shop.settings"
