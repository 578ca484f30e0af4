"""Who may import whom in the service, read from the source."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import jobpipe
import rate_envelope_queue
import rate_envelope_queue.testing

from ..support.each import for_each

NAME = "jobpipe"
LIBRARY = "rate_envelope_queue"
ROOT = Path(jobpipe.__file__).parent
LONGEST = 400

ROOMS = (
    *("errors", "failpoints", "model", "settings", "stores", "gateway", "jobtypes", "worker"),
    *("app", "process", "web", "client", "cli", "testing", "integrations"),
)
"""Each may use those before it, and none of those after it: also for types, and inside functions."""
DOORS = {("app", "web.app"), ("app", "testing.kit.tester")}
"""`Jobpipe.asgi` brings the web in, and `Jobpipe.testing` the test kit, when they are called."""
OUTER = ("process", "web", "client", "cli")
"""What speaks to the outside; only it may need more than msgspec."""
OF_OUTER = {"httptools", "httpx", "prometheus_client", "rich", "starlette", "typer", "uvloop"}
MOST_MODULES = 18
TESTS = Path(__file__).parent.parent
"""All of them, those of the library too."""
LONGEST_TESTS = 600


class Import(NamedTuple):
    """One import, by the full name of what is imported."""

    module: str
    names: tuple[str, ...]
    """What is taken from it; none for a plain `import`."""
    is_typing: bool
    """Under `if TYPE_CHECKING:`?"""
    is_late: bool
    """In a function, and so not before it is called?"""


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


PATHS = {module_name(path): path for path in sorted(ROOT.rglob("*.py"))}
CORE = [name for name in PATHS if name.split(".")[0] not in (*OUTER, "testing", "integrations", "__main__")]


@cache
def tree_of(module: str) -> ast.Module:
    return ast.parse(PATHS[module].read_text(encoding="utf-8"))


@cache
def imports_of(module: str) -> tuple[Import, ...]:
    return tuple(_imports(tree_of(module), module, is_typing=False, is_late=False))


def _imports(node: ast.AST, module: str, *, is_typing: bool, is_late: bool) -> list[Import]:
    if isinstance(node, ast.Import):
        return [Import(alias.name, (), is_typing, is_late) for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [Import(origin, names, is_typing, is_late) for origin, names in _origins(node, module).items()]
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        is_late = True
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        is_typing = True
    children = ast.iter_child_nodes(node)
    return [
        each for child in children for each in _imports(child, module, is_typing=is_typing, is_late=is_late)
    ]


def _origins(node: ast.ImportFrom, module: str) -> dict[str, tuple[str, ...]]:
    """The full names of the modules that it imports from, and what it takes from each."""
    here = [NAME, *module.split(".")]
    base = here[: len(here) - node.level] if node.level else []
    origin = ".".join([*base, *filter(None, [node.module])])
    found: dict[str, tuple[str, ...]] = {}
    for alias in node.names:
        whole = f"{origin}.{alias.name}"
        if whole.removeprefix(f"{NAME}.") in PATHS:
            found[whole] = ()
        else:
            found[origin] = (*found.get(origin, ()), alias.name)
    return found


def own(name: str) -> str | None:
    """The name within the package, or None if it is foreign."""
    if name == NAME:
        return "__init__"
    if not name.startswith(f"{NAME}."):
        return None
    inner = name.removeprefix(f"{NAME}.")
    return f"{inner}.__init__" if f"{inner}.__init__" in PATHS else inner


def own_imports(module: str, *, typing: bool = True, late: bool = True) -> set[str]:
    counted = [each for each in imports_of(module) if typing >= each.is_typing and late >= each.is_late]
    return {name for each in counted if (name := own(each.module)) is not None}


def foreign(module: str) -> set[str]:
    """The first names of what it imports from outside the package and the standard library."""
    names = {each.module.split(".")[0] for each in imports_of(module)}
    return names - {NAME, LIBRARY} - sys.stdlib_module_names


def family(module: str) -> str:
    return module.split(".")[0]


def test_the_reader_sees_imports_of_every_kind() -> None:
    """A reader that sees nothing would find nothing wrong."""
    assert own_imports("__init__") >= {"app", "errors", "stores.__init__", "stores.base"}
    assert "worker.service" in own_imports("app")
    assert "worker.service" not in own_imports("app", typing=False, late=False)
    assert "gateway.signals" in own_imports("worker.runner")
    assert "gateway.signals" not in own_imports("worker.runner", typing=False)
    assert "errors" in own_imports("stores.sqlite.store"), "a grandparent: from ...errors"
    assert "model.json" in own_imports("jobtypes.prepare"), "a module: from ..model import json"
    assert any(LIBRARY in each.module and "Envelope" in each.names for each in imports_of("worker.executor"))
    assert "msgspec" in foreign("model.job")
    assert "starlette" in {name for module in PATHS if module.startswith("web.") for name in foreign(module)}


# Rooms


def test_every_module_is_in_a_room() -> None:
    assert {family(module) for module in PATHS} == {*ROOMS, "__init__", "__main__"}


@for_each([name for name in PATHS if family(name) in ROOMS])
def test_a_room_uses_only_those_before_it(module: str) -> None:
    height = ROOMS.index(family(module))
    used = {name for name in own_imports(module) if (module, name) not in DOORS}
    assert {name for name in used if family(name) not in ROOMS[: height + 1]} == set()


@for_each([name for name in PATHS if name.startswith("stores.")])
def test_a_store_knows_the_model_and_no_settings(module: str) -> None:
    assert {family(name) for name in own_imports(module)} <= {"stores", "model", "errors", "failpoints"}


@for_each([name for name in PATHS if name.startswith("stores.") and name.count(".") > 1])
def test_one_store_does_not_know_another(module: str) -> None:
    package = ".".join(module.split(".")[:2])
    others = {name for name in own_imports(module) if name.startswith("stores.") and name.count(".") > 1}
    assert {name for name in others if not name.startswith(f"{package}.")} == set()


def test_who_only_enqueues_loads_nothing_of_what_runs_jobs() -> None:
    loaded, todo = set[str](), ["app"]
    while todo:
        module = todo.pop()
        if module not in loaded:
            loaded.add(module)
            todo += own_imports(module, typing=False, late=False)
    assert "stores.base" in loaded
    assert not {family(module) for module in loaded} & {"worker", *OUTER, "testing", "integrations"}


def test_imports_go_round_in_no_circle() -> None:
    graph = {module: own_imports(module, typing=False, late=False) - {module} for module in PATHS}
    TopologicalSorter(graph).prepare()  # CycleError names the circle


# What others provide


@for_each(CORE)
def test_the_core_needs_msgspec_and_nothing_else(module: str) -> None:
    drivers = {
        "stores.postgres": {"psycopg"},
        "stores.redis": {"redis"},
        "gateway.tracing": {"opentelemetry"},
    }
    allowed = drivers.get(".".join(module.split(".")[:2]), set())
    assert foreign(module) <= {"msgspec", *allowed}


@for_each([name for name in PATHS if family(name) in OUTER])
def test_the_web_and_the_command_line_need_only_what_is_declared(module: str) -> None:
    assert foreign(module) <= {"msgspec", *OF_OUTER}


@for_each([name for name in PATHS if name.startswith("integrations.django.")])
def test_the_integration_of_django_needs_only_django(module: str) -> None:
    assert foreign(module) <= {"msgspec", "django", "django_tasks", "asgiref"}


@for_each(PATHS)
def test_the_library_is_used_through_its_public_names_only(module: str) -> None:
    allowed = {*rate_envelope_queue.__all__}
    for each in imports_of(module):
        if family(each.module) == LIBRARY:
            parts = each.module.split(".")
            if family(module) == "testing" and parts == [LIBRARY, "testing"]:
                assert {*each.names} <= {*rate_envelope_queue.testing.__all__, "to_seconds"}, each
                continue
            is_integration = parts[1:2] == ["integrations"] and not any(
                part.startswith("_") for part in parts
            )
            assert is_integration or (parts == [LIBRARY] and each.names and {*each.names} <= allowed), each


@for_each(CORE)
def test_nothing_unpickles_or_runs_text(module: str) -> None:
    assert not {each.module.split(".")[0] for each in imports_of(module)} & {"pickle", "marshal", "shelve"}
    calls = {
        node.func.id
        for node in ast.walk(tree_of(module))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert not calls & {"eval", "exec", "compile", "__import__"}


def test_an_import_loads_nothing_that_only_the_web_and_the_command_line_need() -> None:
    script = "import sys, jobpipe; print(*(name for name in sys.argv[1:] if name in sys.modules))"
    found = subprocess.run(
        [sys.executable, "-c", script, *OF_OUTER], check=True, capture_output=True, text=True
    )
    assert found.stdout.split() == []


# The top of the package


def test_the_public_names_are_sorted_and_unique() -> None:
    assert list(jobpipe.__all__) == sorted(set(jobpipe.__all__))


@for_each(jobpipe.__all__)
def test_a_public_name_can_be_imported_and_belongs_to_the_package(name: str) -> None:
    owner = LIBRARY if name in ("Rate", "RateLimited") else NAME
    assert getattr(jobpipe, name).__module__.split(".")[0] == owner


def test_the_top_holds_the_public_names_and_nothing_else() -> None:
    imports = [each for each in ast.walk(tree_of("__init__")) if isinstance(each, ast.ImportFrom)]
    brought = {alias.asname or alias.name for each in imports for alias in each.names}
    assert brought == {*jobpipe.__all__, "TYPE_CHECKING", "import_module"}
    assert {name for names in jobpipe._MODULES.values() for name in names} == set(jobpipe.__all__)


def test_the_package_ships_its_types() -> None:
    assert (ROOT / "py.typed").is_file()


# Size and shape


@for_each(PATHS)
def test_no_module_is_so_long_that_a_noun_is_missing(module: str) -> None:
    assert PATHS[module].read_bytes().count(b"\n") <= LONGEST


def test_no_folder_holds_so_many_modules_that_it_is_two_rooms() -> None:
    counts = Counter(path.parent for path in PATHS.values() if path.name != "__init__.py")
    assert {str(folder): count for folder, count in counts.items() if count > MOST_MODULES} == {}


def test_no_file_of_tests_is_so_long_that_it_is_about_two_subjects() -> None:
    counts = {str(path.relative_to(TESTS)): path.read_bytes().count(b"\n") for path in TESTS.rglob("*.py")}
    assert counts["jobpipe/test_architecture.py"], "it sees the files"
    assert {name: count for name, count in counts.items() if count > LONGEST_TESTS} == {}


@for_each(PATHS)
def test_every_module_says_what_it_is(module: str) -> None:
    assert ast.get_docstring(tree_of(module))


@for_each([name for name in CORE if not name.startswith("stores.")])
def test_every_public_class_and_function_says_what_it_does(module: str) -> None:
    """A property may speak for itself, and so may what the Protocol of stores describes."""
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    silent = [
        node.name
        for node in tree_of(module).body
        if isinstance(node, kinds) and not node.name.startswith("_") and not ast.get_docstring(node)
    ]
    assert silent == []
