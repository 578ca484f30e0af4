"""Network: how a call looks up a name, connects to an address and speaks TLS; tests bring their own."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from .address import Address


def resolve(host: str) -> list[str]:
    """The addresses of a name; OSError."""
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return [str(entry[4][0]) for entry in found]


def connect(address: Address, port: int, timeout: float) -> socket.socket:
    """A connection to the very address; OSError."""
    return socket.create_connection((str(address), port), timeout)


@cache
def trusted() -> ssl.SSLContext:
    """TLS that trusts whom the system trusts."""
    return ssl.create_default_context()


@dataclass(frozen=True, slots=True)
class Network:
    """The ways out of this process."""

    resolve: Callable[[str], Sequence[str]] = resolve
    connect: Callable[[Address, int, float], socket.socket] = connect
    tls: Callable[[], ssl.SSLContext] = trusted
