"""Client: the verbs over httpx, each as a coroutine and, with `_sync`, for any thread.

It holds a pool of connections for threads and one for each event loop, all opened when they are first needed. No redirect is
followed and no proxy of the environment used: the token is for the service at the URL and for nobody else.
"""

from __future__ import annotations

import asyncio
import ssl
import threading
import time
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any, Generic, ParamSpec, Self, TypeVar
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

import httpx

from ..errors import BadInputError, SettingsError, seconds_of
from ..model.text import masked
from ..stores.forks import invalidate_after_fork
from . import verbs
from .call import Answer, Attempt, Failure, Pause, Verb
from .trying import Trying

P = ParamSpec("P")
T = TypeVar("T")

_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol)


class _Line:
    """The way to one service: what makes attempts, blocking or not."""

    def __init__(
        self,
        trying: Trying,
        headers: dict[str, str],
        verify: ssl.SSLContext | bool,
        inject: Callable[[dict[str, str]], None],
    ) -> None:
        self._trying = trying
        self._inject = inject
        self._options: dict[str, Any] = {"headers": headers, "verify": verify, "trust_env": False}
        self._lock = threading.Lock()
        self._client: httpx.Client | None = None
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, httpx.AsyncClient] = WeakKeyDictionary()
        self._inherited: list[object] = []
        invalidate_after_fork(self)

    def run(self, verb: Verb[T]) -> T:
        """What the verb comes to; blocks."""
        steps = self._trying.run(verb)
        came: Answer | Failure | None = None
        while True:
            try:
                step = steps.send(came)
            except StopIteration as end:
                result: T = end.value
                return result
            came = _pause(step) if isinstance(step, Pause) else self._send(step)

    async def run_async(self, verb: Verb[T]) -> T:
        """What the verb comes to."""
        steps = self._trying.run(verb)
        came: Answer | Failure | None = None
        while True:
            try:
                step = steps.send(came)
            except StopIteration as end:
                result: T = end.value
                return result
            came = await (asyncio.sleep(step.seconds) if isinstance(step, Pause) else self._asend(step))

    def _send(self, attempt: Attempt) -> Answer | Failure:
        with self._lock:
            client = self._client = self._client or httpx.Client(**self._options)
        try:
            return _answer(client.request(**self._request(attempt)))
        except (httpx.RequestError, httpx.InvalidURL) as error:
            return _failure(error, attempt)

    async def _asend(self, attempt: Attempt) -> Answer | Failure:
        loop = asyncio.get_running_loop()
        with self._lock:
            client = self._clients.get(loop)
            if client is None:
                client = self._clients[loop] = httpx.AsyncClient(**self._options)
        try:
            return _answer(await client.request(**self._request(attempt)))
        except (httpx.RequestError, httpx.InvalidURL) as error:
            return _failure(error, attempt)

    def _request(self, attempt: Attempt) -> dict[str, Any]:
        call = attempt.call
        headers = {} if call.body is None else {"content-type": "application/json"}
        self._inject(headers)
        return {
            "method": call.method,
            "url": self._trying.url + call.path,
            "content": call.body,
            "headers": headers,
            "timeout": attempt.timeout,
            "follow_redirects": False,
        }

    def close(self) -> None:
        """Close all connections; those of another event loop by that loop, if it still runs."""
        with self._lock:
            client, self._client = self._client, None
            others = [*self._clients.items()]
            self._clients.clear()
        if client is not None:
            client.close()
        for loop, each in others:
            if loop.is_running():
                asyncio.run_coroutine_threadsafe(each.aclose(), loop)

    async def aclose(self) -> None:
        """Close all connections; those of this event loop when it returns."""
        with self._lock:
            client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.aclose()
        self.close()

    def invalidate(self) -> None:
        """In a child process after a fork: the connections are its parent's."""
        self._inherited += [self._client, *self._clients.values()]
        self._client, self._clients, self._lock = None, WeakKeyDictionary(), threading.Lock()


def _pause(pause: Pause) -> Any:
    time.sleep(pause.seconds)


def _answer(response: httpx.Response) -> Answer:
    return Answer(response.status_code, response.headers, response.content)


def _failure(error: httpx.RequestError | httpx.InvalidURL, attempt: Attempt) -> Failure:
    reason = str(error) or type(error).__name__
    if isinstance(error, httpx.TimeoutException):
        reason = f"timed out after {attempt.timeout:.3g} s"
    return Failure(reason, may_have_arrived=not isinstance(error, (*_NEVER_SENT, httpx.InvalidURL)))


class _Method(Generic[P, T]):
    """A verb as a method of whatever has a line."""

    def __init__(self, verb: Callable[P, Verb[T]]) -> None:
        self._verb = verb
        self.__doc__ = verb.__doc__


class _Coroutine(_Method[P, T]):
    """One that is a coroutine."""

    def __get__(self, owner: _Liner, _: object = None) -> Callable[P, Coroutine[Any, Any, T]]:
        def call(*args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, T]:
            return owner._line.run_async(self._verb(*args, **kwargs))

        return call


class _Blocking(_Method[P, T]):
    """One that blocks."""

    def __get__(self, owner: _Liner, _: object = None) -> Callable[P, T]:
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            return owner._line.run(self._verb(*args, **kwargs))

        return call


class _Liner:
    """What has a line."""

    _line: _Line


class ClientSchedules(_Liner):
    """The schedules of a service; the names are those of `Jobpipe.schedules`."""

    def __init__(self, line: _Line) -> None:
        self._line = line

    put, put_sync = _Coroutine(verbs.put_schedule), _Blocking(verbs.put_schedule)
    all, all_sync = _Coroutine(verbs.all_schedules), _Blocking(verbs.all_schedules)
    get, get_sync = _Coroutine(verbs.get_schedule), _Blocking(verbs.get_schedule)
    drop, drop_sync = _Coroutine(verbs.drop_schedule), _Blocking(verbs.drop_schedule)
    pause, pause_sync = _Coroutine(verbs.pause_schedule), _Blocking(verbs.pause_schedule)
    resume, resume_sync = _Coroutine(verbs.resume_schedule), _Blocking(verbs.resume_schedule)
    run, run_sync = _Coroutine(verbs.run_schedule), _Blocking(verbs.run_schedule)


class Client(_Liner):
    """The jobs of a running service, with the names of `Jobpipe`: coroutines, and with `_sync` for any thread.

    A call fails after `patience` seconds at the latest. Until then reads, `enqueue` and `signal` are repeated where no answer
    came or the service asks to try again later; with `retries=False` every call is sent once. `verify` is the context that
    checks the service's certificate, by default with the authorities of the system. With `tracing`, calls carry the trace of
    the caller, for which the extra `opentelemetry` is needed. Use it in `with` or `async with`, or call `close`.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        patience: float | timedelta = 30.0,
        retries: bool = True,
        verify: ssl.SSLContext | None = None,
        tracing: bool = False,
    ) -> None:
        self.url = _checked_url(url)
        headers = {"accept": "application/json"}
        if token is not None:
            headers["authorization"] = f"Bearer {_checked_token(token)}"
        wanted = seconds_of("patience", patience)
        trying = Trying(url=self.url, patience=wanted, has_retries=retries, now=time.monotonic)
        is_tls = self.url.startswith("https:")
        # Why made here: httpx brings authorities of its own, and an internal service has one of its own.
        context = verify or (ssl.create_default_context() if is_tls else False)
        self._line = _Line(trying, headers, context, _injector() if tracing else lambda _: None)
        self.schedules = ClientSchedules(self._line)
        """The schedules of the service."""

    def __repr__(self) -> str:
        return f"Client({self.url!r})"

    enqueue, enqueue_sync = _Coroutine(verbs.enqueue), _Blocking(verbs.enqueue)
    enqueue_many, enqueue_many_sync = _Coroutine(verbs.enqueue_many), _Blocking(verbs.enqueue_many)

    get, get_sync = _Coroutine(verbs.get), _Blocking(verbs.get)
    steps, steps_sync = _Coroutine(verbs.steps), _Blocking(verbs.steps)
    logs, logs_sync = _Coroutine(verbs.logs), _Blocking(verbs.logs)
    page, page_sync = _Coroutine(verbs.page), _Blocking(verbs.page)
    failures, failures_sync = _Coroutine(verbs.failures), _Blocking(verbs.failures)
    wait, wait_sync = _Coroutine(verbs.wait), _Blocking(verbs.wait)
    explain, explain_sync = _Coroutine(verbs.explain), _Blocking(verbs.explain)
    stats, stats_sync = _Coroutine(verbs.stats), _Blocking(verbs.stats)
    history, history_sync = _Coroutine(verbs.history), _Blocking(verbs.history)
    queues, queues_sync = _Coroutine(verbs.queues), _Blocking(verbs.queues)
    limits, limits_sync = _Coroutine(verbs.limits), _Blocking(verbs.limits)
    workers, workers_sync = _Coroutine(verbs.workers), _Blocking(verbs.workers)
    check, check_sync = _Coroutine(verbs.check), _Blocking(verbs.check)

    cancel, cancel_sync = _Coroutine(verbs.cancel), _Blocking(verbs.cancel)
    signal, signal_sync = _Coroutine(verbs.signal), _Blocking(verbs.signal)
    retry, retry_sync = _Coroutine(verbs.retry), _Blocking(verbs.retry)
    delete, delete_sync = _Coroutine(verbs.delete), _Blocking(verbs.delete)
    cancel_many, cancel_many_sync = _Coroutine(verbs.cancel_many), _Blocking(verbs.cancel_many)
    retry_many, retry_many_sync = _Coroutine(verbs.retry_many), _Blocking(verbs.retry_many)
    delete_many, delete_many_sync = _Coroutine(verbs.delete_many), _Blocking(verbs.delete_many)
    pause, pause_sync = _Coroutine(verbs.pause), _Blocking(verbs.pause)
    resume, resume_sync = _Coroutine(verbs.resume), _Blocking(verbs.resume)

    def close(self) -> None:
        """Close the connections; the next call opens others. In a coroutine, `await aclose()` waits for that."""
        self._line.close()

    async def aclose(self) -> None:
        """Close the connections, those of this event loop before it returns."""
        await self._line.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def _injector() -> Callable[[dict[str, str]], None]:
    """Puts the current span into the headers of a call; SettingsError without OpenTelemetry."""
    from ..gateway.tracing import Tracing  # Why here: it needs OpenTelemetry

    return Tracing().inject


def _checked_url(url: str) -> str:
    """Without a slash at its end; SettingsError for what leads to no service, or holds a secret that errors would show."""
    try:
        parts = urlsplit(url)
        is_plain = "@" not in parts.netloc and not parts.query and not parts.fragment
        if parts.scheme in ("http", "https") and is_plain and httpx.URL(url).host:
            return url.rstrip("/")
    except (ValueError, TypeError, AttributeError, httpx.InvalidURL):
        pass
    got = (
        masked(url) if isinstance(url, str) and any(mark in url for mark in ("@", "?", "://")) else repr(url)
    )
    raise SettingsError("url", f"must be the URL of a service, such as http://localhost:8080, got {got}")


def _checked_token(token: str) -> str:
    """BadInputError for what no header can carry; it is not shown."""
    if isinstance(token, str) and token and token.isascii() and token.isprintable() and " " not in token:
        return token
    raise BadInputError("token", "must be printable ASCII characters without spaces, not empty")
