"""The arithmetic of the page on many machines is that of the program."""

from __future__ import annotations

from typing import Any

import pytest

from jobpipe import Jobpipe

from ..test_docs import snippets_of
from .program import ROOT


@pytest.mark.parametrize("lease", [0.2, 1, 3, 10, 30, 600])
def test_leases_are_renewed_and_looked_for_as_the_page_says(lease: float) -> None:
    page: dict[str, Any] = {}
    for snippet in snippets_of(ROOT / "docs" / "jobpipe" / "many_machines.md"):
        if snippet.info == "python":
            exec(snippet.code, page)
    pipe = Jobpipe("memory://", lease=lease)
    try:
        tasks = pipe.make_service(workers=0).maintenance(pipe.store)._tasks
        every = {task.do.__name__: task.every for task in tasks}
    finally:
        pipe.close()
    assert every["_extend"] == page["renewed_every"](lease)
    longest = page["looked_for_every"](lease)
    assert 0.8 * longest <= every["_rescue"] <= longest
