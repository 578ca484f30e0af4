"""Bash: it breaks words at `:`, `@` and `=`, and completes only what follows the last of them, or begins with an `@`.

Ids of jobs have such characters. So the words are put together again before anybody is asked what fits, and of the offers
only the rest is told.
"""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout

_BREAK = re.compile("[:@=]+")
_OPTION = re.compile("^-[^=]*=")


def complete(offer: Callable[[], object]) -> None:
    """What `offer` prints for the words in the environment, as bash needs it."""
    typed = os.environ["COMP_WORDS"].split("\n")[: int(os.environ["COMP_CWORD"]) + 1]
    words, kept = whole(typed)
    os.environ["COMP_WORDS"] = "\n".join(words)
    os.environ["COMP_CWORD"] = str(len(words) - 1)
    offers = io.StringIO()
    try:
        with redirect_stdout(offers):
            offer()
    finally:
        sys.stdout.write("".join(f"{each.removeprefix(kept)}\n" for each in offers.getvalue().splitlines()))


def whole(typed: Sequence[str]) -> tuple[list[str], str]:
    """The words that bash has broken, and the part of the last one's value that it leaves as it is."""
    words: list[str] = []
    kept = ""
    goes_on = False
    for part in typed:
        is_break = _BREAK.fullmatch(part) is not None
        if words and part and (is_break or goes_on):
            kept = words[-1] + (part if is_break else "")
            words[-1] += part
        else:
            words.append(part)
            kept = ""
        goes_on = is_break
    # Why: of an `@`, which might begin the name of a machine, readline makes the first character of what it replaces.
    return words, _OPTION.sub("", kept, count=1).removesuffix("@")
