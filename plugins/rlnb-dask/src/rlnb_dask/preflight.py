"""Before ranks are started: whether the nodes are alike, see one folder, and reach each other."""

from __future__ import annotations

import shlex
import shutil
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from distributed import Client, Future
from distributed.scheduler import KilledWorker

from rlnb import HostedJob
from rlnb_dask import node

PACKAGES = (
    *("rlnb", "torch", "isaaclab", "warp-lang", "newton", "jax"),
    *("rsl-rl-lib", "rl-games", "skrl", "stable-baselines3"),
    *("rlnb-rsl-rl", "rlnb-rl-games", "rlnb-skrl", "rlnb-sb3", "rlnb-tasks", "rlnb-dask"),
)
LEAST_FREE_BYTES = 50 * 2**20
ANSWER_S = 90.0
"""Seconds that a node has for an answer: a mount that hangs never gives one."""
POLL_S = 0.1


class NodeGone(Exception):
    """A node went away while it was looked at; says which."""


class Unanswered(Exception):
    """Nodes do not answer, or cannot; its arguments say which and why."""


def problems(client: Client, workers: Sequence[str], job: HostedJob, go_on: Callable[[], None]) -> list[str]:
    """Return what is wrong with which node, in words; nothing where a training can begin.

    Args:
        client: Of the cluster.
        workers: Addresses of the nodes' workers, in order.
        job: What is to run there.
        go_on: Called while nodes are waited for; what it raises ends the waiting.

    Raises:
        NodeGone: One went away meanwhile.
    """
    try:
        return _problems(client, workers, job, go_on)
    except Unanswered as exc:
        return list(exc.args)


def _problems(client: Client, workers: Sequence[str], job: HostedJob, go_on: Callable[[], None]) -> list[str]:
    shared = job.path / ".preflight"
    shared.mkdir(exist_ok=True)
    python = shlex.split(job.manifest.python or "")
    in_place = list(job.command.argv[: len(python)]) == python  # else it is a container's
    names = {worker: f"node{number}" for number, worker in enumerate(workers)}
    asked = {
        worker: client.submit(
            *(node.look, str(shared), name, PACKAGES, job.manifest.asset_root),
            python=job.manifest.python if in_place else None,
            workers=[worker],
            pure=False,
        )
        for worker, name in names.items()
    }
    found = _answers(workers, asked, go_on)  # who hangs may still be about to write: then the folder stays
    wrong = [
        f"{where(number, found[w])}: {found[w]['problem']}" for number, w in enumerate(workers) if found[w]["problem"]
    ]
    wrong += _differences(workers, found)
    wrong += [
        f"{where(number, found[w])}: only {found[w]['free_bytes'] / 2**20:.0f} MiB are free where the run is written"
        for number, w in enumerate(workers)
        if found[w].get("free_bytes", LEAST_FREE_BYTES) < LEAST_FREE_BYTES
    ]
    if not wrong and len(workers) > 1:
        wrong = _apart(client, workers, found, str(shared), go_on)
    shutil.rmtree(shared, ignore_errors=True)
    return wrong


def _answers(workers: Sequence[str], asked: dict[str, Future], go_on: Callable[[], None]) -> dict[str, Any]:
    """Return what each node answers.

    Raises:
        Unanswered: Some do not.
        NodeGone: One is not there any more.
    """
    deadline = time.monotonic() + ANSWER_S
    while not all(answer.done() for answer in asked.values()) and time.monotonic() < deadline:
        go_on()
        time.sleep(POLL_S)
    wrong = []
    for worker, answer in asked.items():
        name = f"node {workers.index(worker)} ({host_of(worker)})"
        if not answer.done():
            wrong.append(f"{name} has not answered for {ANSWER_S:.0f} s: does a file system hang there?")
        elif answer.status == "error" and not isinstance(why := answer.exception(), KilledWorker):
            wrong.append(f"{name} cannot be looked at: {type(why).__name__}: {why}")
        elif answer.status != "finished":
            raise NodeGone(f"{name} went away while it was looked at")
    if wrong:
        raise Unanswered(*wrong)
    return {worker: answer.result() for worker, answer in asked.items()}


def where(number: int, found: dict[str, Any]) -> str:
    """Return the name of a node for a person."""
    return f"node {number} ({found['host']})"


def _differences(workers: Sequence[str], found: dict[str, dict[str, Any]]) -> list[str]:
    """Return which nodes have other versions than most."""
    named = [(number, worker) for number, worker in enumerate(workers) if found[worker]["versions"]]
    wrong = []
    for package in ("python", *PACKAGES):
        versions = [found[worker]["versions"].get(package, "unknown") for _, worker in named]
        usual, _ = (Counter(versions).most_common(1) or [("none", 0)])[0]
        wrong += [
            f"{where(number, found[worker])}: {package} {version}, where the others have {usual}"
            for (number, worker), version in zip(named, versions, strict=True)
            if version != usual
        ]
    return wrong


def _apart(
    client: Client, workers: Sequence[str], found: dict[str, dict[str, Any]], shared: str, go_on: Callable[[], None]
) -> list[str]:
    """Return which nodes do not see what others wrote, or do not reach the first.

    Each looks for what the first and the node before it wrote, so that the work grows with the nodes only.
    """
    first, *others = workers
    count = len(workers)
    looking = {
        worker: client.submit(
            node.sees, shared, sorted({"node0", f"node{(number - 1) % count}"}), workers=[worker], pure=False
        )
        for number, worker in enumerate(workers)
    }
    seen = _answers(workers, looking, go_on)
    wrong = [
        f"{where(number, found[worker])} does not see what {', '.join(seen[worker])} wrote to {shared}: "
        "the run's folder has to be on a file system that all nodes share (rlnb.options.root)"
        for number, worker in enumerate(workers)
        if seen[worker]
    ]
    host = host_of(first)
    port = _answers(workers, {first: client.submit(node.listen, workers=[first], pure=False)}, go_on)[first]
    asked = {w: client.submit(node.reaches, host, port, workers=[w], pure=False) for w in others}
    reached = _answers(workers, asked, go_on)
    return wrong + [
        f"{where(number, found[worker])} does not reach {where(0, found[first])} at {host}:{port}: {reached[worker]}. "
        'A firewall, or the wrong network: interface="ib0", say, names the right one'
        for number, worker in enumerate(others, start=1)
        if reached[worker]
    ]


def host_of(address: str) -> str:
    """Return the host of a Dask address."""
    return address.split("://")[-1].rpartition(":")[0].strip("[]")
