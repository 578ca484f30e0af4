"""Listener: the sockets on which the service listens, bound before any process needs them."""

from __future__ import annotations

import errno
import socket
import time
from ipaddress import ip_address

from ..errors import JobpipeError, SettingsError

_BACKLOG = 2048
_PATIENCE = 1.0
"""Seconds for which a taken port is tried: a killed predecessor's process may still be letting go of it."""
_PAUSE = 0.05


def listen(host: str, port: int, *, beyond_loopback: bool = False) -> list[socket.socket]:
    """A socket for each address of the host; SettingsError for a host that is none, or is open to others and must not be."""
    addresses = _addresses(host, port)
    if not beyond_loopback and not all(_is_loopback(address[0]) for _, address in addresses):
        raise SettingsError(
            "JOBPIPE_HOST",
            f"{host!r} can be reached from other machines: set JOBPIPE_TOKEN, or pass --insecure to serve without a token",
        )
    sockets: list[socket.socket] = []
    for family, address in addresses:
        try:
            # Why the first one's port: with port 0, all addresses of the host are to have the same.
            chosen = sockets[0].getsockname()[1] if sockets else port
            sockets.append(_bound(family, (address[0], chosen, *address[2:])))
        except OSError as error:
            if sockets and error.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                continue  # a name may have an address that this machine does not have
            for each in sockets:
                each.close()
            raise _complaint(error, host, port) from None
    return sockets


def is_reachable(listener: socket.socket) -> bool:
    """By other machines?"""
    return not _is_loopback(listener.getsockname()[0])


def _is_loopback(address: str) -> bool:
    return ip_address(address.partition("%")[0]).is_loopback


def url_of(listener: socket.socket) -> str:
    """Where it listens."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _addresses(host: str, port: int) -> list[tuple[int, tuple[str, int] | tuple[str, int, int, int]]]:
    bare = host.removeprefix("[").removesuffix("]")
    try:
        found = socket.getaddrinfo(bare, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (socket.gaierror, UnicodeError):
        raise SettingsError(
            "JOBPIPE_HOST", f"must be an address or a name of this machine, got {host!r}"
        ) from None
    # Why 4 before 6: the first is the one that is shown.
    return sorted(
        {(family, address) for family, _, _, _, address in found if isinstance(address[0], str)},
        key=lambda each: each[0] != socket.AF_INET,
    )


def _bound(family: int, address: tuple[object, ...]) -> socket.socket:
    until = time.monotonic() + _PATIENCE
    while True:
        listener = socket.socket(family, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                # Why: `::` means every address, of both kinds; any other means itself.
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, address[0] != "::")
            listener.bind(address)
            listener.listen(_BACKLOG)
        except OSError as error:
            listener.close()
            if error.errno != errno.EADDRINUSE or time.monotonic() >= until:
                raise
            time.sleep(_PAUSE)
        else:
            listener.setblocking(False)
            return listener


def _complaint(error: OSError, host: str, port: int) -> JobpipeError:
    if error.errno == errno.EADDRINUSE:
        return JobpipeError(
            f"port {port} on {host} is in use by another program: stop it, or choose another port with --port"
        )
    if error.errno == errno.EACCES:
        return JobpipeError(
            f"port {port} on {host} needs more privileges: choose a port from 1024 up with --port"
        )
    return SettingsError("JOBPIPE_HOST", f"{host!r} cannot be listened on: {error.strerror}")
