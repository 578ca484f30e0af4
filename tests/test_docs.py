"""The documentation holds: its snippets run, its links lead somewhere, and it names everything public.

Run as a program, it renews what is made from the code: the diagrams, the tables of stores and settings, and the commands.
"""

from __future__ import annotations

import ast
import inspect
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from functools import partial
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from textwrap import dedent
from types import ModuleType
from typing import NamedTuple, get_type_hints

import pytest
from msgspec.structs import fields as fields_of

import jobpipe
import jobpipe.testing
import rate_envelope_queue
from jobpipe import CurrentJob, Job, Jobpipe, JobRequest, JobStatus, JobType, Settings, stores
from jobpipe.gateway.timetable import Timetable
from jobpipe.jobtypes.terms import TypeOptions
from jobpipe.model import job as jobs
from jobpipe.settings import flag_of
from jobpipe.stores.base import Capabilities, Receipt, Store, WorkerInfo
from jobpipe.web.app import make_app
from jobpipe.web.problems import KINDS
from rate_envelope_queue import (
    AsyncRateEnvelopeQueue,
    Context,
    Envelope,
    Explanation,
    HistogramSnapshot,
    Metrics,
    RateEnvelopeQueue,
    Reason,
    Stats,
    testing,
)
from rate_envelope_queue.core.lifecycle import TRANSITIONS, QueueState

from .support.commands import command_names, commands_reference
from .support.console import commands_of, file_of, is_shown, terminal
from .support.servers_postgres import postgres_database
from .support.servers_redis import redis_server

ROOT = Path(__file__).parent.parent
DOCS = sorted((ROOT / "docs").rglob("*.md"))
READMES = [ROOT / "README.md", ROOT / "README.ru.md"]
PAGES = [*READMES, ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *DOCS]
REFERENCE = ROOT / "docs" / "reference.md"
EXPLANATION = ROOT / "docs" / "explanation.md"
SERVICE = ROOT / "docs" / "jobpipe"
SCHEDULES = (jobpipe.ScheduleInfo, jobpipe.ScheduleRequest)
SERVICE_PAGES = [READMES[0], *sorted(SERVICE.glob("*.md"))]
"""Of the READMEs one: the other shows the same code, as `test_readmes.py` sees."""

_FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<code>.*?)^```$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")
_HEADING = re.compile(r"^#+ +(?P<title>.+)$", re.MULTILINE)
_MADE = re.compile(
    r"(?P<open><!-- (?P<name>\w+): [^\n]* -->\n)(?P<text>.*?)(?=<!-- /(?P=name) -->)", re.DOTALL
)
_OURS = re.compile(r"JOBPIPE_|WORKERS$|QUEUE_SIZE$")
_INFOS = {"python", "python no-run", "console", "sh", "text", "mermaid"}


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


class Snippet(NamedTuple):
    """A fenced block of a page, and the line its code begins at."""

    info: str
    code: str
    line: int


def snippets_of(page: Path) -> list[Snippet]:
    text = page.read_text(encoding="utf-8")
    return [
        Snippet(found["info"].strip(), found["code"], text.count("\n", 0, found.start("code")) + 1)
        for found in _FENCE.finditer(text)
    ]


@pytest.fixture
def database(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What DATABASE_URL leads to, for a page that asks for it."""
    page: Path = request.getfixturevalue("page")
    if "DATABASE_URL" not in page.read_text(encoding="utf-8"):
        yield
        return
    with postgres_database(request.getfixturevalue("postgres")) as url:
        monkeypatch.setenv("DATABASE_URL", url)
        yield


@pytest.mark.usefixtures("database")
@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_snippets_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The Python of a page runs from top to bottom, in one namespace."""
    leave_home(tmp_path, monkeypatch)
    module = ModuleType("snippets")
    monkeypatch.setitem(sys.modules, module.__name__, module)  # Why: annotations are looked up there
    for snippet in snippets_of(page):
        if snippet.info == "python" and not file_of(snippet.code):
            # Why the empty lines: a traceback then shows the line of the page.
            code = compile("\n" * (snippet.line - 1) + snippet.code, str(page), "exec", dont_inherit=True)
            exec(code, module.__dict__)


def leave_home(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Go where no file and no setting of the developer's own is."""
    monkeypatch.chdir(folder)
    for name in os.environ:
        if _OURS.match(name):
            monkeypatch.delenv(name)


@contextmanager
def servers_of(page: Path, folder: Path) -> Iterator[dict[str, str]]:
    """A real one for each server that the commands of a page speak to."""
    if "localhost:6379" not in page.read_text(encoding="utf-8"):
        yield {}
        return
    with redis_server(folder / "redis", appendonly="yes") as server:
        yield {"localhost:6379": f"127.0.0.1:{server.port}"}


@pytest.mark.timeout(300)  # Why longer: a page starts a process for each command
@pytest.mark.usefixtures("database")
@pytest.mark.parametrize("page", SERVICE_PAGES, ids=name_of)
def test_console_blocks_print_what_they_show(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commands of a page are run from top to bottom, in one folder, against a service that is started for it."""
    if page.name == "django.md":
        pytest.importorskip("django_tasks", reason="the page shows the package, which Django 6 does without")
    leave_home(tmp_path, monkeypatch)
    with servers_of(page, tmp_path) as servers, terminal(tmp_path, servers) as shell:
        for snippet in snippets_of(page):
            if name := file_of(snippet.code):
                (tmp_path / name).parent.mkdir(exist_ok=True)
                (tmp_path / name).write_text(snippet.code, encoding="utf-8")
            elif snippet.info == "console":
                for command in commands_of(snippet.code):
                    try:
                        shell.run(command)
                    except AssertionError as error:
                        raise AssertionError(
                            f"{name_of(page)}:{snippet.line + command.line}: {error}"
                        ) from None


@pytest.mark.parametrize("page", SERVICE_PAGES, ids=name_of)
def test_files_of_a_page_are_used_by_its_commands(page: Path) -> None:
    """A file is not run as a snippet: some command has to do it."""
    snippets = snippets_of(page)
    texts = [
        command.text for each in snippets if each.info == "console" for command in commands_of(each.code)
    ]
    files = [name for each in snippets if (name := file_of(each.code)) and name != ".env"]
    assert [name for name in files if not any(Path(name).stem in text for text in texts)] == []


@pytest.mark.parametrize(
    ("shown", "printed", "is_same"),
    [
        ('{"a": 1, "b": …}', '{"b":[2],"a":1}', True),
        ('{"a": 1}', '{"a":1,"b":2}', False),
        ('{"status": "done"}', '{"status":"failed"}', False),
        ('{"at": "2026-01-01T00:00:00Z"}', '{"at":"2027-02-02T10:00:00.123456Z"}', True),
        ('{"at": "2026-01-01T00:00:00Z"}', '{"at":null}', False),
        ('{"jobs": […]}', '{"jobs":[1,2]}', True),
        ('[1, {"a": "x…z"}]', '[1,{"a":"xyz"}]', True),
        ("id  t1\nstatus  done", "id      t1\ntype  echo\nstatus  done", True),
        ("status  done", "status  failed", False),
        ("two\none", "one\ntwo", False),
    ],
)
def test_what_is_shown_is_held_against_what_is_printed(shown: str, printed: str, is_same: bool) -> None:
    """The runner of the console blocks can say no."""
    assert is_shown(shown, printed) is is_same


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_blocks_say_what_they_are(page: Path) -> None:
    """A block with a misspelt language would silently not be run."""
    assert {snippet.info for snippet in snippets_of(page)} <= _INFOS


def test_nearly_all_snippets_are_run() -> None:
    """`no-run` is for the few that cannot stand alone."""
    infos = [snippet.info for page in PAGES for snippet in snippets_of(page)]
    assert infos.count("python") > 30
    assert infos.count("python no-run") <= 2


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_relative_links_resolve(page: Path) -> None:
    """Each leads to a file of the repository and, if it names one, to a heading in it."""
    broken = []
    for found in _LINK.finditer(_FENCE.sub("", page.read_text(encoding="utf-8"))):
        path, _, anchor = found["target"].partition("#")
        if re.match(r"[a-z]+:", path):
            continue
        target = (page.parent / path).resolve() if path else page
        is_there = target.is_relative_to(ROOT) and target.exists()
        if not is_there or (anchor and anchor not in anchors_of(target)):
            broken.append(found["target"])
    assert broken == []


def anchors_of(page: Path) -> set[str]:
    """The names by which its headings can be linked to, as GitHub makes them."""
    titles = [found["title"] for found in _HEADING.finditer(page.read_text(encoding="utf-8"))]
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_every_page_is_in_the_index() -> None:
    """A page that nobody links to is not found."""
    index = ROOT / "docs" / "index.md"
    linked = {
        (index.parent / found["target"]).resolve()
        for found in _LINK.finditer(index.read_text(encoding="utf-8"))
    }
    assert [name_of(page) for page in DOCS if page != index and page.resolve() not in linked] == []


def public_names() -> list[str]:
    owners = (Envelope, Context, RateEnvelopeQueue, AsyncRateEnvelopeQueue)
    members = {name for owner in owners for name in dir(owner) if not name.startswith("_")}
    values = (Stats, Metrics, HistogramSnapshot, Explanation)
    attributes = [field.name for value in values for field in fields(value)]
    constants = [constant.name for enum in (QueueState, Reason) for constant in enum]
    options = set(inspect.signature(RateEnvelopeQueue).parameters)
    return sorted(
        {*rate_envelope_queue.__all__, *members, *testing.__all__, *attributes, *constants, *options}
    )


@pytest.mark.parametrize("name", public_names())
def test_reference_names_everything_public(name: str) -> None:
    """As code, alone or with its arguments; in the tree of errors, at the start of its line."""
    text = REFERENCE.read_text(encoding="utf-8")
    assert re.search(rf"`(?:\w+\.)?{name}\b|^[├└]── {name}\b", text, re.MULTILINE)


def test_service_reference_names_everything_public() -> None:
    """As code, alone or with its arguments: functions, classes, methods, fields and the verbs of a store."""
    classes = (Jobpipe, JobType, CurrentJob, Timetable, Store)
    members = {name for owner in classes for name in dir(owner) if not name.startswith("_")}
    members = {name.removesuffix("_sync") for name in members} - _INTERNAL
    values = (
        Job,
        JobRequest,
        Receipt,
        Capabilities,
        WorkerInfo,
        jobpipe.Stats,
        jobpipe.QueueInfo,
        *SCHEDULES,
    )
    attributes = {field.name for value in values for field in fields_of(value)}
    options = set(TypeOptions.__annotations__)
    names = {*jobpipe.__all__, *jobpipe.testing.__all__, *members, *attributes, *options}
    text = (SERVICE / "python.md").read_text(encoding="utf-8")
    missing = [name for name in names if not re.search(rf"`(?:[@\w. ]*[. ])?{name}\b", text)]
    assert sorted(missing) == []


_INTERNAL = {
    *(
        "async_store",
        "attach",
        "gateway",
        "make_service",
        "probe",
        "signals",
        "throughput",
        "feed",
        "insert",
        "prepare",
        "prepare_many",
    ),  # of a pipe
    *("encode", "decode", "run", "backoff", "defaults", "is_async", "is_on"),  # of a job type
    *("payload_schema", "result_schema"),
    *("declare", "register", "tick"),  # of a timetable
    "connections",  # of the job that a handler runs
}
"""What the service itself uses of them."""


def test_the_architecture_page_names_only_files_that_are_there() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:src|tests)/[\w./]+)`", text))
    assert len(named) > 30
    assert sorted(name for name in named if not (ROOT / name).exists()) == []


def test_http_reference_has_every_call() -> None:
    """A heading for each, so that it can be linked to."""
    text = (SERVICE / "http.md").read_text(encoding="utf-8")
    headings = " ".join(found["title"] for found in _HEADING.finditer(text))
    with_calls = Jobpipe("memory://")
    calls = [f"`{call.method} {call.path}`" for call in make_app(with_calls).calls]
    with_calls.close()
    assert [call for call in calls if call not in headings] == []


def test_http_reference_has_every_problem() -> None:
    """A row for each that a call can come to, with its status and its type."""
    text = (SERVICE / "http.md").read_text(encoding="utf-8")
    assert [kind for kind in KINDS.values() if f"| {kind.status} | `{kind.slug}` |" not in text] == []


def test_http_reference_has_every_field() -> None:
    """A row for each field of a job, of a schedule, and of the requests."""
    text = (SERVICE / "http.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`[\w`, ]+`) \|", text, re.MULTILINE)
    shown = {name for row in rows for name in re.findall(r"\w+", row)}
    assert {
        field.name for value in (Job, JobRequest, *SCHEDULES) for field in fields_of(value)
    } - shown == set()


def test_every_test_that_holds_a_promise_is_there() -> None:
    """And every target of make that the page names."""
    text = (SERVICE / "promises.md").read_text(encoding="utf-8")
    folders = (ROOT / "tests", ROOT / "src" / "jobpipe" / "testing")
    code = "\n".join(path.read_text(encoding="utf-8") for folder in folders for path in folder.rglob("*.py"))
    named = set(re.findall(r"`(test_\w+)`", text))
    assert len(named) > 30
    assert [name for name in sorted(named) if f"def {name}(" not in code] == []
    targets = set(re.findall(r"`make (\w+)", text))
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert [target for target in sorted(targets) if f"\n{target}:" not in makefile] == []


def test_commands_of_readme_and_contributing_are_those_of_make() -> None:
    """Plain `make` runs the service; each page names no target that is not there, both together name all."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    described = set(re.findall(r"^(\w+):.* ## ", makefile, re.MULTILINE))
    named = {
        page: set(re.findall(r"`make (\w+)", (ROOT / page).read_text(encoding="utf-8")))
        for page in ("README.md", "CONTRIBUTING.md")
    }
    assert {"run", "build", "test", "test_race", "vet", "help"} <= named["README.md"] <= described
    assert named["README.md"] | named["CONTRIBUTING.md"] == described
    assert ".DEFAULT_GOAL := run\n" in makefile


def test_every_command_is_shown_at_work() -> None:
    """Not only in the reference: some example on its page uses it."""
    used = "\n".join(each.code for each in snippets_of(SERVICE / "cli.md"))
    assert [name for name in command_names() if f"{name} " not in used and f"{name}\n" not in used] == []


def state_diagram() -> str:
    """The transition table of the library as a Mermaid diagram: one arrow for each pair of states, with all its events."""
    return diagram(
        [QueueState.INIT.name],
        [(before.name, after.name, event.value) for (before, event), after in TRANSITIONS.items()],
    )


def job_diagram() -> str:
    """The transition table of jobs, in the same way."""
    return diagram(
        [JobStatus.SCHEDULED, JobStatus.QUEUED],
        [
            (before, after, move)
            for before, moves in jobs.TRANSITIONS.items()
            for move, after in moves.items()
        ],
    )


def diagram(first: list[str], table: list[tuple[str, str, str]]) -> str:
    arrows: dict[tuple[str, str], list[str]] = {}
    for before, after, event in table:
        arrows.setdefault((before, after), []).append(event)
    lines = [f"    {before} --> {after}: {', '.join(events)}" for (before, after), events in arrows.items()]
    begins = [f"    [*] --> {state}" for state in first]
    return "\n".join(["```mermaid", "stateDiagram-v2", *begins, *lines, "```", ""])


def settings_table() -> str:
    """A row for each setting, as the code knows it."""
    rows = ["| setting | flag | default | value | meaning |", "|---|---|---|---|---|"]
    for each in fields(Settings):
        plain = {True: "on", False: "off"}[each.default] if isinstance(each.default, bool) else each.default
        shown = f"`{plain:g}`" if isinstance(plain, float) else f"`{plain}`"
        default = "" if each.default in (None, ()) else shown
        about = each.metadata
        rows.append(
            f"| `{about['env']}` | `{flag_of(each.name)}` | {default} | {about['read'].__doc__} | {about['help']} |"
        )
    return "\n".join([*rows, ""])


def capabilities_table(*left_out: str) -> str:
    """A row for each capability, with its question, and a column for each store that comes along."""
    schemes: dict[tuple[str, str], str] = {}
    for scheme, opener in stores._BUILT_IN.items():
        schemes.setdefault(opener, scheme)  # the first of those that lead to the same store
    # Why by its type: a store would have to be there to be opened.
    found = [
        get_type_hints(getattr(import_module(module), name))["return"].capabilities
        for module, name in schemes
    ]
    questions = questions_of(Capabilities)
    rows = [
        f"| `Capabilities` | | {' | '.join(f'`{scheme}://`' for scheme in schemes.values())} |",
        "|---" * (len(schemes) + 2) + "|",
    ]
    for name in [field.name for field in fields_of(Capabilities) if field.name not in left_out]:
        answers = ["yes" if getattr(capabilities, name) else "no" for capabilities in found]
        rows.append(f"| `{name}` | {questions[name]} | {' | '.join(answers)} |")
    return "\n".join([*rows, ""])


def questions_of(value: type) -> dict[str, str]:
    """The fields of a class, and what is written below each."""
    (body,) = ast.parse(dedent(inspect.getsource(value))).body
    assert isinstance(body, ast.ClassDef)
    return {
        field.target.id: str(ast.literal_eval(text.value))
        for field, text in pairwise(body.body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
    }


MADE: Mapping[str, tuple[Path, Callable[[], str]]] = {
    "states": (EXPLANATION, state_diagram),
    "transitions": (SERVICE / "guarantees.md", job_diagram),
    "stores": (SERVICE / "guarantees.md", partial(capabilities_table, "blocking")),
    "capabilities": (SERVICE / "python.md", capabilities_table),
    "settings": (SERVICE / "settings.md", settings_table),
    "commands": (SERVICE / "cli.md", commands_reference),
}
"""What is made from the code: its name, the page that has it, and what makes it."""


@pytest.mark.parametrize("name", MADE)
def test_what_is_made_from_the_code_is_that_of_the_code(name: str) -> None:
    """The diagrams, the tables of stores and settings, and the reference of the commands."""
    page, make = MADE[name]
    shown = [found["text"] for found in _MADE.finditer(page.read_text("utf-8")) if found["name"] == name]
    assert shown == [make()], (
        f"{name_of(page)} is out of date: `.venv/bin/python -m tests.test_docs` renews it"
    )


if __name__ == "__main__":
    for page, _ in MADE.values():
        text = page.read_text(encoding="utf-8")
        text = _MADE.sub(lambda found: found["open"] + MADE[found["name"]][1](), text)
        page.write_text(text, encoding="utf-8")
