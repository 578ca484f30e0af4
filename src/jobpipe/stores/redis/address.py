"""Address: where a Redis server is and how to get in, read from a URL.

redis://[user:password@]host[:port][/db], rediss:// with TLS, unix:///path/to/socket?db=N (also redis+unix://).
`?prefix=name` names the keys, so that several services may share a server.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlencode, urlsplit

from msgspec import Struct
from redis.connection import Connection, SSLConnection, UnixDomainSocketConnection
from redis.exceptions import RedisError

from ...errors import SettingsError
from ...model import text as masking
from ...model.text import ESCAPES, HIDDEN, Mask

PREFIX = "jobpipe"
TIMEOUT = 5.0
"""Seconds until a server that does not answer counts as away."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,99}")
_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_OPTIONS: dict[str, Callable[[str], Any]] = {
    "db": int,
    "username": str,
    "password": str,
    "client_name": str,
    "socket_timeout": float,
    "socket_connect_timeout": float,
    "ssl_ca_certs": str,
    "ssl_ca_path": str,
    "ssl_certfile": str,
    "ssl_keyfile": str,
    "ssl_password": str,
    "ssl_cert_reqs": str,
    "ssl_check_hostname": _TRUTH.__getitem__,
}
"""What a URL may say besides the prefix: options of redis-py's connections, and how each is read."""
_SECRETS = {"username", "password", "ssl_password"}
"""The name too: many a password stands in its place."""


class Address(Struct, frozen=True, kw_only=True):
    """A server, a database on it, and the prefix of all keys."""

    url: str
    """Without its secrets."""
    prefix: str
    connection_class: type[Any]
    options: dict[str, Any]
    """Of each connection."""
    mask: Mask
    """For what the driver and the server say."""

    @property
    def root(self) -> str:
        """What all keys begin with: in braces, so that a cluster keeps them together."""
        return f"{{{self.prefix}}}"

    def moved(self, host: str, port: int) -> Address:
        """The same on another node of the cluster."""
        return Address(
            url=self.url,
            prefix=self.prefix,
            connection_class=self.connection_class,
            options={**self.options, "host": host or self.options.get("host"), "port": port},
            mask=self.mask,
        )


def address_of(url: str) -> Address:
    """Read a URL; SettingsError for one that cannot be right."""
    parts = urlsplit(url.removeprefix("redis+") if url.startswith("redis+unix:") else url)
    if parts.fragment or ("@" in parts.path and parts.netloc and "@" not in parts.netloc):
        raise _wrong(url, ESCAPES)
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    prefix = query.pop("prefix", PREFIX)
    if parts.scheme not in _PLACES:
        raise _wrong(url, "must begin with redis://, rediss:// or unix://")
    if not _NAME.fullmatch(prefix):
        raise _wrong(
            url,
            f"has a prefix that is no name of 1-100 letters, digits and . _ : @ -: {_named(parts, prefix)}",
        )
    kind, options = _PLACES[parts.scheme](parts, url)
    if parts.username:
        options["username"] = unquote(parts.username)
    if parts.password:
        options["password"] = unquote(parts.password)
    for name, value in query.items():
        if name not in _OPTIONS:
            raise _wrong(url, f"has an option that is unknown: {_named(parts, name)}")
        try:
            options[name] = _OPTIONS[name](value)
        except (KeyError, ValueError):
            raise _wrong(url, f"has a value that cannot be used in its option {name!r}") from None
    shown = masked(url)
    mask = Mask([options.get(name) for name in _SECRETS], shown)
    try:
        kind(**options)
    except (RedisError, TypeError, ValueError) as error:
        raise _wrong(url, f"cannot be used: {mask(str(error))}") from None
    return Address(url=shown, prefix=prefix, connection_class=kind, options=options, mask=mask)


def _host(parts: SplitResult, url: str) -> tuple[type[Any], dict[str, Any]]:
    try:
        port = parts.port
    except ValueError:
        raise _wrong(url, "must have a port from 0 to 65535, or none") from None
    if not re.fullmatch(r"/?|/\d+", parts.path):
        raise _wrong(
            url, "must end with the number of a database, as redis://localhost/0 does, or without one"
        )
    return SSLConnection if parts.scheme == "rediss" else Connection, {
        "host": parts.hostname or "localhost",
        "port": port or 6379,
        "db": int(parts.path.strip("/") or 0),
        "socket_timeout": TIMEOUT,
        "socket_connect_timeout": TIMEOUT,
        "socket_keepalive": True,
    }


def _socket(parts: SplitResult, url: str) -> tuple[type[Any], dict[str, Any]]:
    if not parts.path.strip("/"):
        raise _wrong(url, "must name a socket, as unix:///run/redis.sock does")
    return UnixDomainSocketConnection, {"path": unquote(parts.path), "socket_timeout": TIMEOUT}


_PLACES = {"redis": _host, "rediss": _host, "unix": _socket}


def masked(url: str) -> str:
    """The URL with stars in place of its secrets."""
    parts = urlsplit(url)
    _, at, host = parts.netloc.rpartition("@")
    if at:
        host = f"{HIDDEN}@{host}"
    query = [
        (name, HIDDEN if name in _SECRETS else value)
        for name, value in parse_qsl(parts.query, keep_blank_values=True)
    ]
    # Why by hand: urlunsplit would leave out the empty host of unix:///path.
    return unquote(f"{parts.scheme}://{host}{parts.path}" + (f"?{urlencode(query)}" if query else ""))


def _named(parts: SplitResult, text: str) -> str:
    """The text, unless it may be the end of a password that is taken for a query."""
    return HIDDEN if "@" in parts.query else repr(text)


def _wrong(url: str, problem: str) -> SettingsError:
    # Why the stricter one: what is wrong with the URL may be what hides its password.
    return SettingsError("JOBPIPE_STORE", f"{problem}, got {masking.masked(url)!r}")
