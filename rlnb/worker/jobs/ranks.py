"""The ranks of one training: their process group, and the proof that they learn as one."""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import timedelta
from typing import Any, NamedTuple

from rlnb.records.ranks import Ranks
from rlnb.worker.jobs import handshake


class Clock:
    """Times calls, as a share of the time since the first of them."""

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
        """Part of the time since the first call, 0 to 1; NaN without any."""
        return self._inside_s / (time.perf_counter() - self._start_s) if self._start_s else math.nan


@contextlib.contextmanager
def process_group(device: str, *, synchronised: bool = True) -> Iterator[Clock]:
    """Make the process group of a training with several ranks; do nothing for one.

    RL libraries make their own with nccl, which needs GPUs. Here it is made once, with gloo on a CPU; what the
    libraries call later finds it made.

    Args:
        device: Device of this rank.
        synchronised: False leaves out every sum over ranks: the negative control of a proof of synchronisation.

    Yields:
        A clock of the time that this rank spends in sums over all of them.
    """
    clock = Clock()
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield clock
        return
    import torch
    import torch.distributed as dist

    on_gpu = device.startswith("cuda")
    if on_gpu:
        torch.cuda.set_device(device)
    store, rank, world_size = next(dist.rendezvous("env://", timeout=timedelta(seconds=handshake.WITHIN_S)))
    handshake.meet(store, rank, world_size)
    # The first limit holds for the handshake only: NCCL finds its peers through this store at the first sum, later.
    store.set_timeout(dist.default_pg_timeout)
    dist.init_process_group("nccl" if on_gpu else "gloo", store=store, rank=rank, world_size=world_size)
    replaced: list[tuple[Any, str, Any]] = [(dist, "init_process_group", _done)]
    if not on_gpu:
        replaced.append((torch.cuda, "set_device", _done))
    if not synchronised:
        replaced.append((dist, "all_reduce", _done))
    elif not on_gpu:  # there they go on meanwhile, so the call says nothing
        replaced.append((dist, "all_reduce", clock.timed(dist.all_reduce)))
    with contextlib.ExitStack() as undo:
        for module, name, stand_in in replaced:
            undo.callback(setattr, module, name, getattr(module, name))
            setattr(module, name, stand_in)
        yield clock
    if dist.is_initialized():  # a library may have ended it
        dist.destroy_process_group()


def _done(*_: object, **__: object) -> None:
    """Stand in for what has been done already."""


def watch_reset(env: Any) -> Callable[[], str]:
    """Return a function that gives the digest of the env's first observations, once it was reset.

    They show the seed of the env alone: later ones depend on the policy's too.
    """
    raw, digests = env.unwrapped, [""]
    reset = raw.reset

    def noting(*arguments: Any, **options: Any) -> Any:
        result = reset(*arguments, **options)
        digests[0] = digests[0] or _digest(_tensors(result[0]))
        return result

    raw.reset = noting
    return lambda: digests[0]


class _Rank(NamedTuple):
    """The part of one rank in :class:`rlnb.records.ranks.Ranks`."""

    parameters: str
    buffers: str
    observations: str
    communication: float


def compare(modules: Iterable[Any], observations: str, communication: float = math.nan) -> Ranks:
    """Return digests of all ranks: of the parameters and statistics that they learned, and of their observations.

    Args:
        modules: The trained ``torch.nn.Module`` objects of this rank.
        observations: Digest of this rank's first observations.
        communication: Share of its time that this rank spent in sums over all of them; NaN leaves it out.
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
    )


def _tensors(observations: Any) -> Iterator[Any]:
    """Yield the tensors of an observation dict, whose groups may be dicts of terms."""
    if isinstance(observations, Mapping):
        for _, value in sorted(observations.items()):
            yield from _tensors(value)
    else:
        yield observations


def _digest(tensors: Iterable[Any]) -> str:
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(tensor.detach().cpu().numpy().tobytes())
    return digest.hexdigest()[:16]
