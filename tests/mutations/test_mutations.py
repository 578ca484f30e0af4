"""The mutations are as they are meant: `make mutations` runs them all."""

from __future__ import annotations

from pathlib import Path

import pytest

from .mutation import Mutation
from .round import ROOT, GoneError, applied, copied, survivors
from .table import MUTATIONS


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_what_a_mutation_takes_out_is_in_the_source_once_and_its_tests_are_there(mutation: Mutation) -> None:
    assert (ROOT / mutation.path).read_text(encoding="utf-8").count(mutation.old) == 1
    assert mutation.tests
    sources = "".join(path.read_text(encoding="utf-8") for path in ROOT.glob("src/jobpipe/testing/**/*.py"))
    for test in mutation.tests:
        path, *_, name = test.split("::")
        assert f"def {name.partition('[')[0]}(" in sources + (ROOT / path).read_text(encoding="utf-8")


def test_a_mutation_is_taken_back_and_one_whose_text_is_gone_is_refused(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text("one = 1\ntwo = 1\n")
    mutation = Mutation("m", "code.py", "one = 1\n", "", ("t",))
    with applied(mutation, tmp_path):
        assert (tmp_path / "code.py").read_text() == "two = 1\n"
    assert (tmp_path / "code.py").read_text() == "one = 1\ntwo = 1\n"
    for old in ("three", " = 1"):
        with (
            pytest.raises(GoneError, match=r"m: its text is \d times in code.py"),
            applied(mutation._replace(old=old), tmp_path),
        ):
            pass


def test_a_round_tells_the_tests_that_notice_from_those_that_do_not() -> None:
    noticed = "tests/jobpipe/stores/test_memory_store.py::TestMemoryStore::test_tick_fires_once"
    unmoved = "tests/jobpipe/stores/test_memory_store.py::TestMemoryStore::test_limit_is_kept"
    (mutation,) = [
        each for each in MUTATIONS if each.name == "memory: a tick fires as often as it is asked for"
    ]
    with copied() as tree:
        assert survivors(mutation._replace(tests=(noticed, unmoved)), tree) == [unmoved]
