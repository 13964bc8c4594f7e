"""The cores and GPUs of the nodes, compared with the ranks of a training and between nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rlnb.launchers import DetachedJob, DetachedLauncher
from rlnb.plugin import GpuFacts
from rlnb_dask.node import NodeFacts, where

RANKS = "--nproc_per_node="
"""Argument of torchrun in the command of a job with several ranks on each node."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Needs:
    """The hardware that a job needs on each node."""

    ranks: int
    """Ranks on each node."""
    device: str
    """Device of the run: ``"cpu"``, ``"cuda"``, ``"cuda:1"`` or ``"auto"``."""
    gpu_ranks: int | None = None
    """Ranks on each node that use a GPU, if the device is one; None is all."""
    gpus_per_node: int = 0
    """GPUs that the job has requested from a queue."""
    queue: str = ""
    """Name of the queue's launcher; empty for a Dask cluster of the user."""

    @property
    def gpus(self) -> int:
        """GPUs of each node that the ranks use."""
        number = self.device.partition(":")[2]
        ranks = self.ranks if self.gpu_ranks is None else self.gpu_ranks
        return int(number) + 1 if number.isdigit() else ranks


def needs(job: DetachedJob) -> Needs:
    """Return the needs of a job. An evaluation of a run with several ranks has one rank."""
    manifest, argv = job.manifest, job.command.argv
    ranks = next((int(text.removeprefix(RANKS)) for text in argv if text.startswith(RANKS)), 1)
    gpus = manifest.launcher_settings.get("gpus_per_node", 0)
    with_gpu = DetachedLauncher.gpu_ranks(manifest)
    return Needs(
        ranks=ranks,
        gpu_ranks=with_gpu if with_gpu < ranks > 1 else None,
        device=manifest.resources.device,
        gpus_per_node=gpus if isinstance(gpus, int) else 0,
        queue="" if manifest.launcher == "dask" else manifest.launcher,
    )


def problems(nodes: Sequence[NodeFacts], needs: Needs) -> list[str]:
    """Return a line for each node whose cores or GPUs do not suffice, or differ from those of most nodes.

    Args:
        nodes: All nodes, in order.
        needs: The needs of the job.
    """
    uses_gpus = needs.device.startswith("cuda") or (
        needs.device == "auto" and (needs.gpus_per_node > 0 or any(facts.gpus and facts.gpus.names for facts in nodes))
    )
    lines = [*_few_cores(nodes, needs)] if uses_gpus or needs.queue else []
    if not uses_gpus:
        return lines
    few = [*_few_gpus(nodes, needs)]
    # Without a GPU, the names and the driver say nothing more.
    return [*lines, *few, *_builds(nodes), *([] if few else _differences(nodes))]


def _few_cores(nodes: Sequence[NodeFacts], needs: Needs) -> Iterator[str]:
    for number, facts in enumerate(nodes):
        if facts.cores is not None and facts.cores < needs.ranks:
            fix = f"Use rlnb.{needs.queue}(cpus_per_node={4 * needs.ranks})" if needs.queue else "Use larger workers"
            cores = f"{facts.cores} core{'s' if facts.cores > 1 else ''}"
            yield f"{where(number, facts)} has {cores} for {needs.ranks} ranks. {fix}, or fewer ranks"


def _few_gpus(nodes: Sequence[NodeFacts], needs: Needs) -> Iterator[str]:
    for number, facts in enumerate(nodes):
        if facts.gpus is None or len(facts.gpus.names) >= needs.gpus:
            continue
        count = len(facts.gpus.names)
        gpus = f"{count} GPUs" if count > 1 else "1 GPU" if count else "no GPU"
        ranks = f"{needs.ranks} rank{'s' if needs.ranks > 1 else ''} on device={needs.device!r}"
        yield f"{where(number, facts)}: CUDA finds {gpus} for {ranks}. {_more_gpus(facts.gpus, needs)}"


def _more_gpus(gpus: GpuFacts, needs: Needs) -> str:
    """Return the way to more GPUs on a node."""
    if not gpus.driver:
        return "Select nodes with an NVIDIA driver; nvidia-smi shows it"
    if needs.queue and needs.gpus_per_node < needs.gpus:
        return f"Use rlnb.{needs.queue}(gpus_per_node={needs.gpus}), or fewer ranks"
    return "Check CUDA_VISIBLE_DEVICES in the job and nvidia-smi on the node, or use fewer ranks"


def _builds(nodes: Sequence[NodeFacts]) -> Iterator[str]:
    """Yield a line for each node whose GPUs the ranks' torch cannot use."""
    for number, facts in enumerate(nodes):
        if facts.gpus is None or facts.gpus.torch_cuda is None or not facts.gpus.names:
            continue
        build, limit = facts.gpus.torch_cuda, facts.gpus.driver_cuda
        if not build:
            yield f"{where(number, facts)}: torch is a CPU build, which uses no GPU. Install a CUDA build of torch"
        elif _major(build) > _major(limit):
            yield (
                f"{where(number, facts)}: torch is built for CUDA {build}, but the driver {facts.gpus.driver} supports "
                f"only CUDA {limit}. Update the driver, or install a torch built for CUDA {_major(limit)}"
            )


def _differences(nodes: Sequence[NodeFacts]) -> Iterator[str]:
    """Yield a line for each node with other GPUs, or a driver of another branch, than most nodes."""
    aspects: tuple[tuple[Callable[[GpuFacts], str], str], ...] = (
        (_names, 'Select nodes of one kind with the argument directives, such as directives=["--constraint=h100"]'),
        (_branch, "Leave the node out, or install the same driver on all nodes"),
    )
    answers = [(number, facts, facts.gpus) for number, facts in enumerate(nodes) if facts.gpus is not None]
    for text, fix in aspects:
        usual = Counter(text(gpus) for _, _, gpus in answers).most_common(1)
        for number, facts, gpus in answers:
            if text(gpus) != usual[0][0]:
                yield f"{where(number, facts)} has {text(gpus)}, but most nodes have {usual[0][0]}. {fix}"


def _names(gpus: GpuFacts) -> str:
    """Return the kinds of the GPUs. A node may have more of a kind than the others; the ranks leave them alone."""
    return " and ".join(sorted(set(gpus.names)))


def _branch(gpus: GpuFacts) -> str:
    """Return the branch of the driver. Versions of one branch work together, and nodes are updated one by one."""
    return f"an NVIDIA driver of branch {_major(gpus.driver)}"


def _major(version: str) -> int:
    first = version.partition(".")[0]
    return int(first) if first.isdigit() else 0
