"""Render job scripts and manifests for a cluster that starts the nodes of a run itself."""

from __future__ import annotations

import io
import shlex
import sys
from collections.abc import Mapping
from typing import Literal

from rlnb.errors import RlnbError, unknown
from rlnb.launch.injected import InjectedLauncher
from rlnb.run.run import Run
from rlnb.spec import Json, Manifest

Form = Literal["shell", "sbatch", "pytorchjob", "osmo"]
FORMS = ("shell", "sbatch", "pytorchjob", "osmo")
PORT = 29500
"""Rendezvous port on the first node, unless the cluster chooses another."""


def render(
    run: Run, form: Form = "shell", *, image: str = "", python: str | None = None, claim: str = "", mount: str = ""
) -> str:
    """Return a job script or manifest that starts a run on a cluster.

    Only ``shell`` and ``sbatch`` have been tested on a live service.

    Args:
        run: Run created with ``launcher=rlnb.injected(nodes=..., nproc_per_node=...)``.
        form: ``"shell"``, the command to run on every node; ``"sbatch"``, a Slurm job script; ``"pytorchjob"``, a
            manifest for Kubeflow's training operator (kubeflow.org/v1); ``"osmo"``, a workflow of NVIDIA OSMO.
        image: Container image with Isaac Lab, rlnb and the plugins; required for pods.
        python: Interpreter on the nodes; None is ``python`` in an image, and the current interpreter elsewhere.
        claim: Name of the persistent volume claim that holds the run's folder (``pytorchjob``).
        mount: Path at which pods mount the claim; empty is rlnb's root on this machine.

    Raises:
        RlnbError: The run has another launcher, or an argument that the form needs is missing.
        NotFoundError: The form does not exist.
    """
    if form not in FORMS:
        raise unknown("form", form, FORMS)
    manifest = run.manifest
    if manifest.launcher != InjectedLauncher.name:
        raise RlnbError(
            f"{run.id} was already started by rlnb.{manifest.launcher}(). To start a run yourself, create it with "
            "rlnb.train(..., launcher=rlnb.injected(nodes=2, nproc_per_node=8))."
        )
    in_pods = form in ("pytorchjob", "osmo")
    if in_pods and not image:
        raise RlnbError(f'{form} needs image="...": a container image with Isaac Lab, rlnb and the plugins.')
    if form == "pytorchjob" and not claim:
        raise RlnbError('pytorchjob needs claim="...": the persistent volume claim that holds the folder of runs.')
    program = python or ("python" if in_pods else sys.executable)
    argv = [program, "-m", "rlnb.node", "--injected", str(run.path)]
    if form == "shell":
        return _shell(argv, manifest)
    if form == "sbatch":
        return _sbatch(argv, manifest)
    root = mount or str(run.path.parent.parent)
    if form == "osmo":
        return _yaml(_osmo(argv, manifest, image, root))
    return _yaml(_pytorchjob(argv, manifest, image, claim, root))


def _shell(argv: list[str], manifest: Manifest) -> str:
    nodes = manifest.resources.nodes
    where = f"MASTER_ADDR=FIRST_NODE MASTER_PORT={PORT} WORLD_SIZE={nodes}"
    by_hand = [f"{where} RANK={node} {shlex.join(argv)}" for node in range(nodes)]
    return "\n".join(
        [
            "# Run this on every node. MASTER_ADDR, MASTER_PORT, WORLD_SIZE and RANK (counting nodes) must be set.",
            shlex.join(argv),
            "# If the cluster does not set them, run one line per node, with the first node's address for FIRST_NODE:",
            *(f"# {line}" for line in by_hand),
            "",
        ]
    )


def _sbatch(argv: list[str], manifest: Manifest) -> str:
    nodes, gpus = manifest.resources.nodes, _gpus(manifest)
    lines = [
        "#!/usr/bin/env bash",
        f"#SBATCH --job-name={manifest.run_id}",
        f"#SBATCH --nodes={nodes}",
        "#SBATCH --ntasks-per-node=1",
        *([f"#SBATCH --gpus-per-node={gpus}"] if gpus else []),
        "#SBATCH --no-requeue",
        'export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)',
        f"export MASTER_PORT={PORT} WORLD_SIZE=$SLURM_NNODES",
        f"srun --kill-on-bad-exit=1 bash -c 'RANK=$SLURM_PROCID exec \"$@\"' rlnb {shlex.join(argv)}",
    ]
    return "\n".join(lines) + "\n"


def _pytorchjob(argv: list[str], manifest: Manifest, image: str, claim: str, mount: str) -> Mapping[str, Json]:
    """Return a PyTorchJob without nprocPerNode, so that the operator's WORLD_SIZE and RANK count pods."""
    gpus = _gpus(manifest)
    container: dict[str, Json] = {
        "name": "pytorch",  # the operator requires this name
        "image": image,
        "command": argv,
        "volumeMounts": [{"name": "runs", "mountPath": mount}, {"name": "shm", "mountPath": "/dev/shm"}],
        **({"resources": {"limits": {"nvidia.com/gpu": gpus}}} if gpus else {}),
    }
    volumes: list[Json] = [
        {"name": "runs", "persistentVolumeClaim": {"claimName": claim}},
        {"name": "shm", "emptyDir": {"medium": "Memory"}},
    ]
    template: Mapping[str, Json] = {"spec": {"containers": [container], "volumes": volumes}}
    counts = {"Master": 1, "Worker": manifest.resources.nodes - 1}
    replicas: dict[str, Json] = {
        kind: {"replicas": count, "restartPolicy": "Never", "template": template}
        for kind, count in counts.items()
        if count
    }
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": manifest.run_id[:60].strip("-")},
        "spec": {
            "runPolicy": {"cleanPodPolicy": "All", "backoffLimit": 0},
            "pytorchReplicaSpecs": replicas,
        },
    }


def _osmo(argv: list[str], manifest: Manifest, image: str, mount: str) -> Mapping[str, Json]:
    """Return an OSMO workflow: one group of tasks that start together and find each other through the first."""
    nodes, gpus = manifest.resources.nodes, _gpus(manifest)

    def task(node: int) -> dict[str, Json]:
        # OSMO replaces {{host:node0}} by the address of that task.
        where = f"MASTER_ADDR={{{{host:node0}}}} MASTER_PORT={PORT} WORLD_SIZE={nodes} RANK={node}"
        return {
            "name": f"node{node}",
            "image": image,
            **({"lead": True} if node == 0 else {}),
            "command": ["bash", "-c"],
            "args": [f"{where} exec {shlex.join(argv)}"],
            "volumeMounts": [f"{mount}:{mount}"],
        }

    return {
        "workflow": {
            "name": manifest.run_id,
            "resources": {"default": {"cpu": 8 * max(1, gpus), "memory": "64Gi", "storage": "64Gi", "gpu": gpus}},
            "groups": [{"name": "training", "tasks": [task(node) for node in range(nodes)]}],
        }
    }


def _gpus(manifest: Manifest) -> int:
    return 0 if manifest.resources.device == "cpu" else manifest.resources.nproc_per_node


def _yaml(document: Mapping[str, Json]) -> str:
    from ruamel.yaml import YAML

    yaml, text = YAML(), io.StringIO()
    yaml.width = 4096
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.representer.ignore_aliases = lambda *_: True
    yaml.dump(document, text)
    return text.getvalue()
