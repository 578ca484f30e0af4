"""Request and Response: what is sent, what comes back, which request a redirect makes of both, and CallFailed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ...errors import Retry
from ...model.url import Url

MOST_BODY = 65_536
"""Bytes of an answer that are read."""
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_OF_BODY = "content-"


class CallFailed(Retry):
    """There was no answer, or none that says it went well."""

    def __init__(self, message: str, after: float | None = None) -> None:
        super().__init__(after, message)


@dataclass(frozen=True, slots=True)
class Request:
    """A request, complete but for what belongs to its connection."""

    method: str
    url: Url
    own: Mapping[str, str]
    """Headers of the service."""
    given: Mapping[str, str]
    """Those that the job has given, for its origin alone: who can tell which of them are secrets? They win over our own."""
    body: bytes | None

    @property
    def headers(self) -> dict[str, str]:
        """All of them."""
        names = {name.lower() for name in self.given}
        return {name: value for name, value in self.own.items() if name.lower() not in names} | {**self.given}

    def __str__(self) -> str:
        """Without path and query, which may hold secrets: many a webhook is known by its path alone."""
        return f"{self.method} {self.url.origin}"

    def redirected(self, status: int, url: Url) -> Request:
        """The request that follows a redirect, as browsers do it."""
        request = self if url.origin == self.url.origin else replace(self, given={})
        becomes_get = status == 303 or (status in (301, 302) and self.method == "POST")
        if becomes_get and self.method not in ("GET", "HEAD"):
            own, given = _without_body(request.own), _without_body(request.given)
            request = replace(request, method="GET", body=None, own=own, given=given)
        return replace(request, url=url)


def _without_body(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if not name.lower().startswith(_OF_BODY)}


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
