"""Targets: the origins that `http` jobs may call, as the setting JOBPIPE_HTTP_TARGETS lists them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .url import BadUrlError, Origin, read_url

_WILD = "*."


@dataclass(frozen=True, slots=True)
class Target:
    """An origin, or all those whose host is below its host."""

    origin: Origin
    is_wild: bool

    def allows(self, origin: Origin) -> bool:
        """Is it this origin, or one of these?"""
        if not self.is_wild:
            return origin == self.origin
        is_below = origin.host.endswith(f".{self.origin.host}")
        return is_below and (origin.scheme, origin.port) == (self.origin.scheme, self.origin.port)


class Targets:
    """A list of targets; false while it is empty."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._targets = [read_target(text) for text in texts]

    def __bool__(self) -> bool:
        return bool(self._targets)

    def allow(self, origin: Origin) -> bool:
        """Is the origin on the list?"""
        return any(target.allows(origin) for target in self._targets)


def read_target(text: str) -> Target:
    """The target that an entry of the list names; BadUrlError."""
    scheme, separator, rest = text.partition("://")
    if any(sign in rest for sign in "/?#"):
        raise BadUrlError("must end after host and port")
    is_wild = rest.startswith(_WILD)
    origin = read_url(f"{scheme}{separator}{rest.removeprefix(_WILD)}").origin
    if is_wild and origin.address is not None:
        raise BadUrlError("has a * before an address: only names have others below them")
    return Target(origin, is_wild)
