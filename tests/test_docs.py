"""The documentation holds: its snippets run, its links lead somewhere, and it names everything public.

Run as a program, it renews the state diagram in docs/explanation.md.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import rate_envelope_queue
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

ROOT = Path(__file__).parent.parent
DOCS = sorted((ROOT / "docs").rglob("*.md"))
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *DOCS]
REFERENCE = ROOT / "docs" / "reference.md"
EXPLANATION = ROOT / "docs" / "explanation.md"

_FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<code>.*?)^```$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")
_HEADING = re.compile(r"^#+ +(?P<title>.+)$", re.MULTILINE)
_DIAGRAM = re.compile(r"(?<=-->\n```mermaid\n).*?(?=```\n<!-- /states -->)", re.DOTALL)
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


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_snippets_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The Python of a page runs from top to bottom, in one namespace."""
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": "snippets"}
    for snippet in snippets_of(page):
        if snippet.info == "python":
            # Why the empty lines: a traceback then shows the line of the page.
            code = compile("\n" * (snippet.line - 1) + snippet.code, str(page), "exec")
            exec(code, namespace)


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


def state_diagram() -> str:
    """The transition table as a Mermaid diagram: one arrow for each pair of states, with all its events."""
    arrows: dict[tuple[QueueState, QueueState], list[str]] = {}
    for (before, event), after in TRANSITIONS.items():
        arrows.setdefault((before, after), []).append(event.value)
    lines = [
        f"    {before.name} --> {after.name}: {', '.join(events)}"
        for (before, after), events in arrows.items()
    ]
    return "\n".join(["stateDiagram-v2", f"    [*] --> {QueueState.INIT.name}", *lines, ""])


def test_state_diagram_is_that_of_the_code() -> None:
    """The picture in the explanation is made from the transition table."""
    shown = _DIAGRAM.findall(EXPLANATION.read_text(encoding="utf-8"))
    assert shown == [state_diagram()], (
        "docs/explanation.md shows other states: renew it with `.venv/bin/python tests/test_docs.py`"
    )


if __name__ == "__main__":
    text = EXPLANATION.read_text(encoding="utf-8")
    EXPLANATION.write_text(_DIAGRAM.sub(lambda _: state_diagram(), text), encoding="utf-8")
