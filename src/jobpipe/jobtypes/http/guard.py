"""TargetGuard: decides where a call may go, before anything is connected: first by the list, then by the address.

A name is looked up once, all its addresses are checked, and the connection goes to one of these: what the
name leads to a moment later does not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ipaddress import IPv6Address, ip_address

from ...errors import BadInputError
from ...model.url import Origin, Targets, Url
from .address import Address, is_public

FIELD = "payload.url"
SETTING = "JOBPIPE_HTTP_TARGETS"


class TargetGuard:
    """Lets pass what the operator has allowed."""

    def __init__(self, targets: Targets, resolve: Callable[[str], Sequence[str]]) -> None:
        self._targets = targets
        self._resolve = resolve

    def check(self, url: Url, verb: str = "leads to") -> None:
        """BadInputError unless its origin is on the list."""
        if not self._targets.allow(url.origin):
            raise BadInputError(FIELD, f"{verb} {url.origin}, which is not listed in {SETTING}")

    def addresses(self, origin: Origin) -> list[Address]:
        """Where to connect to for a listed origin; BadInputError if it has an address that is not public, OSError."""
        if origin.address is not None:
            return [origin.address]  # the list names it, or it would not be here
        found = [ip_address(text) for text in self._resolve(origin.host)]
        for address in found:
            if not is_public(address):
                raise BadInputError(
                    FIELD,
                    f"leads to {origin}, whose address {address} is not public: "
                    f"to allow it, list {_listed(origin, address)} in {SETTING}, and use it in the URL",
                )
        return list(dict.fromkeys(found))


def _listed(origin: Origin, address: Address) -> Origin:
    """The entry of the list that would allow it."""
    if isinstance(address, IPv6Address) and address.scope_id is not None:
        address = IPv6Address(int(address))  # a URL cannot tell the interface
    return Origin(origin.scheme, str(address), origin.port, address)
