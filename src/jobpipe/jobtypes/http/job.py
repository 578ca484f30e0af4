"""HttpJob: the handler of the type `http`; what its payload may say, and what comes of an answer.

The call itself is made in a thread of its own, which ends when the run is broken off.
"""

from __future__ import annotations

import asyncio
import codecs
import re
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from functools import cached_property
from math import isinf
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from ...errors import BadInputError
from ...model.outcome import Hopeless
from ...model.url import BadUrlError, Targets, Url, read_url
from ..current import current_job
from .guard import FIELD, SETTING, TargetGuard
from .network import Network
from .patience import patience
from .request import MOST_BODY, CallFailed, Request, Response

T = TypeVar("T")

NAME = "http"
DEADLINE = 30.0
"""Seconds that a call may take, where the job does not say."""
_LATER = 1.0
"""Seconds after its deadline that a call would give up by itself: the run is to be broken off before."""
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
_SHOWN_OF_BODY = 200
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
_HEADER_VALUE = re.compile(r"[\x20-\x7e\t]*")
_OWN_HEADERS = frozenset(
    {
        *("host", "content-length", "transfer-encoding", "connection", "keep-alive", "te", "trailer"),
        *("upgrade", "expect", "proxy-connection", "proxy-authorization", "accept-encoding"),
    }
)
"""Headers that belong to the connection, and so to the service."""


class HttpCall(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The payload."""

    url: str
    method: str = "POST"
    headers: dict[str, str] = {}
    body: Any = None
    """A string is sent as it is, null is no body, all else is sent as JSON."""


class HttpAnswer(Struct, frozen=True, kw_only=True):
    """The result."""

    status: int
    body: str


class HttpJob:
    """Calls a URL for a job, if it is one of the targets."""

    def __init__(self, targets: Callable[[], Iterable[str]], network: Network | None = None) -> None:
        self._targets = targets  # Why called late: settings are read when a pipe is first used
        self._network = Network() if network is None else network

    @property
    def is_on(self) -> bool:
        """May anything be called?"""
        return bool(self._targets())

    @cached_property
    def _guard(self) -> TargetGuard:
        targets = Targets(self._targets())
        if not targets:
            raise BadInputError(
                "type",
                f"{NAME!r} is off: {SETTING} must list the origins that may be called, such as https://api.example.com",
            )
        return TargetGuard(targets, self._network.resolve)

    def check(self, call: HttpCall) -> None:
        """BadInputError naming the field, for a call that is refused without looking any name up."""
        guard = self._guard
        if call.method not in METHODS:
            raise BadInputError(
                "payload.method", f"must be one of {', '.join(METHODS)}, got {call.method[:40]!a}"
            )
        guard.check(_url(call))
        _check_headers(call.headers)

    async def __call__(self, call: HttpCall) -> HttpAnswer:
        """OutgoingCall the URL, and return what it answered; CallFailed unless that is a 2xx."""
        from .call import OutgoingCall  # Why here: who only enqueues needs no HTTP client

        job = current_job()
        remaining = job.context.remaining()
        request = _request(call, job.id)
        try:
            timeout = DEADLINE if isinf(remaining) else remaining + _LATER
            under_way = OutgoingCall(self._guard, self._network, timeout)
            response = await _in_thread(lambda: under_way.run(request), under_way.break_off)
        except BadInputError as error:
            raise Hopeless from error
        if not 200 <= response.status < 300:
            message = f"{request} answered {response.status}{_beginning(response)}"
            raise CallFailed(message, patience(response.retry_after, time.time()))
        return HttpAnswer(status=response.status, body=_text(response.body))


def _url(call: HttpCall) -> Url:
    try:
        return read_url(call.url)
    except BadUrlError as error:
        raise BadInputError(FIELD, str(error)) from None


def _check_headers(headers: dict[str, str]) -> None:
    seen: set[str] = set()
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name):
            raise BadInputError("payload.headers", f"has an invalid header name: {name[:40]!a}")
        field = f"payload.headers.{name}"
        if name.lower() in _OWN_HEADERS:
            raise BadInputError(field, "cannot be set: the service sets it itself, or never sends it")
        if name.lower() in seen:
            raise BadInputError(field, "appears twice, in different spellings")
        seen.add(name.lower())
        if not _HEADER_VALUE.fullmatch(value):
            raise BadInputError(field, "must be one line of printable ASCII characters")


def _request(call: HttpCall, job_id: str) -> Request:
    headers = {"User-Agent": "jobpipe", "Idempotency-Key": job_id}
    body: bytes | None = None
    if isinstance(call.body, str):
        body = call.body.encode()
        headers["Content-Type"] = "text/plain; charset=utf-8"
    elif call.body is not None:
        body = msgspec.json.encode(call.body)
        headers["Content-Type"] = "application/json"
    return Request(call.method, _url(call), headers, call.headers, body)


def _text(body: bytes) -> str:
    """The body as text that every store can keep; a character that was cut in two is left out."""
    is_whole = len(body) < MOST_BODY
    text = codecs.getincrementaldecoder("utf-8")("replace").decode(body, is_whole)
    return text.replace("\x00", "\ufffd")


def _beginning(response: Response) -> str:
    text = " ".join(_text(response.body).split())
    shown = text if len(text) <= _SHOWN_OF_BODY else f"{text[:_SHOWN_OF_BODY]}…"
    return f": {shown}" if shown else ""


async def _in_thread(call: Callable[[], T], break_off: Callable[[], None]) -> T:
    """What the call returns or raises. Why a thread of its own: it is not waited for once it is broken off."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    outcome: Future[T] = Future()

    def work() -> None:
        try:
            outcome.set_result(call())
        except BaseException as error:
            outcome.set_exception(error)
        try:
            loop.call_soon_threadsafe(ended.set)
        except RuntimeError:
            pass  # the loop has ended

    threading.Thread(target=work, name="jobpipe-http", daemon=True).start()
    try:
        await ended.wait()
    finally:
        if not outcome.done():
            break_off()
    return outcome.result()
