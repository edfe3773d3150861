"""Which addresses messages may be sent to, so that a webhook cannot be aimed at what only this server can reach.

The name is resolved when a message is sent, every address it has is checked, and the connection goes to a checked
one: a name that changes between check and connection changes nothing. Settings may open private ranges or networks.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from urllib.parse import urlsplit

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

URL_MAX = 2000
NOT_PUBLIC = tuple(
    ipaddress.ip_network(text)
    for text in ("192.0.0.0/24", "192.88.99.0/24", "fec0::/10", "64:ff9b:1::/48", "2001::/23", "3fff::/20", "5f00::/16")
)
"""What the standard library of some supported versions takes for public."""
NAT64 = IPv6Network("64:ff9b::/96")
LOCAL_SUFFIXES = (".localhost", ".local", ".internal", ".cluster.local", ".svc")
"""Names that no public resolver knows; behind a proxy, which resolves by itself, they are all there is to judge by."""


class TargetError(Exception):
    """An address that messages must not or cannot go to; the text never holds more of it than its host."""


class UnresolvedError(TargetError):
    """The name could not be resolved now, which may pass."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What the settings allow beyond public addresses over TLS."""

    allows_private: bool = False
    networks: tuple[Network, ...] = ()

    def allows(self, address: Address) -> bool:
        """Return whether an address may be connected to."""
        inner = embedded(address)
        if inner is not None:
            return self.allows(inner)
        if address.is_multicast or address.is_unspecified:
            return False
        return is_public(address) or self.allows_private or self._is_listed(address)

    def allows_plain(self, address: Address) -> bool:
        """Return whether an address may be spoken to without TLS: only a private one that the settings opened."""
        return self.allows(address) and not is_public(embedded(address) or address)

    def _is_listed(self, address: Address) -> bool:
        return any(address in network for network in self.networks if network.version == address.version)


@dataclass(frozen=True, slots=True)
class Target:
    """A parsed address; ``path`` is the secret part."""

    scheme: str
    host: str
    port: int
    path: str

    def __repr__(self) -> str:
        return f"Target({self.host})"

    @property
    def is_plain(self) -> bool:
        return self.scheme == "http"

    @property
    def host_header(self) -> str:
        name = f"[{self.host}]" if ":" in self.host else self.host
        return name if self.port == (80 if self.is_plain else 443) else f"{name}:{self.port}"


def is_public(address: Address) -> bool:
    """Return whether an address belongs to the public internet."""
    if not address.is_global or address.is_multicast or address.is_reserved:
        return False
    return not any(address in network for network in NOT_PUBLIC if network.version == address.version)


def embedded(address: Address) -> IPv4Address | None:
    """Return the IPv4 address that an IPv6 one leads to: mapped, 6to4, NAT64 and old compatible forms."""
    if not isinstance(address, IPv6Address):
        return None
    if address.ipv4_mapped or address.sixtofour:
        return address.ipv4_mapped or address.sixtofour
    value = int(address)
    is_compatible = value >> 32 == 0 and value > 1
    return IPv4Address(value & 0xFFFFFFFF) if address in NAT64 or is_compatible else None


def parse(url: str, policy: Policy) -> Target:
    """Take an address apart and refuse what can never be sent to."""
    if (
        len(url) > URL_MAX
        or not url.isascii()
        or any(not character.isprintable() or character in ' "<>\\^`{|}' for character in url)
    ):
        raise TargetError("The address is not a plain URL")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise TargetError("The address is not a URL") from error
    host = (parts.hostname or "").rstrip(".")
    if parts.scheme not in {"https", "http"} or not host:
        raise TargetError("The address must begin with https:// and name a host")
    if parts.username is not None or parts.password is not None:
        raise TargetError("The address must not hold a user name or password")
    if parts.scheme == "http" and not (policy.allows_private or policy.networks):
        raise TargetError("The address must begin with https://")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    target = Target(parts.scheme, host, port or (80 if parts.scheme == "http" else 443), path)
    literal = _literal(host)
    if literal is not None:
        _check(target, [literal], policy)
    return target


def resolve(target: Target, policy: Policy) -> list[Address]:
    """Return the addresses of a target; one that is not allowed refuses them all."""
    try:
        found = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise UnresolvedError(f"The name {target.host} cannot be resolved") from error
    addresses = list(dict.fromkeys(ipaddress.ip_address(str(entry[4][0]).partition("%")[0]) for entry in found))
    _check(target, addresses, policy)
    return addresses


def check_name(target: Target, policy: Policy) -> None:
    """Refuse what a proxy must not be asked for: names that are local by their form, and what resolves to no good."""
    if _literal(target.host) is not None:
        _check(target, [ipaddress.ip_address(target.host)], policy)
        return
    is_local = target.host == "localhost" or target.host.endswith(LOCAL_SUFFIXES) or "." not in target.host
    if is_local and not policy.allows_private:
        raise TargetError(f"{target.host} is a local name")
    try:
        resolve(target, policy)
    except UnresolvedError:
        # Where only the proxy can resolve names, its own rules decide.
        return


def _literal(host: str) -> Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _check(target: Target, addresses: Sequence[Address], policy: Policy) -> None:
    if not addresses:
        raise UnresolvedError(f"The name {target.host} has no address")
    if not all(policy.allows(address) for address in addresses):
        raise TargetError(
            f"{target.host} leads to an address that is not public; an operator can allow it with "
            "GANGDASH_WEBHOOK_ALLOWED_NETWORKS or GANGDASH_WEBHOOK_PRIVATE_TARGETS"
        )
    if target.is_plain and not all(policy.allows_plain(address) for address in addresses):
        raise TargetError(f"{target.host} is a public address, which takes https://")
