"""ServiceTarget: the jobs of a running service, over HTTP.

The service checks what it is sent and says in problem details what is wrong; here they become the errors that the
store's way raises, so that a command need not know which way it went.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http.client import HTTPException
from socket import gaierror
from typing import Any, NamedTuple, Self, TypeVar
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

import msgspec

from ..errors import BadInputError, JobpipeError, SettingsError
from ..gateway.explain import Explanation
from ..gateway.history import Past
from ..gateway.timetable import ScheduleInfo
from ..gateway.views import JobPage, QueueInfo, Stats, Worker
from ..model import json
from ..model.job import Job, JobStatus
from ..model.newjob import Receipt
from ..model.request import JobRequest
from ..model.text import counted, masked
from ..settings import Settings
from .target import Intake, RefusedError, Target

T = TypeVar("T")

_PATIENCE = 30.0
_HINTS = {
    "no-token": "pass the service's token with --token or JOBPIPE_TOKEN",
    "read-only-token": "pass the token that allows writing with --token or JOBPIPE_TOKEN",
}
"""What the caller can do, by the kind of problem."""


class _Problem(msgspec.Struct):
    """What the service says is wrong."""

    detail: str
    field: str | None = None
    type: str = ""


class _Accepted(msgspec.Struct):
    """A job that is in; of one that was there already, the service tells more."""

    id: str
    status: JobStatus


class _Answer(NamedTuple):
    """What the service said."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class _NoRedirects(HTTPRedirectHandler):
    """Why: the token is for the service that the URL names, and for nobody whom it may name."""

    def redirect_request(self, *_: Any) -> None:
        return None


class ServiceTarget(Target):
    """The jobs of a service; `patience` is how many seconds an answer may take, beyond those that were asked for."""

    def __init__(self, url: str, token: str | None, patience: float = _PATIENCE) -> None:
        if not _is_address(url):
            got = masked(url) if "@" in url or "?" in url or "://" in url else repr(url)
            raise SettingsError(
                "--url", f"must be the URL of a service, such as http://localhost:8080, got {got}"
            )
        self._url = url.rstrip("/")
        self._patience = patience
        self._token = token or Settings.load().token
        # Why no proxies: the service is where the URL says, and the token is for nobody between.
        self._opener = build_opener(ProxyHandler({}), _NoRedirects)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._opener.close()

    def enqueue(self, type: str, payload: Any, **options: Any) -> Receipt:
        json.encode(payload)  # what no service takes is not sent
        answer = self._call("POST", "/enqueue", {"type": type, "payload": payload} | _given(options))
        return self._receipt(answer)

    def enqueue_many(self, requests: Sequence[JobRequest]) -> Intake:
        for index, request in enumerate(requests):
            json.encode(request.payload, f"jobs[{index}].payload")
        answer = self._call("POST", "/enqueue/batch", {"jobs": requests})
        ids = [job.id for job in self._read(answer, dict[str, list[_Accepted]])["jobs"]]
        return Intake(ids, int(answer.headers.get("jobpipe-new", len(ids) if answer.status == 202 else 0)))

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

    def schedule(self, name: str) -> ScheduleInfo:
        return self._get(_path("schedules", name), ScheduleInfo)

    def put_schedule(self, name: str, fields: Mapping[str, Any]) -> ScheduleInfo:
        json.encode(fields.get("payload"))
        return self._read(self._call("PUT", _path("schedules", name), fields), ScheduleInfo)

    def run_schedule(self, name: str) -> Receipt:
        return self._receipt(self._call("POST", f"{_path('schedules', name)}/run"))

    def hold_schedule(self, verb: str, name: str) -> ScheduleInfo:
        return self._read(self._call("POST", f"{_path('schedules', name)}/{verb}"), ScheduleInfo)

    def drop_schedule(self, name: str) -> None:
        self._call("DELETE", _path("schedules", name))

    def manage(self, verb: str, id: str) -> Job:
        return self._read(self._call("POST", f"{_path('jobs', id)}/{verb}"), Job)

    def delete(self, id: str) -> str:
        self._call("DELETE", _path("jobs", id))
        return id

    def manage_many(self, verb: str, **filters: str | None) -> int:
        chosen = _given(filters) or {"all": True}
        return self._read(self._call("POST", f"/jobs/{verb}", chosen), dict[str, int])["count"]

    def hold(self, verb: str, queue: str) -> QueueInfo:
        return self._read(self._call("POST", f"{_path('queues', queue)}/{verb}"), QueueInfo)

    def stats(self) -> Stats:
        """How many jobs there are, and how fast they go."""
        return self._get("/stats", Stats)

    def queues(self) -> list[QueueInfo]:
        """All queues, by name."""
        return self._get("/queues", dict[str, list[QueueInfo]])["queues"]

    def workers(self) -> list[Worker]:
        """The processes that run jobs, by name."""
        return self._get("/workers", dict[str, list[Worker]])["workers"]

    def past(self) -> Past:
        """The last minutes, second by second."""
        return self._get("/stats/history", Past)

    def _receipt(self, answer: _Answer) -> Receipt:
        accepted = self._read(answer, _Accepted)
        return Receipt(accepted.id, accepted.status, answer.status == 202)

    def _get(self, path: str, type: type[T], seconds: float = 0.0) -> T:
        return self._read(self._call("GET", path, seconds=seconds), type)

    def _read(self, answer: _Answer, type: type[T]) -> T:
        try:
            return msgspec.json.decode(answer.body, type=type)
        except msgspec.DecodeError:
            raise JobpipeError(
                f"the server at {self._url} is not a jobpipe service, or has another version"
            ) from None

    def check(self) -> tuple[str, list[str]]:
        self._call("GET", "/readyz")
        stats = self.stats()
        queued = counted(stats.queued, "job", "is queued", "are queued")
        waiting = f"{queued}, {stats.scheduled:,} scheduled, {stats.running:,} running"
        return self._url, ["ready: the service has started and its store answers", waiting]

    def _call(self, method: str, path: str, fields: Any = None, seconds: float = 0.0) -> _Answer:
        """The answer; what the service refuses is raised."""
        headers = {"Accept": "application/json"}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        data = None
        if fields is not None:
            headers["Content-Type"] = "application/json"
            data = msgspec.json.encode(fields)
        request = Request(self._url + path, data, headers, method=method)  # noqa: S310 - checked to be HTTP
        try:
            with self._opener.open(request, timeout=seconds + self._patience) as answer:
                return _Answer(answer.status, answer.headers, answer.read())
        except HTTPError as error:
            raise self._refusal(error) from None
        except (URLError, HTTPException, OSError) as error:
            reason = error.reason if isinstance(error, URLError) else error
            text = f"the service at {self._url} cannot be reached: {reason}"
            if isinstance(reason, ConnectionRefusedError | gaierror):
                raise RefusedError(text, 0, "away") from None
            raise JobpipeError(text) from None  # Why no RefusedError: it may have heard us

    def _refusal(self, error: HTTPError) -> JobpipeError:
        try:
            problem = msgspec.json.decode(error.read(), type=_Problem)
        except (msgspec.DecodeError, HTTPException, OSError):
            text = f"the server at {self._url} answered {error.code} {error.reason}: is it a jobpipe service?"
            return JobpipeError(text)
        if problem.field is not None:
            return BadInputError(problem.field, problem.detail.removeprefix(problem.field).strip())
        slug = problem.type.rpartition(":")[2]
        if error.code >= 500 and slug != "queue-full":
            return JobpipeError(problem.detail)  # Why no RefusedError: whether it was done, nobody knows
        text = f"the service at {self._url} refuses: {problem.detail}" if slug in _HINTS else problem.detail
        return RefusedError("; ".join(filter(None, [text, _HINTS.get(slug)])), error.code, slug)


def _is_address(url: str) -> bool:
    """Of a service: without a user, whose password would be in every error, and without a query."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    is_plain = "@" not in parts.netloc and not parts.query and not parts.fragment
    return parts.scheme in ("http", "https") and bool(parts.netloc) and is_plain


def _path(kind: str, name: str) -> str:
    return f"/{kind}/{quote(name, safe='')}"


def _given(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
