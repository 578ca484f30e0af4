"""Blame: in which module of a project an error arose while it was loaded."""

from __future__ import annotations

from traceback import walk_tb


def module_at_fault(error: BaseException, otherwise: str) -> str:
    """The module that was being imported when the error arose; of a wrong syntax, its file."""
    if isinstance(error, SyntaxError) and error.filename:
        return error.filename
    imported = [
        frame.f_globals.get("__name__", otherwise)
        for frame, _ in walk_tb(error.__traceback__)
        if frame.f_code.co_name == "<module>"
    ]
    return str(imported[-1]) if imported else otherwise
