"""The place of a pod among the pods of its run, from the environment that the cluster has set."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from rlnb.errors import RlnbError
from rlnb.launch.injected import NODE_VARIABLES
from rlnb.node.peers import Member

RESOLVE_S = 60.0
"""Seconds that the name of the first pod has to resolve. A cluster publishes it some seconds after that pod's start."""
POLL_S = 0.5


def member_of(run_dir: Path, nodes: int, gpus: int, environ: Mapping[str, str]) -> Member:
    """Return this pod's place in a run.

    Args:
        run_dir: Folder of the run.
        nodes: Nodes that the run needs.
        gpus: GPUs that the run's ranks need on each node. NPROC_PER_NODE, the GPUs of a pod, must not be lower.
        environ: The environment.

    Raises:
        RlnbError: A variable is missing, or the pods do not fit the run.
    """
    texts = {name: environ.get(torchrun) or environ.get(name, "") for name, torchrun in NODE_VARIABLES.items()}
    if lacking := [name for name, text in texts.items() if not text]:
        raise RlnbError(
            f"{', '.join(lacking)} {'are' if len(lacking) > 1 else 'is'} not set. PAI-DLC, Volcano and Kubeflow's "
            "PyTorchJob set such variables in each pod, and TrainJob those of torchrun. Elsewhere, set them yourself: "
            "print(run.job_script()) has a line for each node."
        )
    if wrong := [f"{name}={texts[name]!r}" for name in ("WORLD_SIZE", "RANK") if not texts[name].isdigit()]:
        raise RlnbError(f"{', '.join(wrong)} is not a whole number. Set it to a number of nodes.")
    pods, node = int(texts["WORLD_SIZE"]), int(texts["RANK"])
    if pods != nodes or node >= pods:
        raise RlnbError(
            f"RANK={node} of WORLD_SIZE={pods} pods does not fit {run_dir.name}, which needs {nodes} nodes. Use one "
            "pod for each node; both variables count nodes, not processes."
        )
    pod_gpus = environ.get("NPROC_PER_NODE", "")
    if pod_gpus.isdigit() and 0 < int(pod_gpus) < gpus:
        raise RlnbError(
            f"NPROC_PER_NODE={pod_gpus} is too small: {run_dir.name} has {gpus} ranks on GPUs of each node. Give each "
            f"pod {gpus} GPUs."
        )
    return Member(node, nodes, f"{texts['MASTER_ADDR']}:{texts['MASTER_PORT']}")


def node_of(nodes: int, environ: Mapping[str, str]) -> int | None:
    """Return the number of this pod's node, even if other variables are wrong; None if it has no valid number.

    Args:
        nodes: Nodes that the run needs. The pod of a run on one node is node 0.
        environ: The environment.
    """
    text = environ.get(NODE_VARIABLES["RANK"]) or environ.get("RANK", "")
    if nodes == 1:
        return 0
    return int(text) if text.isdigit() and int(text) < nodes else None


def check_master(member: Member, over: Callable[[], bool]) -> None:
    """Wait until the name of the first pod resolves.

    Args:
        member: This pod's place.
        over: Returns whether the job has ended meanwhile, which ends the wait.

    Raises:
        RlnbError: The name does not resolve.
    """
    host = member.master.rpartition(":")[0].strip("[]")
    deadline = time.monotonic() + RESOLVE_S
    while member.nodes > 1 and not over():
        try:
            socket.getaddrinfo(host, None)
            return
        except OSError as exc:
            if time.monotonic() > deadline:
                raise RlnbError(
                    f"MASTER_ADDR={host} does not resolve on {member} after {RESOLVE_S:.0f} s: {exc}. Use the name of "
                    "the first pod's headless service, or its address."
                ) from exc
        time.sleep(POLL_S)
