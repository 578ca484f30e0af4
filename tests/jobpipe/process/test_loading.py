"""The pipe that `module:attribute` names, and what is said when there is none."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobpipe import Jobpipe
from jobpipe.errors import SettingsError
from jobpipe.process.loading import AppBrokenError, load_pipe


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path[:])
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_without_a_name_it_has_the_built_in_types() -> None:
    assert {"echo", "sleep", "fail"} <= set(load_pipe(None).types)


def test_a_pipe_is_found_in_the_working_folder(folder: Path) -> None:
    (folder / "shop_app.py").write_text(
        "from jobpipe import Jobpipe\nclass A:\n    pipe = Jobpipe('memory://')\npipe = A.pipe\n"
    )
    assert isinstance(load_pipe("shop_app:pipe"), Jobpipe)
    assert load_pipe("shop_app:A.pipe") is load_pipe("shop_app:pipe")


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("app", "must be module:attribute, such as app:pipe"),
        ("app:", "must be module:attribute"),
        (":pipe", "must be module:attribute"),
        ("a b:pipe", "must be module:attribute"),
        ("app.py:pipe", "try app:pipe"),
        ("./some/app.py", "try some.app:pipe"),
        ("no_such_app:pipe", "no 'no_such_app' in"),
        ("json.no_such_app:pipe", "no 'json.no_such_app' in"),
        ("json:pipe", "'json' has no 'pipe'$"),
        ("json:dumps", "is not a Jobpipe but a value of type 'function'"),
    ],
)
def test_a_wrong_name_is_a_clear_line(spec: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said) as caught:
        load_pipe(spec)
    assert str(caught.value).startswith("APP ")


def test_a_wrong_attribute_is_told_the_right_one(folder: Path) -> None:
    (folder / "shop_app.py").write_text("from jobpipe import Jobpipe\npipe = Jobpipe('memory://')\n")
    with pytest.raises(SettingsError, match="try shop_app:pipe"):
        load_pipe("shop_app:app")
    with pytest.raises(SettingsError, match="try shop_app:pipe"):
        load_pipe("shop_app:Jobpipe")


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("import no_such_thing", "ModuleNotFoundError: No module named 'no_such_thing'"),
        ("def f():\n    return 1 / 0\nf()", "ZeroDivisionError"),
        ("x = = 1", "SyntaxError"),
        ("raise SystemExit(3)", "SystemExit: 3"),
    ],
)
def test_an_error_inside_the_module_shows_its_own_traceback(folder: Path, source: str, said: str) -> None:
    (folder / "broken_app.py").write_text(source)
    with pytest.raises(AppBrokenError, match="'broken_app' cannot be imported") as caught:
        load_pipe("broken_app:pipe")
    assert said in caught.value.details
    assert "broken_app.py" in caught.value.details
    assert "loading.py" not in caught.value.details
