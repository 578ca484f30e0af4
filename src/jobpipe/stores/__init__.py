"""The stores, and how one is had for a URL."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points
from types import ModuleType
from typing import TYPE_CHECKING

from ..errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable

    from .base import Store

_BUILT_IN = {
    "memory": ("jobpipe.stores.memory", "open_memory"),
    "sqlite": ("jobpipe.stores.sqlite", "open_sqlite"),
    "postgresql": ("jobpipe.stores.postgres", "open_postgres"),
    "postgres": ("jobpipe.stores.postgres", "open_postgres"),
    "redis": ("jobpipe.stores.redis", "open_redis"),
    "rediss": ("jobpipe.stores.redis", "open_redis"),
    "unix": ("jobpipe.stores.redis", "open_redis"),
    "redis+unix": ("jobpipe.stores.redis", "open_redis"),
}
"""Scheme → where its opener is. Why not imported here: each needs a driver that another does without."""
GROUP = "jobpipe.stores"
"""The entry-point group: the name is the scheme, the object takes the URL and returns a Store."""


def _imported(module: str) -> ModuleType:
    """The module of a store; the extra that brings its driver has the same name."""
    try:
        return import_module(module)
    except ImportError as error:
        if error.name is not None and error.name.startswith("jobpipe"):
            raise
        extra = module.rpartition(".")[2]
        raise SettingsError(
            "JOBPIPE_STORE", f"needs a driver: pip install 'rate-envelope-queue[{extra}]' ({error})"
        ) from error


def open_store(url: str) -> Store:
    """The store at a URL, not yet migrated; SettingsError for a URL that leads to none."""
    scheme = url.partition(":")[0].lower()
    if scheme in _BUILT_IN:
        module, name = _BUILT_IN[scheme]
        opener: Callable[[str], Store] = getattr(_imported(module), name)
        return opener(url)
    for entry in entry_points(group=GROUP, name=scheme):
        opener = entry.load()
        return opener(url)
    known = ", ".join(f"{each}://" for each in _BUILT_IN)
    # Why not more of it: what is no URL may be a password that came to the wrong place.
    given = f"the scheme {scheme!r}" if "://" in url else "no URL"
    raise SettingsError("JOBPIPE_STORE", f"must begin with one of {known}, got {given}")
