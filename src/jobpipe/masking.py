"""Masking: what may be said of a URL that holds secrets, in errors, logs and lists."""

from __future__ import annotations

import re

_HIDDEN = "***"
_PARTS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)([^?#]*)(.*)", re.DOTALL)


def masked(url: str) -> str:
    """The URL without user, password, query and fragment; no more than its scheme where these cannot be told."""
    found = _PARTS.fullmatch(url)
    if found is None:
        return _HIDDEN
    scheme, place, path, rest = found.groups()
    if "@" in path + rest:  # a password with a slash that was not escaped looks so
        return f"{scheme}://{_HIDDEN}"
    _, at, host = place.rpartition("@")
    return f"{scheme}://{_HIDDEN if at else ''}{at}{host}{path}{f'?{_HIDDEN}' if rest else ''}"
