"""Which addresses are public: reachable by anybody, and so no way into the network that the service is in."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_network

Address = IPv4Address | IPv6Address

_GLOBAL_UNICAST = IPv6Network("2000::/3")
_NOT_PUBLIC = tuple(
    map(
        ip_network,
        (
            "100.64.0.0/10",  # between a provider and its customers
            "168.63.129.16/32",  # the host of a virtual machine at Azure
            "192.88.99.0/24",  # relays of 6to4
            "2001::/23",  # Teredo and other protocols' own
            "3fff::/20",  # documentation
        ),
    )
)
"""Beside what the standard library knows. Why not left to it: it learned some of these in later versions only."""
_NAT64 = IPv6Network("64:ff9b::/96")
_COMPATIBLE = IPv6Network("::/96")


def is_public(address: Address) -> bool:
    """Can anybody reach it? An IPv4 address within an IPv6 one is looked at itself."""
    inner = _unwrapped(address)
    if inner is not None:
        return is_public(inner)
    if isinstance(address, IPv6Address) and address not in _GLOBAL_UNICAST:
        return False
    is_special = address.is_multicast or address.is_reserved or not address.is_global
    return not is_special and not any(address in network for network in _NOT_PUBLIC)


def _unwrapped(address: Address) -> IPv4Address | None:
    """The IPv4 address that packets for an IPv6 one may end at."""
    if isinstance(address, IPv4Address):
        return None
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address in _NAT64 or address in _COMPATIBLE:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return None
