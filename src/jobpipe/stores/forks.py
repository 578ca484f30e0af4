"""Forks: what was opened before a process was forked is its parent's, and is refused in the child.

Why no new connections instead: SQLite keeps the state of its locks for the whole process, and a child inherits it. It
may find a lock that nobody will ever let go of, or take one for its own that it does not have.
"""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet


class Inheritable(Protocol):
    """Something that a child process may inherit."""

    def invalidate(self) -> None:
        """Be told, in a child process: what is open here is the parent's. A database must not even be closed."""


_inheritable: WeakSet[Inheritable] = WeakSet()
_kept: list[Inheritable] = []
"""Those of a parent: what nobody refers to any more would be closed."""


def invalidate_after_fork(owner: Inheritable) -> None:
    """Have it told in every process that is forked from now on."""
    _inheritable.add(owner)


def refuse_inherited(name: str) -> None:
    """RuntimeError that says what to do."""
    raise RuntimeError(
        f"{name} was opened before this process was forked, and belongs to its parent: open it after the fork, "
        "or close it before (pipe.close())"
    )


def _forked() -> None:
    _kept.extend(_inheritable)
    for owner in _kept:
        owner.invalidate()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
