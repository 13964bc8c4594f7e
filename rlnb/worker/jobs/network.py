"""The network between ranks: the interface that a backend uses, and what to change if it does not work."""

from __future__ import annotations

import os
import socket
from typing import Literal

import psutil

Backend = Literal["gloo", "nccl"]
"""Backend of torch's process group."""
VARIABLES: dict[Backend, str] = {"gloo": "GLOO_SOCKET_IFNAME", "nccl": "NCCL_SOCKET_IFNAME"}
"""Variable that selects the interface of a backend."""
_GPUS = (
    " NCCL_DEBUG=INFO logs what NCCL chooses. NCCL_P2P_DISABLE=1 helps if the GPUs of a host cannot copy to each "
    "other, for example behind an IOMMU, and NCCL_IB_DISABLE=1 if InfiniBand does not work."
)


def interface(backend: Backend) -> str:
    """Return the interface of this host that a backend uses, or those among which it chooses, as part of a sentence.

    Gloo uses the interface that has the address of the host's name. NCCL takes any that is up.
    """
    if name := os.environ.get(VARIABLES[backend]):
        return f"interface {name}, from {VARIABLES[backend]}"
    if backend == "nccl":
        names = [name for name, state in psutil.net_if_stats().items() if state.isup and name != "lo"]
        return f"an interface that NCCL chose from {', '.join(names) or 'lo'}"
    try:
        addresses = {entry[4][0] for entry in socket.getaddrinfo(socket.gethostname(), None)}
    except OSError:
        return "no interface, because the name of this host has no address"
    names = [
        name
        for name, entries in psutil.net_if_addrs().items()
        if addresses & {entry.address.partition("%")[0] for entry in entries}
    ]
    return f"interface {' or '.join(names) or 'unknown'}, which has the address of the host's name"


def fix(backend: Backend) -> str:
    """Return what to change if the ranks cannot communicate."""
    return (
        f'Use {VARIABLES[backend]}=eth0, or interface="eth0" of the launcher, to select the interface that connects '
        "the hosts (`ip addr` lists them), and allow connections between the hosts on all ports."
        f"{_GPUS if backend == 'nccl' else ''}"
    )
