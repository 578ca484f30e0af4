"""Place: where in a bigger application this one is mounted, and which of its own paths a call is for.

By ASGI, `root_path` is the prefix and `path` has it too; some servers and frameworks cut it off. Both are understood, in
the way in which Starlette's router does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import Scope


def root_of(scope: Scope) -> str:
    """The prefix under which the application is mounted; empty where it is not."""
    root: str = scope.get("root_path", "")
    return root.rstrip("/")


def path_of(scope: Scope) -> str:
    """The path below the prefix."""
    path: str = scope["path"]
    root: str = scope.get("root_path", "")
    if root and path.startswith(root) and path[len(root) : len(root) + 1] in ("", "/"):
        return path[len(root) :]
    return path
