"""The address of this node for the rendezvous of several nodes."""

from __future__ import annotations

import socket

import psutil


def address(interface: str | None) -> str:
    """Return this node's IPv4 address on a network interface.

    Args:
        interface: Name of the interface; None is the one of the default route.

    Raises:
        ValueError: The node has no such interface, or the interface has no IPv4 address.
    """
    if interface is None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.connect(("192.0.2.1", 9))  # a reserved address; no packet is sent
                return str(probe.getsockname()[0])
            except OSError:  # no default route
                return socket.gethostname()
    addresses = psutil.net_if_addrs()
    candidates = [entry.address for entry in addresses.get(interface, []) if entry.family == socket.AF_INET]
    if not candidates:
        raise ValueError(
            f"interface={interface!r} has no IPv4 address here. Use one of {', '.join(sorted(addresses))}."
        )
    return candidates[0]


def free_port() -> int:
    """Return a currently free port of this node."""
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])
