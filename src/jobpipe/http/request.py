"""Request and Response: what is sent, what comes back, and which request a redirect makes of both."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from ..url import Url

MOST_BODY = 65_536
"""Bytes of an answer that are read."""
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_SECRET = frozenset({"authorization", "cookie"})
"""Headers that are for one origin alone."""
_OF_BODY = "content-"


@dataclass(frozen=True, slots=True)
class Request:
    """A request, complete but for what belongs to its connection."""

    method: str
    url: Url
    headers: Mapping[str, str]
    body: bytes | None

    def __str__(self) -> str:
        """Without path and query, which may hold secrets: many a webhook is known by its path alone."""
        return f"{self.method} {self.url.origin}"

    def redirected(self, status: int, url: Url) -> Request:
        """The request that follows a redirect, as browsers do it."""
        request = self if url.origin == self.url.origin else self._without(lambda name: name in _SECRET)
        becomes_get = status == 303 or (status in (301, 302) and self.method == "POST")
        if becomes_get and self.method not in ("GET", "HEAD"):
            request = request._without(lambda name: name.startswith(_OF_BODY))
            request = replace(request, method="GET", body=None)
        return replace(request, url=url)

    def _without(self, is_dropped: Callable[[str], bool]) -> Request:
        kept = {name: value for name, value in self.headers.items() if not is_dropped(name.lower())}
        return replace(self, headers=kept)


@dataclass(frozen=True, slots=True)
class Response:
    """What a server answered, as far as it was read."""

    status: int
    location: str | None
    retry_after: str | None
    body: bytes

    @property
    def is_redirect(self) -> bool:
        return self.status in _REDIRECTS and self.location is not None
