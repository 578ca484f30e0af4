"""OutgoingCall: one call of a URL with the redirects that follow, for a thread; another thread may break it off.

Each request has a connection of its own, to an address that the guard let pass. Nothing is taken from the
environment: no proxy, no credentials.
"""

from __future__ import annotations

import socket
import threading
from dataclasses import replace
from http.client import HTTPConnection, HTTPException, HTTPResponse
from time import monotonic

from ...errors import BadInputError
from ...model.url import BadUrlError, Origin, Url
from .address import Address
from .guard import FIELD, TargetGuard
from .network import Network
from .request import MOST_BODY, CallFailed, Request, Response

MOST_REDIRECTS = 5


class OutgoingCall:
    """A call under way."""

    def __init__(self, guard: TargetGuard, network: Network, timeout: float) -> None:
        self._guard = guard
        self._network = network
        self._until = monotonic() + timeout
        self._lock = threading.Lock()  # of the two below
        self._socket: socket.socket | None = None  # while there is a connection
        self._is_broken_off = False

    def run(self, request: Request) -> Response:
        """The answer that is no redirect; BadInputError for what the guard refuses, CallFailed for what went wrong."""
        first = request
        self._guard.check(request.url)
        for _ in range(MOST_REDIRECTS + 1):
            response = self._exchange(request)
            if not response.is_redirect:
                return response
            url = _target(request, response)
            self._guard.check(url, "was redirected to")
            request = request.redirected(response.status, url)
        raise CallFailed(
            f"{first} was redirected more than {MOST_REDIRECTS} times, last to {request.url.origin}"
        )

    def break_off(self) -> None:
        """Let the thread that runs it come to an end; from any other."""
        with self._lock:
            self._is_broken_off = True
            if self._socket is not None:
                try:
                    # Why not of its own class: under TLS that would take away what the other thread reads with.
                    socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
                except OSError:
                    pass  # it is not connected any more

    def _exchange(self, request: Request) -> Response:
        origin = request.url.origin
        connection = HTTPConnection(origin.host, origin.port)
        connection.response_class = _FinalResponse
        try:
            self._connect(connection, origin)
            _send(connection, request)
            with connection.getresponse() as response:
                return _read(response)
        except (OSError, HTTPException, UnicodeError) as error:
            raise CallFailed(f"{request} failed: {type(error).__name__}: {error}") from error
        finally:
            with self._lock:
                self._socket = None
            connection.close()

    def _connect(self, connection: HTTPConnection, origin: Origin) -> None:
        """Connect to one of the origin's addresses, with TLS where the origin has it."""
        connection.sock = self._reach(self._guard.addresses(origin), origin.port)
        if origin.scheme == "http":
            self._hold(connection.sock)
            return
        # Why the handshake last: before it is held, nobody could break it off.
        connection.sock = secure = self._network.tls().wrap_socket(
            connection.sock, server_hostname=origin.host, do_handshake_on_connect=False
        )
        self._hold(secure)
        secure.do_handshake()

    def _reach(self, addresses: list[Address], port: int) -> socket.socket:
        """A connection to the first that can be reached; each has an equal part of the time that is left."""
        problem: OSError = OSError("the host name has no address")
        for place, address in enumerate(addresses):
            try:
                return self._network.connect(address, port, self._remaining() / (len(addresses) - place))
            except OSError as error:
                problem = error
        raise problem

    def _hold(self, connection: socket.socket) -> None:
        with self._lock:
            self._socket = connection
        connection.settimeout(self._remaining())

    def _remaining(self) -> float:
        remaining = self._until - monotonic()
        if self._is_broken_off or remaining <= 0:
            raise TimeoutError("timed out")
        return remaining


class _FinalResponse(HTTPResponse):
    """The first answer that is not merely a hint: the standard library passes over 100 alone."""

    def begin(self) -> None:
        super().begin()
        while 100 < self.status < 200:
            self.headers = None  # type: ignore[assignment]  # else it would not read on
            super().begin()


def _target(request: Request, response: Response) -> Url:
    location = response.location or ""
    try:
        return request.url.join(location.encode("latin-1", "replace").decode("utf-8", "replace"))
    except BadUrlError as error:
        raise BadInputError(FIELD, f"was redirected to a URL that {error}") from None


def _send(connection: HTTPConnection, request: Request) -> None:
    connection.putrequest(
        request.method, request.url.path + request.url.query, skip_host=True, skip_accept_encoding=True
    )
    for name, value in {**_own_headers(request), **request.headers}.items():
        connection.putheader(name, value)
    connection.endheaders(request.body)


def _own_headers(request: Request) -> dict[str, str]:
    headers = {"Host": request.url.origin.authority, "Accept-Encoding": "identity", "Connection": "close"}
    if request.body is not None or request.method in ("POST", "PUT", "PATCH"):
        headers["Content-Length"] = str(len(request.body or b""))
    return headers


def _read(response: HTTPResponse) -> Response:
    """The answer with the beginning of its body; a redirect without."""
    found = Response(response.status, response.getheader("Location"), response.getheader("Retry-After"), b"")
    if found.is_redirect:
        return found
    expected = response.length
    most = MOST_BODY if expected is None else min(expected, MOST_BODY)
    body = bytearray()
    # Why `read1`: it never reads more than there is room for, whatever lengths a server makes up.
    while len(body) < most and (piece := response.read1(most - len(body))):
        body += piece
    if expected is not None and len(body) < most:
        raise HTTPException(f"the answer ended after {len(body):,} of {expected:,} bytes")
    return replace(found, body=bytes(body[:MOST_BODY]))
