"""ServiceTarget: the jobs of a running service, over HTTP.

The service checks what it is sent and says in problem details what is wrong; here they become the errors that the
store's way raises, so that a command need not know which way it went.
"""

from __future__ import annotations

from collections.abc import Mapping
from http.client import HTTPException
from typing import Any, Self, TypeVar
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import ProxyHandler, Request, build_opener

import msgspec

from ..errors import BadInputError, JobpipeError, SettingsError
from ..explain import Explanation
from ..job import Job, JobStatus
from ..settings import Settings
from ..stores.base import Receipt
from ..timetable import ScheduleInfo
from ..views import JobPage, QueueInfo
from .target import Target

T = TypeVar("T")

_PATIENCE = 30.0
"""Seconds for an answer, beyond those that were asked for."""


class _Problem(msgspec.Struct):
    """What the service says is wrong."""

    detail: str = "it gave no reason"
    field: str | None = None


class ServiceTarget(Target):
    """The jobs of a service."""

    def __init__(self, url: str, token: str | None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.netloc or parts.username is not None:
            raise SettingsError(
                "--url", f"must be the address of a service, as http://localhost:8080 is, got {url!r}"
            )
        self._url = url.rstrip("/")
        self._token = token or Settings.load().token
        # Why no proxies: the service is where the URL says, and the token is for nobody between.
        self._opener = build_opener(ProxyHandler({}))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._opener.close()

    def enqueue(self, type: str, payload: Any, **options: Any) -> Receipt:
        fields = {"type": type, "payload": payload} | _given(options)
        status, body = self._call("POST", "/enqueue", fields)
        found = msgspec.json.decode(body, type=dict[str, Any])
        return Receipt(found["id"], JobStatus(found["status"]), status == 202)

    def page(self, limit: int, cursor: str | None, **filters: str | None) -> JobPage:
        query = urlencode({"limit": limit} | _given({"cursor": cursor, **filters}))
        return self._get(f"/jobs?{query}", JobPage)

    def job(self, id: str) -> Job:
        return self._get(_path("jobs", id), Job)

    def job_within(self, id: str, seconds: float) -> Job:
        return self._get(f"{_path('jobs', id)}/wait?timeout={seconds}", Job, seconds)

    def explain(self, id: str) -> Explanation:
        return self._get(f"{_path('jobs', id)}/explain", Explanation)

    def schedules(self) -> list[ScheduleInfo]:
        return self._get("/schedules", dict[str, list[ScheduleInfo]])["schedules"]

    def steer(self, verb: str, id: str) -> Job:
        return msgspec.json.decode(self._call("POST", f"{_path('jobs', id)}/{verb}")[1], type=Job)

    def steer_many(self, verb: str, **filters: str | None) -> int:
        chosen = _given(filters) or {"all": True}
        return msgspec.json.decode(self._call("POST", f"/jobs/{verb}", chosen)[1], type=dict[str, int])[
            "count"
        ]

    def hold(self, verb: str, queue: str) -> QueueInfo:
        return msgspec.json.decode(self._call("POST", f"{_path('queues', queue)}/{verb}")[1], type=QueueInfo)

    def _get(self, path: str, type: type[T], seconds: float = 0.0) -> T:
        return msgspec.json.decode(self._call("GET", path, seconds=seconds)[1], type=type)

    def _call(self, method: str, path: str, fields: Any = None, seconds: float = 0.0) -> tuple[int, bytes]:
        """The status and the body of the answer; what the service refuses is raised."""
        headers = {"Accept": "application/json"}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        data = None
        if fields is not None:
            headers["Content-Type"] = "application/json"
            data = msgspec.json.encode(fields)
        request = Request(self._url + path, data, headers, method=method)  # noqa: S310 - checked to be HTTP
        try:
            with self._opener.open(request, timeout=seconds + _PATIENCE) as answer:
                return answer.status, answer.read()
        except HTTPError as error:
            raise _refusal(error) from None
        except (URLError, HTTPException, OSError) as error:
            reason = error.reason if isinstance(error, URLError) else error
            raise JobpipeError(f"the service at {self._url} cannot be reached: {reason}") from None


def _refusal(error: HTTPError) -> JobpipeError:
    try:
        problem = msgspec.json.decode(error.read(), type=_Problem)
    except (msgspec.DecodeError, OSError):
        problem = _Problem(f"the service answered {error.code} {error.reason}")
    if problem.field is not None:
        return BadInputError(problem.field, problem.detail.removeprefix(problem.field).strip())
    return JobpipeError(problem.detail)


def _path(kind: str, name: str) -> str:
    return f"/{kind}/{quote(name, safe='')}"


def _given(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
