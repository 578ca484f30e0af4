"""Guard: who may call. It looks at Host, token and Origin of every call but the probes, before all else.

Tokens are compared in constant time. Who sends wrong ones too often is told to wait; a right one always works.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Collection
from hmac import compare_digest
from ipaddress import IPv6Address, ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from .problems import (
    ForeignCallerError,
    ForeignHostError,
    ForeignOriginError,
    NoTokenError,
    ReadOnlyTokenError,
    TooManyWrongTokensError,
)

if TYPE_CHECKING:
    from starlette.types import Scope

    from ..settings import Settings
    from .tally import Tally

_READS = frozenset({"GET", "HEAD", "OPTIONS"})
_ANYWHERE = frozenset({"0.0.0.0", "::", ""})  # noqa: S104
_PORTS = {b"http": 80, b"https": 443}
_KNOWN_HOSTS = 256
"""Values of Host that are remembered as good."""


class WrongTokens:
    """How many wrong tokens came from where in the last minute; it remembers a bounded number of addresses."""

    MOST = 20
    WINDOW = 60.0
    ADDRESSES = 10_000
    DELAY = 0.05
    """Seconds by which each one too many is answered later than the one before."""
    LONGEST_DELAY = 1.0

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._found: OrderedDict[str, tuple[float, int]] = OrderedDict()
        """Address → begin of its minute, and how many since; the oldest first."""

    def count(self, address: str) -> int | None:
        """Count one; in how many seconds to come back, if it was one too many."""
        now, key = self._now(), _network(address)
        began_at, number = self._found.get(key, (now, 0))
        if now - began_at >= self.WINDOW:
            began_at, number = now, 0
            self._found.pop(key, None)
        self._found[key] = (began_at, number + 1)
        while len(self._found) > self.ADDRESSES:
            self._found.popitem(last=False)
        return max(int(began_at + self.WINDOW - now), 1) if number >= self.MOST else None

    def delay(self, address: str) -> float:
        """Seconds by which to answer the last one of an address later."""
        _, number = self._found.get(_network(address), (0.0, 0))
        return min(max(number - self.MOST, 0) * self.DELAY, self.LONGEST_DELAY)

    def __len__(self) -> int:
        return len(self._found)


class Guard:
    """What stands before every call but the probes. Why no application of its own: each costs the hot path."""

    def __init__(
        self,
        settings: Settings,
        allowed_hosts: Collection[str] = (),
        *,
        only_local: bool = False,
        tally: Tally | None = None,
    ) -> None:
        self._token = None if settings.token is None else settings.token.encode()
        self._read_token = None if settings.read_token is None else settings.read_token.encode()
        self._is_guarded = self._token is not None or self._read_token is not None
        self._is_anywhere = settings.host in _ANYWHERE
        self._is_only_local = only_local and not self._is_guarded
        own = {settings.host, *settings.allowed_hosts, *allowed_hosts} - _ANYWHERE
        self._own = frozenset(each.lower().strip("[]") for each in own)
        self._suffixes = tuple(each[1:].lower() for each in own if each.startswith("*."))
        self._good_hosts: set[bytes] = set()
        self._wrong = WrongTokens()
        self._tally = tally

    def check(self, scope: Scope) -> None:
        """HttpError unless the call may go on."""
        host = token = origin = None
        for name, value in scope["headers"]:
            if name == b"host":
                if host is not None:
                    raise ForeignHostError("the header Host appears twice")
                host = value
            elif name == b"origin":
                origin = value
            elif name == b"authorization":
                token = value
        if host not in self._good_hosts:
            self._check_host(host, scope)
        if self._is_only_local:
            _check_is_local(scope)
        is_write = scope["method"] not in _READS
        if self._is_guarded:
            self._check_token(token, scope, is_write)
        if is_write and origin is not None and not _is_same_place(origin, host or b""):
            raise ForeignOriginError(
                "pages of other sites may not write here: host and port of Origin and Host differ"
            )

    def check_place(self, scope: Scope) -> None:
        """HttpError unless it was called by its own name: all that files without data need."""
        hosts = [value for name, value in scope["headers"] if name == b"host"]
        self._check_host(hosts[0] if len(hosts) == 1 else None, scope)

    def _check_host(self, host: bytes | None, scope: Scope) -> None:
        found = None if host is None else _parts_of(b"http://" + host)
        if host is None or found is None or not self._is_own(found[0], scope):
            raise ForeignHostError("this host name is not allowed: add it to JOBPIPE_ALLOWED_HOSTS")
        if len(self._good_hosts) < _KNOWN_HOSTS and not self._is_anywhere:
            self._good_hosts.add(host)

    def _is_own(self, host: str, scope: Scope) -> bool:
        if host == "localhost" or host in self._own or "*" in self._own or host.endswith(self._suffixes):
            return True
        # Why the server's own address is: an address, unlike a name, cannot be pointed at us by a stranger.
        server = scope.get("server")
        if self._is_anywhere and server is not None and host == server[0].removeprefix("::ffff:"):
            return True
        try:
            return ip_address(host).is_loopback
        except ValueError:
            return False

    def _check_token(self, header: bytes | None, scope: Scope, is_write: bool) -> None:
        scheme, _, given = (header or b"").partition(b" ")
        given = given.strip()
        if scheme.lower() != b"bearer" or not given:
            raise NoTokenError("send the header Authorization: Bearer <token>", www_authenticate="Bearer")
        # Why both are compared whatever the first says: the time must not tell which one it was.
        is_full = self._token is not None and compare_digest(given, self._token)
        is_read = self._read_token is not None and compare_digest(given, self._read_token)
        if is_full:
            return
        if is_read:
            if is_write:
                raise ReadOnlyTokenError("this token is for reading only")
            return
        client = scope.get("client")
        address = client[0] if client else ""
        wait = self._wrong.count(address)
        if self._tally is not None:
            self._tally.note("refused a wrong token", f"from {address}")
        if wait is not None:
            error = TooManyWrongTokensError(
                "too many wrong tokens came from this address", retry_after=str(wait), connection="close"
            )
            error.delay = self._wrong.delay(address)
            raise error
        raise NoTokenError("the token is wrong", www_authenticate='Bearer error="invalid_token"')


def _check_is_local(scope: Scope) -> None:
    """ForeignCallerError for a call from another machine; where there is no address, a socket of this one was called."""
    client = scope.get("client")
    try:
        is_local = client is None or ip_address(client[0].removeprefix("::ffff:")).is_loopback
    except ValueError:
        is_local = True  # no address of a network: a test's client
    if not is_local:
        raise ForeignCallerError(
            "without a token only this machine may call; set JOBPIPE_TOKEN, or use asgi(insecure=True) if something else protects it"
        )


def _parts_of(url: bytes) -> tuple[str, int | None] | None:
    """Host and port of a URL that has nothing else."""
    try:
        parts = urlsplit(url.decode("ascii"))
        port = parts.port
    except ValueError:
        return None
    if parts.path or parts.query or parts.fragment or "@" in parts.netloc or not parts.hostname:
        return None
    return parts.hostname, port


def _is_same_place(origin: bytes, host: bytes) -> bool:
    """Are host and port of the origin those of the header Host?

    Why a missing port is that of the origin's scheme on both sides: a proxy with TLS passes on a Host without one.
    """
    scheme, separator, _ = origin.partition(b"://")
    default = _PORTS.get(scheme.lower()) if separator else None
    here, there = _parts_of(b"http://" + host), _parts_of(origin)
    if default is None or here is None or there is None:
        return False
    return here[0] == there[0] and (here[1] or default) == (there[1] or default)


def _network(address: str) -> str:
    """The address, or the network of an IPv6 one: whoever has one of its addresses has them all."""
    try:
        found = ip_address(address)
    except ValueError:
        return address
    return str(found) if not isinstance(found, IPv6Address) else str(int(found) >> 64)
