"""Where benchmarks put the files of a store: a folder of their own on a real disk, gone when they are done."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_IN_MEMORY = frozenset({"tmpfs", "ramfs"})
_HERE = Path(__file__).parent


@contextmanager
def scratch() -> Iterator[Path]:
    """A new folder; not in memory, where a commit would cost nothing, if that can be helped."""
    with tempfile.TemporaryDirectory(prefix="jobpipe-bench-", dir=_disk()) as folder:
        yield Path(folder)


def _disk() -> Path:
    candidates = [Path(tempfile.gettempdir()), Path("/var/tmp"), _HERE]
    usable = [each for each in candidates if each.is_dir() and os.access(each, os.W_OK)]
    return next((each for each in usable if _file_system(each) not in _IN_MEMORY), usable[0])


def _file_system(path: Path) -> str:
    """The kind of the file system that the path is on; "" where the system does not tell."""
    try:
        lines = Path("/proc/mounts").read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    mounts = {fields[1]: fields[2] for fields in map(str.split, lines)}
    resolved = path.resolve()
    return next((mounts[str(each)] for each in (resolved, *resolved.parents) if str(each) in mounts), "")
