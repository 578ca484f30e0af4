"""Round: takes one thing out of a copy of the source at a time, and sees which tests notice."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from .mutation import Mutation

ROOT = Path(__file__).parents[2]
_COPIED = ("src", "tests")
_TIMEOUT = 600


class GoneError(LookupError):
    """The text that a mutation replaces is not there, or more than once."""


@contextmanager
def copied() -> Iterator[Path]:
    """A copy of the tree, gone afterwards."""
    with TemporaryDirectory(prefix="mutations-") as folder:
        copy = Path(folder)
        for name in _COPIED:
            shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", copy)
        yield copy


@contextmanager
def applied(mutation: Mutation, tree: Path) -> Iterator[None]:
    """The tree with one thing less; GoneError if it is not to be found."""
    path = tree / mutation.path
    text = path.read_text(encoding="utf-8")
    found = text.count(mutation.old)
    if found != 1:
        raise GoneError(f"{mutation.name}: its text is {found} times in {mutation.path}, and not once")
    path.write_text(text.replace(mutation.old, mutation.new), encoding="utf-8")
    try:
        yield
    finally:
        path.write_text(text, encoding="utf-8")


def failing(tests: Sequence[str], tree: Path) -> set[str]:
    """Which of the tests fail in the tree; RuntimeError unless each of them was run."""
    done = subprocess.run(
        # Why no bytecode: a file that changes twice within a second would be taken for the one before.
        [sys.executable, "-B", "-m", "pytest", "-q", "-rA", "-p", "no:cacheprovider", *tests],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree / "src")},
        capture_output=True,
        text=True,
        timeout=_TIMEOUT,
        check=False,
    )
    verdicts = {
        test: verdict
        for verdict, test in re.findall(r"^(PASSED|FAILED) (\S+)", done.stdout, flags=re.MULTILINE)
    }
    missing = [test for test in tests if test not in verdicts]
    if missing:
        raise RuntimeError(f"{missing[0]} was not run:\n{done.stdout[-3000:]}{done.stderr[-1000:]}")
    return {test for test in tests if verdicts[test] == "FAILED"}


def survivors(mutation: Mutation, tree: Path) -> list[str]:
    """The tests of a mutation that pass all the same."""
    with applied(mutation, tree):
        failed = failing(mutation.tests, tree)
    return [test for test in mutation.tests if test not in failed]
