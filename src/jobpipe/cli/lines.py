"""Lines: a file of jobs, a JSON object a line, read strictly and in chunks that can be put in at once.

No more of the file than a chunk is ever held. What is wrong with a line is a BadLineError that names file, line and field.
"""

from __future__ import annotations

import os
import stat
import sys
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any, NamedTuple

from msgspec import UNSET

from ..errors import BadInputError, JobpipeError, SettingsError
from ..model.json import MOST_PARTS, BadJsonError, parse
from ..model.request import LARGEST_BATCH, JobRequest, read

LONGEST_LINE = 16 * 1024 * 1024
_MOST_BYTES = 8 * 1024 * 1024
"""Of the lines of a chunk: half of what a service takes at once, as what is sent may be longer than what was read."""
_EXCLUDE_EACH_OTHER = {
    "delay": "run_at",
    "run_at": "delay",
    "expires_in": "expires_at",
    "expires_at": "expires_in",
}


class BadLineError(JobpipeError):
    """A line is wrong; nothing of its chunk was put in."""

    def __init__(self, name: str, number: int, problem: str) -> None:
        super().__init__(f"{name}:{number}: {problem}")


class Line(NamedTuple):
    """A job, and where in the file it is."""

    number: int
    request: JobRequest
    size: int
    end: int
    """Bytes of the file up to its end."""
    parts: int
    """Objects and lists in it, at the most."""


class Source:
    """A file of jobs, and what holds for those of its lines that do not say otherwise."""

    def __init__(self, file: IO[bytes], name: str, defaults: Mapping[str, Any]) -> None:
        self._file = file
        self.name = name
        self._defaults = defaults

    @property
    def size(self) -> int | None:
        """Its bytes, where that can be known before it is read."""
        try:
            found = os.fstat(self._file.fileno())
        except OSError:
            return None
        return found.st_size if stat.S_ISREG(found.st_mode) else None

    def chunks(self) -> Iterator[list[Line]]:
        """The jobs, in order. No chunk has an id twice: whether the second is the same job, the store decides."""
        chunk: list[Line] = []
        ids: set[object] = set()
        size = parts = 0
        for line in self._lines():
            is_full = (
                len(chunk) == LARGEST_BATCH
                or size + line.size > _MOST_BYTES
                or parts + line.parts > MOST_PARTS - 2  # the batch itself is an object with a list
                or line.request.id in ids
            )
            if chunk and is_full:
                yield chunk
                chunk, ids, size, parts = [], set(), 0, 0
            chunk.append(line)
            size += line.size
            parts += line.parts
            if line.request.id is not UNSET:
                ids.add(line.request.id)
        if chunk:
            yield chunk

    def _lines(self) -> Iterator[Line]:
        """The lines that are not blank."""
        number = end = 0
        while raw := self._next(number + 1):
            number += 1
            end += len(raw)
            text = raw.removeprefix(BOM_UTF8) if number == 1 else raw
            if text.strip():
                parts = raw.count(b"[") + raw.count(b"{")
                yield Line(number, self._request(text, number), len(raw), end, parts)

    def _next(self, number: int) -> bytes:
        try:
            raw = self._file.readline(LONGEST_LINE + 1)
        except OSError as error:
            raise JobpipeError(f"{self.name}:{number}: it cannot be read: {error.strerror}") from None
        if len(raw) > LONGEST_LINE:
            raise BadLineError(self.name, number, f"the line is longer than {LONGEST_LINE:,} bytes")
        return raw

    def _request(self, text: bytes, number: int) -> JobRequest:
        try:
            fields = parse(text)
            if not isinstance(fields, dict):
                raise BadLineError(
                    self.name, number, 'the line must be a JSON object, such as {"id": "a", "payload": 1}'
                )
            unused = {_EXCLUDE_EACH_OTHER.get(name) for name in fields}
            defaults = {name: value for name, value in self._defaults.items() if name not in unused}
            return read(defaults | fields)
        except BadJsonError as error:
            problem = str(error).replace("the body", "the line")
            raise BadLineError(self.name, number, problem) from None
        except BadInputError as error:
            raise BadLineError(self.name, number, str(error)) from None


@contextmanager
def open_source(path: str, defaults: Mapping[str, Any]) -> Iterator[Source]:
    """The file, or stdin for `-`; SettingsError for one that cannot be opened, BadInputError for wrong defaults."""
    read(defaults)
    if path == "-":
        yield Source(sys.stdin.buffer, "stdin", defaults)
        return
    try:
        file = open(path, "rb")  # noqa: SIM115 - closed below; here only what goes wrong is of interest
    except OSError as error:
        raise SettingsError("--file", f"cannot be read: {error.strerror}: {path!r}") from None
    with file:
        yield Source(file, path, defaults)
