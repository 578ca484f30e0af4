"""Url and Origin: where an `http` job goes, in one spelling, so that two that mean the same are equal; Targets: where it may go.

Strict where others guess: what one program could take for another host than the next is refused here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from urllib.parse import quote, urljoin

PORTS = {"http": 80, "https": 443}
"""The schemes, and the port of each where none is given."""
LONGEST_URL = 8_192
_LONGEST_HOST = 253

_URL = re.compile(
    r"(?P<scheme>[A-Za-z]+)://(?P<authority>[^/?#]*)(?P<path>[^?#]*)(?P<query>\?[^#]*)?(?:#.*)?"
)
_AUTHORITY = re.compile(r"(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<name>[^:\[\]]+))(?::(?P<port>[0-9]{1,5}))?")
_NAME = re.compile(r"(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_LEFT_AS_IS = "/%:@!$&'()*+,;=?[]~-._"


class BadUrlError(ValueError):
    """It is no URL that is taken here; the message goes on after the name of what is wrong."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Scheme, host and port."""

    scheme: str
    host: str
    """A name in lower case and ASCII, without the last dot; or an address, without brackets."""
    port: int
    address: IPv4Address | IPv6Address | None = None
    """The host, where it is an address and no name."""

    @property
    def authority(self) -> str:
        """Host and port, as in a URL and in the header `Host`."""
        host = f"[{self.host}]" if isinstance(self.address, IPv6Address) else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}"


@dataclass(frozen=True, slots=True)
class Url:
    """An origin, and what is asked of it."""

    origin: Origin
    path: str
    query: str
    """With its `?`, or empty."""

    def __str__(self) -> str:
        """Without the query, which may hold secrets."""
        return f"{self.origin}{self.path}"

    def join(self, reference: str) -> Url:
        """Where a reference (of a redirect) leads from here; BadUrlError."""
        _check_plain(reference)
        try:
            return read_url(urljoin(f"{self}{self.query}", reference))
        except BadUrlError:
            raise
        except ValueError:  # of the standard library's own reading
            raise BadUrlError("is not a valid URL") from None


def read_url(text: str) -> Url:
    """The URL; BadUrlError. A fragment is left out."""
    _check_plain(text)
    found = _URL.fullmatch(text)
    if found is None or (scheme := found["scheme"].lower()) not in PORTS:
        raise BadUrlError("must begin with http:// or https:// and a host")
    if "@" in found["authority"]:
        raise BadUrlError("contains a user name: send credentials in a header")
    path = quote(found["path"] or "/", safe=_LEFT_AS_IS)
    return Url(_origin(scheme, found["authority"]), path, quote(found["query"] or "", safe=_LEFT_AS_IS))


def _check_plain(text: str) -> None:
    if len(text) > LONGEST_URL:
        raise BadUrlError(f"is longer than {LONGEST_URL:,} characters")
    if not text.isprintable() or " " in text or "\\" in text:
        raise BadUrlError("contains a space, a backslash or an unprintable character")


def _origin(scheme: str, authority: str) -> Origin:
    found = _AUTHORITY.fullmatch(authority)
    if found is None:
        raise BadUrlError("has an invalid host or port")
    port = PORTS[scheme] if found["port"] is None else int(found["port"])
    if not 0 < port < 65_536:
        raise BadUrlError(f"has an invalid port: {port}")
    if found["v6"] is not None:
        try:
            address = IPv6Address(found["v6"])
        except ValueError:
            raise BadUrlError("has an invalid IPv6 address") from None
        return Origin(scheme, str(address), port, address)
    host = _name(found["name"])
    if not _NUMBER.fullmatch(host.rpartition(".")[2]):
        return Origin(scheme, host, port)
    try:
        return Origin(scheme, host, port, IPv4Address(host))
    except ValueError:
        # Why refused: 127.1, 0177.0.0.1 and 2130706433 are addresses to some and names to others.
        raise BadUrlError("has an invalid host name: write an IPv4 address as four decimal numbers") from None


def _name(text: str) -> str:
    """The name as it is looked up, whatever its case and script."""
    problem = "has an invalid host name"
    if len(text) > _LONGEST_HOST + 1:
        raise BadUrlError(problem)
    try:
        host = text.encode("idna").decode("ascii").lower().removesuffix(".")
    except UnicodeError:
        raise BadUrlError(problem) from None
    if len(host) > _LONGEST_HOST or not _NAME.fullmatch(host):
        raise BadUrlError(problem)
    return host


_WILD = "*."


@dataclass(frozen=True, slots=True)
class Target:
    """An origin, or all those whose host is below its host."""

    origin: Origin
    is_wild: bool

    def allows(self, origin: Origin) -> bool:
        """Is it this origin, or one of these?"""
        if not self.is_wild:
            return origin == self.origin
        is_below = origin.host.endswith(f".{self.origin.host}")
        return is_below and (origin.scheme, origin.port) == (self.origin.scheme, self.origin.port)


class Targets:
    """A list of targets; false while it is empty."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._targets = [read_target(text) for text in texts]

    def __bool__(self) -> bool:
        return bool(self._targets)

    def allow(self, origin: Origin) -> bool:
        """Is the origin on the list?"""
        return any(target.allows(origin) for target in self._targets)


def read_target(text: str) -> Target:
    """The target that an entry of the list names; BadUrlError."""
    scheme, separator, rest = text.partition("://")
    if any(sign in rest for sign in "/?#"):
        raise BadUrlError("must have nothing after host and port")
    is_wild = rest.startswith(_WILD)
    origin = read_url(f"{scheme}{separator}{rest.removeprefix(_WILD)}").origin
    if is_wild and origin.address is not None:
        raise BadUrlError("has a * before an IP address: use * with host names only")
    return Target(origin, is_wild)
