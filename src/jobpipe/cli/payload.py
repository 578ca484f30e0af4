"""Payload: JSON as somebody has typed it in a shell."""

from __future__ import annotations

from typing import Any

from .guard import fail


def typed_payload(text: str, field: str = "PAYLOAD") -> Any:
    """The value; what is no JSON is told with a hint how to quote it."""
    from ..model.json import BadJsonError, parse

    try:
        return parse(text.encode("utf-8", "surrogateescape"))
    except BadJsonError as error:
        from shlex import quote

        hint = (
            quote(f'"{text}"')
            if len(text) <= 60 and '"' not in text and "\\" not in text
            else '\'{"key": "value"}\''
        )
        problem = str(error).replace("the body", field)
        raise fail(f"{problem}; quote it for JSON and for the shell, such as {hint}", 2) from None
