"""The ranks of one training: their process group, and the proof that they stay synchronised."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from rlnb.records.ranks import Ranks
from rlnb.spec import Json
from rlnb.worker.jobs import handshake

DIGEST_ENVS = 64
"""Number of envs in the digest of the first observations. Those of 4,096 envs with a camera are half a gigabyte."""


class Clock:
    """Measures the time spent in calls, as a share of the time since the first call."""

    def __init__(self) -> None:
        self._start_s, self._inside_s = 0.0, 0.0

    def timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function, with its calls timed."""

        def call(*arguments: Any, **options: Any) -> Any:
            start_s = time.perf_counter()
            self._start_s = self._start_s or start_s
            result = function(*arguments, **options)
            self._inside_s += time.perf_counter() - start_s
            return result

        return call

    @property
    def share(self) -> float:
        """Share of the time since the first call, 0 to 1; NaN without calls."""
        return self._inside_s / (time.perf_counter() - self._start_s) if self._start_s else math.nan


@contextlib.contextmanager
def process_group(device: str, *, synchronised: bool = True, alone: bool = False, role: str = "") -> Iterator[Clock]:
    """Make the process group of a training with several ranks; do nothing for a single rank.

    RL libraries make their own process group with nccl, which needs GPUs. This function makes it once, with gloo on a
    CPU, and turns the libraries' later calls of ``init_process_group`` into no-ops.

    Args:
        device: Device of this rank.
        synchronised: False turns every ``all_reduce`` into a no-op: the negative control for the proof.
        alone: Whether a single rank has a process group too, to test nccl on one GPU.
        role: Role of this rank; empty if all ranks do the same.

    Yields:
        A clock of the time that this rank spends in ``all_reduce``.
    """
    clock = Clock()
    if int(os.environ.get("WORLD_SIZE", "1")) == 1 and not alone:
        yield clock
        return
    import torch
    import torch.distributed as dist

    on_gpu = device.startswith("cuda")
    if on_gpu:
        torch.cuda.set_device(device)
    handshake.join(device, role=role)
    replaced: list[tuple[Any, str, Any]] = [(dist, "init_process_group", _done)]
    if not on_gpu:
        replaced.append((torch.cuda, "set_device", _done))
    if not synchronised:
        replaced.append((dist, "all_reduce", _done))
    elif not on_gpu:  # on a GPU the call returns before the sum is done, so its time means nothing
        replaced.append((dist, "all_reduce", clock.timed(dist.all_reduce)))
    with contextlib.ExitStack() as undo:
        for module, name, stand_in in replaced:
            undo.callback(setattr, module, name, getattr(module, name))
            setattr(module, name, stand_in)
        yield clock
    if dist.is_initialized():  # a library may have destroyed it
        dist.destroy_process_group()


def has_group() -> bool:
    """Return whether this process has joined others in torch's default process group."""
    dist = sys.modules.get("torch.distributed")  # not every library imports it
    return dist is not None and dist.is_available() and dist.is_initialized()


def group_of(roles: Sequence[str], devices: Sequence[str]) -> Any:
    """Return the process group of the ranks that have this rank's role. Every rank has to call it.

    Args:
        roles: Role of each rank.
        devices: Device of each rank.
    """
    import torch.distributed as dist

    groups = {}
    for role in dict.fromkeys(roles):  # every rank makes all groups, in the same order
        members = [rank for rank, other in enumerate(roles) if other == role]
        backend = "nccl" if devices[members[0]].startswith("cuda") else "gloo"
        groups[role] = dist.new_group(members, backend=backend)
    return groups[roles[dist.get_rank()]]


def gather(entry: Mapping[str, Json]) -> list[Mapping[str, Json]]:
    """Return the entry of each rank. Every rank has to call it. A single process gets its own entry."""
    import torch.distributed as dist

    if not dist.is_initialized():
        return [entry]
    texts: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(texts, json.dumps(entry))
    return [json.loads(text) for text in texts]


def _done(*_: object, **__: object) -> None:
    """Do nothing, in place of a call that is not needed."""


def watch_reset(env: Any) -> Callable[[], str]:
    """Return a function that returns the digest of the env's first observations; "" before the first reset.

    The digest covers the first ``DIGEST_ENVS`` envs. The first observations depend only on the env's seed. Later ones
    depend on the policy's seed too.
    """
    raw, digests = env.unwrapped, [""]
    reset = raw.reset

    def noting(*arguments: Any, **options: Any) -> Any:
        result = reset(*arguments, **options)
        digests[0] = digests[0] or _digest(tensor[:DIGEST_ENVS] for tensor in _tensors(result[0]))
        return result

    raw.reset = noting
    return lambda: digests[0]


class _Rank(NamedTuple):
    """One rank's part of :class:`rlnb.records.ranks.Ranks`."""

    parameters: str
    buffers: str
    observations: str
    communication: float


def compare(
    modules: Iterable[Any], observations: str, communication: float = math.nan, *, roles: Sequence[str] = ()
) -> Ranks:
    """Return digests of all ranks: of the parameters and statistics that they learned, and of their observations.

    Args:
        modules: The trained ``torch.nn.Module`` objects of this rank.
        observations: Digest of this rank's first observations.
        communication: Share of the time that this rank spent in ``all_reduce``; NaN leaves it out.
        roles: Role of each rank; empty if all ranks did the same.
    """
    import torch.distributed as dist

    modules = list(modules)
    rank = _Rank(
        parameters=_digest(p for module in modules for p in module.parameters()),
        buffers=_digest(b for module in modules for b in module.buffers()),
        observations=observations,
        communication=round(communication, 4),
    )
    ranks: list[Any] = [rank]
    if dist.is_initialized():
        ranks = [None] * dist.get_world_size()
        dist.all_gather_object(ranks, rank)
    return Ranks(
        parameters=tuple(rank.parameters for rank in ranks),
        buffers=tuple(rank.buffers for rank in ranks),
        observations=tuple(rank.observations for rank in ranks),
        communication=tuple(rank.communication for rank in ranks if not math.isnan(rank.communication)),
        roles=tuple(roles),
    )


def _tensors(observations: Any) -> Iterator[Any]:
    """Yield the tensors of observations, whose groups may be dicts of terms, or tuples."""
    if isinstance(observations, Mapping | tuple | list):
        parts = sorted(observations.items()) if isinstance(observations, Mapping) else enumerate(observations)
        for _, value in parts:
            yield from _tensors(value)
    else:
        yield observations


def _digest(tensors: Iterable[Any]) -> str:
    """Return the digest of the tensors' bytes. NumPy has no bfloat16, so every dtype is read as bytes."""
    import torch

    digest = hashlib.sha256()
    for tensor in tensors:
        # ``view(uint8)`` needs a last stride of 1. A slice with one value counts as contiguous with any stride.
        values = tensor.detach().reshape(-1).clone(memory_format=torch.contiguous_format)
        digest.update(values.view(torch.uint8).cpu().numpy())
    return digest.hexdigest()[:16]
