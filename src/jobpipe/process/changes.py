"""Changes: which file of a program has changed, found by looking at all of them; for development."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

_SKIPPED = frozenset({"__pycache__", "node_modules"})


class Changes:
    """The Python files in a folder and below, and its `.env`; not those of hidden folders and environments."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen = dict(self._stamps())

    def next(self) -> str | None:
        """A file that was changed, added or removed since the last time; None if there is none."""
        found = dict(self._stamps())
        seen, self._seen = self._seen, found
        changed = {path for path, _ in seen.items() ^ found.items()}
        return min(changed, default=None)

    def _stamps(self) -> Iterator[tuple[str, tuple[int, int]]]:
        for place, folders, names in os.walk(self._folder):
            if "pyvenv.cfg" in names:
                folders.clear()
                continue
            folders[:] = [each for each in folders if not each.startswith(".") and each not in _SKIPPED]
            for name in names:
                if name.endswith(".py") or name == ".env":
                    path = os.path.join(place, name)
                    try:
                        about = os.stat(path)
                    except OSError:
                        continue  # gone meanwhile
                    yield path, (about.st_mtime_ns, about.st_size)
