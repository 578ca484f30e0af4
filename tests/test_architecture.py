"""Who may import whom, read from the source: nothing of it is run for these tests but the package's `__init__`."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

import rate_envelope_queue
from rate_envelope_queue import _MODULES

from .support.each import for_each

NAME = "rate_envelope_queue"
ROOT = Path(rate_envelope_queue.__file__).parent
LONGEST = 400
FULLEST = 18
"""Modules of one folder, besides its `__init__`."""

PURE = {
    *("__future__", "abc", "bisect", "collections", "dataclasses", "enum", "functools", "heapq"),
    *("itertools", "math", "operator", "types", "typing"),
}
"""What the core may use of the standard library: nothing that knows the time, waits, logs, guesses or does I/O."""
IMPURE_CALLS = {"open", "print", "input", "exec", "eval", "compile", "__import__"}

BELOW_CORE = {"_checks", "context", "decision", "envelope", "errors", "metrics"}
"""What the core stands on."""
TYPES_OF_CORE = BELOW_CORE | {"clock", "rates", "schedule"}
"""What it may name in its types besides."""
QUEUES = {"aio", "threads"}
OUTERMOST = {"__init__", "simulation", "testing"}
"""What may use the queues, with the integrations."""


class Import(NamedTuple):
    """One import, by the full name of what is imported."""

    module: str
    is_typing: bool
    """Under `if TYPE_CHECKING:`?"""
    is_late: bool
    """In a function, and so not before it is called?"""
    line: int


def module_name(path: Path) -> str:
    """The name within the package: `core.run`, `integrations.__init__`."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


PATHS = {module_name(path): path for path in sorted(ROOT.rglob("*.py"))}
CORE = [module for module in PATHS if module.startswith("core.")]
DRIVERS = [module for module in PATHS if module.startswith("drivers.")]


@cache
def tree_of(module: str) -> ast.Module:
    return ast.parse(PATHS[module].read_text(encoding="utf-8"))


@cache
def imports_of(module: str) -> tuple[Import, ...]:
    return tuple(_imports(tree_of(module).body, module, is_typing=False, is_late=False))


def _imports(
    nodes: list[ast.AST] | list[ast.stmt], module: str, *, is_typing: bool, is_late: bool
) -> list[Import]:
    found = []
    for node in nodes:
        typing, late = is_typing, is_late
        if isinstance(node, ast.Import | ast.ImportFrom):
            found += [Import(name, typing, late, node.lineno) for name in _imported(node, module)]
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            late = True
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            typing = True
        found += _imports(list(ast.iter_child_nodes(node)), module, is_typing=typing, is_late=late)
    return found


def _imported(node: ast.Import | ast.ImportFrom, module: str) -> list[str]:
    """The full names of the modules that it imports."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    here = [NAME, *module.split(".")]
    base = here[: len(here) - node.level] if node.level else []
    origin = ".".join([*base, *filter(None, [node.module])])
    names = [f"{origin}.{alias.name}" for alias in node.names]
    return [name if _is_module(name) else origin for name in names]


def _is_module(name: str) -> bool:
    inner = name.removeprefix(f"{NAME}.")
    return inner in PATHS or f"{inner}.__init__" in PATHS


def own(name: str) -> str | None:
    """The name within the package, or None if it is foreign."""
    if name == NAME:
        return "__init__"
    if not name.startswith(f"{NAME}."):
        return None
    inner = name.removeprefix(f"{NAME}.")
    return f"{inner}.__init__" if f"{inner}.__init__" in PATHS else inner


def own_imports(module: str, *, typing: bool = True, late: bool = True) -> set[str]:
    """What it imports of the package itself; without what is only for types, or not before a call, if so wanted."""
    counted = [each for each in imports_of(module) if typing >= each.is_typing and late >= each.is_late]
    return {name for each in counted if (name := own(each.module)) is not None}


def importers_of(name: str) -> set[str]:
    return {module for module in PATHS if name in own_imports(module)}


def is_outermost(module: str) -> bool:
    return module in OUTERMOST or module.startswith("integrations.")


def test_the_reader_sees_imports_of_every_kind() -> None:
    """A reader that sees nothing would find nothing wrong."""
    seen = {module: imports_of(module) for module in PATHS}
    assert len(CORE) >= 7
    assert any(each.is_typing for each in seen["core.run"])
    assert any(own(each.module) == "core.verdict" for each in seen["core.run"]), "a sibling: from .verdict"
    assert any(own(each.module) == "context" for each in seen["core.run"]), "a parent: from ..context"
    assert any(each.module == "cronsim" and each.is_late for each in seen["schedule"])
    assert any(each.module == "threading" and not each.is_late for each in seen["threads"])
    assert own_imports("__init__") >= {"aio", "threads", "core.lifecycle"}


# The core


@for_each(CORE)
def test_the_core_uses_nothing_that_knows_time_waits_logs_or_does_io(module: str) -> None:
    foreign = {each.module.split(".")[0] for each in imports_of(module) if own(each.module) is None}
    assert foreign <= PURE


@for_each(CORE)
def test_the_core_imports_nothing_in_the_middle_of_a_call(module: str) -> None:
    assert not [each for each in imports_of(module) if each.is_late]


@for_each(CORE)
def test_the_core_calls_nothing_that_reads_or_writes(module: str) -> None:
    names = {
        node.func.id
        for node in ast.walk(tree_of(module))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert not names & IMPURE_CALLS


@for_each(CORE)
def test_the_core_hands_the_clock_on_and_never_asks_it(module: str) -> None:
    asked = [
        ast.unparse(node)
        for node in ast.walk(tree_of(module))
        if isinstance(node, ast.Attribute)
        and ast.unparse(node.value).rpartition(".")[2] in ("clock", "_clock")
    ]
    assert asked == []


@for_each(CORE)
def test_the_core_stands_on_values_only(module: str) -> None:
    inside = {name for name in PATHS if name.startswith("core.")}
    assert own_imports(module, typing=False) <= inside | BELOW_CORE
    assert own_imports(module) <= inside | TYPES_OF_CORE


@for_each(sorted(TYPES_OF_CORE & PATHS.keys()))
def test_what_the_core_stands_on_knows_neither_the_core_nor_the_queues(module: str) -> None:
    above = {name for name in own_imports(module) if name.startswith("core.")}
    assert not above
    assert not own_imports(module) & {*DRIVERS, *QUEUES, *OUTERMOST}


# The rest of the package


def test_only_the_queues_know_what_they_share() -> None:
    assert {module for module in importers_of("drivers.driver") if not is_outermost(module)} <= QUEUES


@for_each(DRIVERS)
def test_only_the_queues_know_the_drivers_and_stamps_their_log(module: str) -> None:
    inside = {name for name in importers_of(module) if is_outermost(name) or name.startswith("drivers.")}
    allowed = QUEUES | {"stamps"} if module == "drivers.log" else QUEUES
    assert importers_of(module) - inside <= allowed


@for_each(sorted(QUEUES))
def test_only_the_outermost_know_the_queues_and_neither_queue_knows_the_other(queue: str) -> None:
    assert all(is_outermost(module) for module in importers_of(queue))


@for_each([name for name in PATHS if name.startswith(("testing", "integrations"))])
def test_nobody_imports_an_integration_or_the_testing_tools(module: str) -> None:
    family = module.split(".")[0]
    assert {name for name in importers_of(module) if name.split(".")[0] != family} <= {"pytest_plugin"}


def test_only_the_testing_tools_may_import_the_simulation() -> None:
    assert importers_of("simulation") <= {"testing"}


def test_only_the_outermost_import_the_top_of_the_package() -> None:
    assert all(is_outermost(module) for module in importers_of("__init__"))


@for_each(PATHS)
def test_the_library_never_imports_the_service_built_on_it(module: str) -> None:
    assert not [each for each in imports_of(module) if each.module.split(".")[0] == "jobpipe"]


@for_each([name for name in PATHS if not name.startswith(("integrations.", "pytest_plugin"))])
def test_no_dependency_is_imported_before_it_is_needed(module: str) -> None:
    early = {each.module.split(".")[0] for each in imports_of(module) if not (each.is_late or each.is_typing)}
    assert early - {NAME} <= sys.stdlib_module_names


def test_imports_go_round_in_no_circle() -> None:
    graph = {module: own_imports(module, typing=False, late=False) for module in PATHS}
    TopologicalSorter(graph).prepare()  # CycleError names the circle


# The top of the package


def test_the_public_names_are_sorted_and_unique() -> None:
    names = rate_envelope_queue.__all__
    assert list(names) == sorted(set(names))


@for_each(rate_envelope_queue.__all__)
def test_a_public_name_can_be_imported_and_belongs_to_the_package(name: str) -> None:
    public = getattr(rate_envelope_queue, name)
    assert getattr(public, "__module__", NAME).split(".")[0] in (NAME, "typing", "collections")


def test_the_top_holds_the_public_names_and_nothing_else() -> None:
    """What type checkers see, `__all__`, and where each name is found when it is first used: the same names."""
    imports = [each for each in ast.walk(tree_of("__init__")) if isinstance(each, ast.ImportFrom)]
    brought = {alias.name: each.module for each in imports for alias in each.names}
    assert brought.pop("import_module") == "importlib"
    assert brought == {name: module for module, names in _MODULES.items() for name in names}
    assert set(brought) == {*rate_envelope_queue.__all__} <= {*dir(rate_envelope_queue)}
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = rate_envelope_queue.nothing


def test_names_are_imported_when_they_are_used() -> None:
    script = """
import sys, rate_envelope_queue
assert not [name for name in sys.modules if name.startswith("rate_envelope_queue.")]
rate_envelope_queue.RateEnvelopeQueue
assert "asyncio" not in sys.modules
assert "RateEnvelopeQueue" in vars(rate_envelope_queue)
rate_envelope_queue.AsyncRateEnvelopeQueue
"""
    subprocess.run([sys.executable, "-I", "-c", script], check=True)


def test_the_package_ships_its_types() -> None:
    assert (ROOT / "py.typed").is_file()


# Size and shape


@for_each(PATHS)
def test_no_module_is_so_long_that_a_noun_is_missing(module: str) -> None:
    lines = PATHS[module].read_bytes().count(b"\n")
    assert lines <= LONGEST


def test_no_folder_holds_so_many_modules_that_a_room_is_missing() -> None:
    folders = Counter(path.parent for path in PATHS.values() if path.name != "__init__.py")
    assert max(folders.values()) <= FULLEST


@for_each(PATHS)
def test_every_module_says_what_it_is(module: str) -> None:
    assert ast.get_docstring(tree_of(module))
