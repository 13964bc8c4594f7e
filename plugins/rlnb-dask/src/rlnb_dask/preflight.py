"""The checks before ranks start: equal versions, cores and GPUs, a shared folder, a network between the nodes."""

from __future__ import annotations

import shlex
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from distributed import Client, Future
from distributed.scheduler import KilledWorker

from rlnb.launchers import DetachedJob
from rlnb_dask import clocks, hardware, node
from rlnb_dask import sources as source_files
from rlnb_dask.node import NodeFacts, where
from rlnb_dask.packages import SIMULATION, modules, packages
from rlnb_dask.sources import Sources

LEAST_FREE_BYTES = 50 * 2**20
ANSWER_S = 90.0
"""Seconds that a node has to answer; a node whose file system hangs never does."""
POLL_S = 0.1


class NodeGone(Exception):
    """A node was lost during the checks; the message names the node."""


class Unanswered(Exception):
    """Some nodes gave no answer; each argument names a node and the reason."""


def problems(client: Client, workers: Sequence[str], job: DetachedJob, go_on: Callable[[], None]) -> list[str]:
    """Return a line for each problem of a node; an empty list if the training can start.

    Args:
        client: Client of the cluster.
        workers: Addresses of the nodes' workers, in order.
        job: The job that will run on the nodes.
        go_on: Called repeatedly while the nodes answer; an exception from it ends the wait.

    Raises:
        NodeGone: A node was lost meanwhile.
    """
    try:
        return _Look(client, workers, go_on).problems(job)
    except Unanswered as exc:
        return list(exc.args)


class _Look:
    """One round of checks of all nodes."""

    def __init__(self, client: Client, workers: Sequence[str], go_on: Callable[[], None]) -> None:
        self._client, self._workers, self._go_on = client, workers, go_on

    def problems(self, job: DetachedJob) -> list[str]:
        folder = job.path / ".preflight"
        folder.mkdir(exist_ok=True)
        python = shlex.split(job.manifest.python or "")
        in_place = list(job.command.argv[: len(python)]) == python  # otherwise a container has the interpreter
        names, manifest = packages(), job.manifest
        contained = bool(manifest.launcher_settings.get("container")) or not in_place
        answers = {
            worker: self._client.submit(
                *(node.look, str(folder), f"node{number}", names, manifest.asset_root),
                python=manifest.python if in_place else None,
                modules=modules(),
                on_gpus=manifest.resources.device != "cpu",
                contained=contained,
                workers=[worker],
                pure=False,
            )
            for number, worker in enumerate(self._workers)
        }
        # If this raises, the folder stays: a node that hangs may still write to it.
        nodes: list[NodeFacts] = list(self._answers(answers).values())
        lines = [*_own_problems(nodes), *differences(nodes, names), *foreign(nodes, ours(manifest.versions))]
        lines = lines or other_sources(nodes, source_files.sources_of(modules()))
        lines += [*hardware.problems(nodes, hardware.needs(job)), *clocks.problems(nodes, self._ahead())]
        if not lines and len(nodes) > 1:
            lines = [*self._blind(nodes, str(folder)), *self._unreached(nodes)]
        shutil.rmtree(folder, ignore_errors=True)
        return lines

    def _answers(self, answers: Mapping[str, Future]) -> dict[str, Any]:
        """Return each node's answer by its worker's address.

        Raises:
            Unanswered: Some nodes gave no answer.
            NodeGone: A node was lost.
        """
        deadline = time.monotonic() + ANSWER_S
        while not all(answer.done() for answer in answers.values()) and time.monotonic() < deadline:
            self._go_on()
            time.sleep(POLL_S)
        lines = []
        for worker, answer in answers.items():
            name = f"node {self._workers.index(worker)} ({host_of(worker)})"
            if not answer.done():
                lines.append(f"{name} has not answered for {ANSWER_S:.0f} s. Check its file systems")
            elif answer.status == "error" and not isinstance(why := answer.exception(), KilledWorker):
                lines.append(f"{name} cannot be checked: {type(why).__name__}: {why}")
            elif answer.status != "finished":
                raise NodeGone(f"{name} was lost during the check")
        if lines:
            raise Unanswered(*lines)
        return {worker: answer.result() for worker, answer in answers.items()}

    def _ahead(self) -> list[float]:
        """Return the seconds by which each node's clock is ahead of this machine's."""
        begin_s = time.time()
        answers = {worker: self._client.submit(time.time, workers=[worker], pure=False) for worker in self._workers}
        times = self._answers(answers)
        end_s = time.time()
        return [clocks.ahead_s(times[worker], begin_s, end_s) for worker in self._workers]

    def _blind(self, nodes: Sequence[NodeFacts], folder: str) -> list[str]:
        """Return a line for each node that does not see the other nodes' files.

        Each node checks only for the files of the first node and of its predecessor, so that the work grows linearly.
        """
        answers = {
            worker: self._client.submit(
                *(node.sees, folder, sorted({"node0", f"node{(number - 1) % len(nodes)}"})),
                workers=[worker],
                pure=False,
            )
            for number, worker in enumerate(self._workers)
        }
        return [
            f"{where(number, nodes[number])} does not see the files of {', '.join(missing)} in {folder}. "
            "Set rlnb.options.root to a folder on a file system that all nodes share"
            for number, missing in enumerate(self._answers(answers).values())
            if missing
        ]

    def _unreached(self, nodes: Sequence[NodeFacts]) -> list[str]:
        """Return a line for each node that cannot connect to the first."""
        first, *others = self._workers
        host = host_of(first)
        port = self._answers({first: self._client.submit(node.listen, workers=[first], pure=False)})[first]
        answers = {
            worker: self._client.submit(node.reaches, host, port, workers=[worker], pure=False) for worker in others
        }
        return [
            f"{where(number, nodes[number])} cannot connect to {where(0, nodes[0])} at {host}:{port}: {why}. "
            'Check the firewall, or select the network with the argument interface, such as interface="ib0"'
            for number, why in enumerate(self._answers(answers).values(), start=1)
            if why
        ]


def differences(nodes: Sequence[NodeFacts], names: Sequence[str]) -> list[str]:
    """Return a line for each package whose version on a node differs from the most common one.

    Args:
        nodes: All nodes, in order.
        names: Distributions to compare, in addition to Python itself.
    """
    answers = [(number, facts) for number, facts in enumerate(nodes) if facts.versions]
    lines = []
    for package in ("python", *names):
        versions = [facts.versions.get(package, "unknown") for _, facts in answers]
        usual, _ = (Counter(versions).most_common(1) or [("none", 0)])[0]
        lines += [
            f"{where(number, facts)}: {package} {version}, but most nodes have {usual}"
            for (number, facts), version in zip(answers, versions, strict=True)
            if version != usual
        ]
    return lines


def ours(names: Iterable[str]) -> dict[str, str]:
    """Return the versions of rlnb and of the plugins in the notebook, whose interpreter also runs this process.

    The versions in the manifest are those of the day on which the run was created. A resumed run may have newer ones.

    Args:
        names: The packages in a manifest. For a script, they also include those of the script's own interpreter.
    """
    others = {"python", "isaacsim", *SIMULATION} - {"rlnb"}
    versions = {name: node.version(name) for name in names if name not in others}
    return {name: version for name, version in versions.items() if version != "none"}


def foreign(nodes: Sequence[NodeFacts], ours: Mapping[str, str]) -> list[str]:
    """Return a line for each package of which nodes have another version than the notebook.

    A plugin that only the notebook has is no problem. If the training needs it, the ranks say so.

    Args:
        nodes: All nodes, in order.
        ours: The notebook's versions of rlnb and of the plugins, by distribution.
    """
    lines = []
    for package, version in ours.items():
        versions = [{facts.versions.get(package, "none"), *_of_agent(package, facts)} for facts in nodes]
        others = [(number, sorted(theirs - {version, "none"})) for number, theirs in enumerate(versions)]
        if others := [(number, theirs) for number, theirs in others if version and theirs]:
            number, theirs = others[0]
            more = f" and {len(others) - 1} more" if len(others) > 1 else ""
            lines.append(
                f"{where(number, nodes[number])}{more}: {package} {theirs[0]}, but the notebook has {version}. "
                "Use the notebook's environment on the nodes"
            )
    return lines


def other_sources(nodes: Sequence[NodeFacts], ours: Sources) -> list[str]:
    """Return a line for each node with other sources of rlnb or of its plugins than the notebook.

    Args:
        nodes: All nodes, in order. Their versions are those of the notebook.
        ours: The notebook's sources.
    """
    clauses: dict[str, list[int]] = {}
    for number, facts in enumerate(nodes):
        for clause in dict.fromkeys(one for theirs in facts.sources for one in source_files.differences(theirs, ours)):
            clauses.setdefault(clause, []).append(number)
    return [
        f"{where(first, nodes[first])}{f' and {len(more)} more' if more else ''}: {clause}, though the version is the "
        "same. Use the notebook's environment on the nodes; PYTHONPATH may name another checkout"
        for clause, (first, *more) in clauses.items()
    ]


def _of_agent(package: str, facts: NodeFacts) -> Iterator[str]:
    if package == "rlnb" and facts.agent_rlnb:
        yield facts.agent_rlnb


def _own_problems(nodes: Sequence[NodeFacts]) -> list[str]:
    """Return a line for each node with a problem of its own."""
    lines = [f"{where(number, facts)}: {facts.problem}" for number, facts in enumerate(nodes) if facts.problem]
    return lines + [
        f"{where(number, facts)}: only {facts.free_bytes / 2**20:.0f} MiB are free in the run's folder"
        for number, facts in enumerate(nodes)
        if facts.free_bytes is not None and facts.free_bytes < LEAST_FREE_BYTES
    ]


def host_of(address: str) -> str:
    """Return the host of a Dask address."""
    return address.split("://")[-1].rpartition(":")[0].strip("[]")
