"""The ranks' handshake: they wait for each other, compare their devices, and sum a number as the training will do."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Literal, NamedTuple

import psutil

from rlnb.errors import RlnbError

WITHIN_S = float(os.environ.get("RLNB_MEET_S", "300"))
"""Time limit in seconds for all ranks to start, and again for their sum.

The agents start together, but 64 ranks that import from NFS with a cold cache may be minutes apart.
"""


def join(device: str, within_s: float = WITHIN_S, *, role: str = "") -> None:
    """Make the process group of all ranks, and sum a number with it on the training's own devices and network.

    Args:
        device: Device of this rank, ``"cpu"`` or ``"cuda:N"``. Ranks on GPUs use nccl, and those on CPUs gloo. If roles
            differ in their devices, all ranks use gloo.
        within_s: Time limit of each step, in seconds.
        role: Role of this rank. Ranks of one role must have the same kind of device.

    Raises:
        RlnbError: A rank did not start, the ranks have different devices, or they cannot communicate.
    """
    import torch.distributed as dist

    store, rank, world_size = next(dist.rendezvous("env://", timeout=timedelta(seconds=within_s)))
    entries = meet(store, rank, world_size, device, within_s, role=role)
    hosts = [entry.host for entry in entries]
    # The first limit is for the handshake only. From now on torch's own limits apply, for example while rank 0 saves.
    store.set_timeout(dist.default_pg_timeout)
    backend: Backend = "gloo" if any(entry.kind == "cpu" for entry in entries) else "nccl"

    def connect() -> None:
        import torch

        bound = torch.device(device) if backend == "nccl" else None  # makes NCCL connect now, not in the first sum
        dist.init_process_group(backend, store=store, rank=rank, world_size=world_size, device_id=bound)
        total = torch.ones(1, device=device if backend == "nccl" else "cpu")
        dist.all_reduce(total)
        if int(total) != world_size:  # waits for the GPU; a faulty link between GPUs may give a wrong sum
            raise RuntimeError(f"the sum over {world_size} ranks is {int(total)}")

    try:
        reason = "" if _ends(connect, within_s) else f"no answer within {within_s:.0f} s"
    except RuntimeError as exc:  # the errors of gloo and of NCCL have no other common type
        reason = str(exc)
    if reason:
        raise RlnbError(
            f"All {world_size} ranks have started, but rank {rank} could not communicate with the others over "
            f"{backend}: {reason}. It is on {socket.gethostname()} and uses {network_interface(backend)}; "
            f"the ranks are on {', '.join(sorted(set(hosts)))}. {network_fix(backend)}"
        )


def _ends(function: Callable[[], None], within_s: float) -> bool:
    """Call a function that may block in C++ for ever; return whether it ends within the limit, or raise its error.

    The thread stays behind if the function blocks, until the worker ends with ``os._exit``.
    """
    errors: list[Exception] = []

    def call() -> None:
        try:
            function()
        except Exception as exc:
            errors.append(exc)

    thread = threading.Thread(target=call, daemon=True, name="handshake")
    thread.start()
    thread.join(within_s)
    if errors:
        raise errors[0]
    return not thread.is_alive()


class Entry(NamedTuple):
    """What a rank that has started tells the others."""

    kind: str
    """Kind of its device, ``"cpu"`` or ``"cuda"``."""
    host: str
    """Name of its host."""
    role: str = ""
    """Its role; empty if all ranks do the same."""


def meet(
    store: Any, rank: int, world_size: int, device: str, within_s: float = WITHIN_S, *, role: str = ""
) -> tuple[Entry, ...]:
    """Wait until all ranks have started; return what each of them has told.

    Args:
        store: A torch store that all ranks share.
        rank: This rank.
        world_size: Number of ranks.
        device: Device of this rank.
        within_s: Time limit in seconds.
        role: Role of this rank.

    Raises:
        RlnbError: A rank did not start, or the ranks of a role have different devices. The error names the ranks
            and, if possible, their hosts.
    """
    import torch.distributed as dist

    board = dist.PrefixStore("rlnb", store)
    board.set(f"here/{rank}", f"{device.partition(':')[0]} {socket.gethostname()} {role}")
    try:
        board.wait([f"here/{other}" for other in range(world_size)], timedelta(seconds=within_s))
    except dist.DistStoreError as exc:
        raise RlnbError(_absent(board, world_size, within_s)) from exc
    entries = tuple(_entry(board, other) for other in range(world_size))
    _refuse_mixed_devices(entries)
    return entries


def _refuse_mixed_devices(entries: Sequence[Entry]) -> None:
    """Raise an error if some ranks of a role have a GPU, and others have none."""
    hosts = {rank: entry.host for rank, entry in enumerate(entries)}
    for role in dict.fromkeys(entry.role for entry in entries):
        members = [rank for rank, entry in enumerate(entries) if entry.role == role]
        on_cpu = [rank for rank in members if entries[rank].kind == "cpu"]
        if 0 < len(on_cpu) < len(members):
            others = f"the other ranks of the role {role}" if role else "the other ranks"
            raise RlnbError(
                f"{_names(on_cpu)} of {len(entries)} on {_hosts(hosts, on_cpu)} cannot use a GPU, but {others} can. "
                "Use nodes with GPUs only (`rlnb doctor` on that host shows what its GPU lacks), or "
                'device="cpu" for all ranks.'
            )


def _entry(board: Any, rank: int) -> Entry:
    """Return what a rank that has started has told."""
    return Entry(*board.get(f"here/{rank}").decode().split(" "))


def _absent(board: Any, world_size: int, within_s: float) -> str:
    hosts = {rank: _entry(board, rank).host for rank in range(world_size) if board.check([f"here/{rank}"])}
    absent = [rank for rank in range(world_size) if rank not in hosts]
    neighbours = [rank for rank in _neighbours(absent, world_size) if rank in hosts]
    where = (
        f", probably on {_hosts(hosts, neighbours, ' or ')}"
        if neighbours
        else f"; the others are on {_hosts(hosts, hosts)}"
    )
    return (
        f"{_names(absent)} of {world_size} did not answer within {within_s:.0f} s{where}. The logs of the nodes may "
        "show the reason: run.logs(). RLNB_MEET_S sets the limit in seconds."
    )


def _names(ranks: list[int]) -> str:
    return f"{'Rank' if len(ranks) == 1 else 'Ranks'} {', '.join(map(str, ranks))}"


def _hosts(hosts: Mapping[int, str], ranks: Iterable[int], between: str = ", ") -> str:
    return between.join(sorted({hosts[rank] for rank in ranks}))


def _neighbours(absent: list[int], world_size: int) -> set[int]:
    """Return all ranks on the nodes of the absent ranks."""
    per_node = int(os.environ.get("LOCAL_WORLD_SIZE", world_size))
    nodes = {rank // per_node for rank in absent}
    return {rank for rank in range(world_size) if rank // per_node in nodes}


# -- the network between ranks ---------------------------------------------------------------------------------------


Backend = Literal["gloo", "nccl"]
"""Backend of torch's process group."""
NETWORK_VARIABLES: dict[Backend, str] = {"gloo": "GLOO_SOCKET_IFNAME", "nccl": "NCCL_SOCKET_IFNAME"}
"""Variable that selects the interface of a backend."""
_GPUS = (
    " NCCL_DEBUG=INFO logs what NCCL chooses. NCCL_P2P_DISABLE=1 helps if the GPUs of a host cannot copy to each "
    "other, for example behind an IOMMU, and NCCL_IB_DISABLE=1 if InfiniBand does not work."
)


def network_interface(backend: Backend) -> str:
    """Return the interface of this host that a backend uses, or those among which it chooses, as part of a sentence.

    Gloo uses the interface that has the address of the host's name. NCCL takes any that is up.
    """
    if name := os.environ.get(NETWORK_VARIABLES[backend]):
        return f"interface {name}, from {NETWORK_VARIABLES[backend]}"
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


def network_fix(backend: Backend) -> str:
    """Return what to change if the ranks cannot communicate."""
    return (
        f'Use {NETWORK_VARIABLES[backend]}=eth0, or interface="eth0" of the launcher, to select the interface that '
        "connects the hosts (`ip addr` lists them), and allow connections between the hosts on all ports."
        f"{_GPUS if backend == 'nccl' else ''}"
    )
