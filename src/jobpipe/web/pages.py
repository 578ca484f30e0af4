"""Pages: the dashboard and `/docs`, as files of the package. They hold no data, and so need no token.

Every page is the same document: what is shown where is decided in the browser. The files are found under a
name that changes with their content, so that they may be kept for good, and by relative links, so that it does not matter under which
prefix the application is mounted.
"""

from __future__ import annotations

import re
from hashlib import sha256
from importlib.resources import files

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ..model.job import FINISHED, PENDING, TRANSITIONS, JobStatus, Move, sources
from .openapi import own_version
from .problems import NoSuchPathError, answer

_TYPES = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
_VIEWS = re.compile(r"jobs(/[^/]+)?|failed|schedules|limits|workers")
"""What comes after `/ui/`, beside the files: the first segment of each is that of a page of the dashboard."""
_FOR_GOOD = "public, max-age=31536000, immutable"
_ASK_AGAIN = "no-cache"


class Pages:
    """The routes of everything that a browser loads before it asks for data."""

    def __init__(self) -> None:
        folder = files("jobpipe.web").joinpath("dashboard")
        self._files = {each.name: each.read_bytes() for each in folder.iterdir() if _type_of(each.name)}
        digest = sha256(
            b"\0".join(name.encode() + b"\0" + body for name, body in sorted(self._files.items()))
        )
        self._digest = digest.hexdigest()[:16]
        self._meta = msgspec.json.encode(_meta())

    def routes(self) -> list[Route]:
        """For the router; they stand beside the table of calls, being no part of the API."""
        return [
            Route("/", self._dashboard),
            Route("/docs", self._docs),
            Route("/ui/meta.json", self._about),
            Route("/ui/assets/{digest}/{name:path}", self._asset),
            Route("/ui/{view:path}", self._dashboard),
        ]

    @staticmethod
    def has(path: str) -> bool:
        """Is it one of theirs?"""
        return path in ("/", "/docs") or path.startswith("/ui/")

    async def _dashboard(self, request: Request) -> Response:
        view = request.path_params.get("view")
        is_known = view is None or _VIEWS.fullmatch(view) is not None
        return self._document(request, "index.html", view or "", 200 if is_known else 404)

    async def _docs(self, request: Request) -> Response:
        return self._document(request, "docs.html", "", 200)

    def _document(self, request: Request, name: str, view: str, status: int) -> Response:
        # Why up and not from the root: only the browser knows under which prefix it found the page.
        up = "../" * (view.count("/") + 1) if "view" in request.path_params else "./"
        body = self._files[name].replace(b"{root}", up.encode())
        body = body.replace(b"{assets}", f"{up}ui/assets/{self._digest}".encode())
        return _reply(request, body, _TYPES["html"], _ASK_AGAIN, status)

    async def _about(self, request: Request) -> Response:
        return _reply(request, self._meta, "application/json", _ASK_AGAIN)

    async def _asset(self, request: Request) -> Response:
        name, is_current = request.path_params["name"], request.path_params["digest"] == self._digest
        if name not in self._files or not is_current:
            return answer(NoSuchPathError("there is no such file (any more): reload the page"), request.scope)
        return _reply(request, self._files[name], _type_of(name), _FOR_GOOD)


def _type_of(name: str) -> str | None:
    return _TYPES.get(name.rpartition(".")[2])


def _reply(request: Request, body: bytes, media_type: str | None, cache: str, status: int = 200) -> Response:
    tag = f'"{sha256(body).hexdigest()[:16]}"'
    headers = {**_HEADERS, "etag": tag, "cache-control": cache}
    if status == 200 and tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(body, status, headers, media_type)


def _meta() -> dict[str, object]:
    """What the pages have to know of jobs: the one table, and what follows from it."""
    return {
        "version": own_version(),
        "statuses": list(JobStatus),
        "pending": [status for status in JobStatus if status in PENDING],
        "finished": [status for status in JobStatus if status in FINISHED],
        "transitions": TRANSITIONS,
        "actions": {
            "cancel": sources(Move.CANCEL),
            "retry": sources(Move.REVIVE),
            "delete": [status for status in JobStatus if status in FINISHED],
        },
    }
