"""Job scripts and manifests, as text, for a cluster that starts the nodes of a run itself."""

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
"""Of the first node, where the ranks meet, where nobody else chooses it."""


def render(
    run: Run, form: Form = "shell", *, image: str = "", python: str | None = None, claim: str = "", mount: str = ""
) -> str:
    """Return what starts a run on a cluster; none of it has been tried on a live service but ``shell`` and ``sbatch``.

    Args:
        run: One that was made with ``launcher=rlnb.injected(nodes=..., nproc_per_node=...)``.
        form: ``"shell"``, the command of every node; ``"sbatch"``, a job script of Slurm; ``"pytorchjob"``, a manifest
            of Kubeflow's training operator (kubeflow.org/v1); ``"osmo"``, a workflow of NVIDIA OSMO.
        image: Container image with Isaac Lab, rlnb and the plugins; pods need one.
        python: Interpreter there; None is ``python`` in an image, and elsewhere this one.
        claim: Name of the persistent volume claim that holds the run's folder (``pytorchjob``).
        mount: Where pods find it; None is the root of this machine's runs.

    Raises:
        RlnbError: The run starts its nodes itself, or something that the form needs is missing.
        NotFoundError: There is no such form.
    """
    if form not in FORMS:
        raise unknown("form", form, FORMS)
    manifest = run.manifest
    if manifest.launcher != InjectedLauncher.name:
        raise RlnbError(
            f"{run.id} is started by rlnb.{manifest.launcher}() itself. A run for other starters is made with "
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
            "# Each node runs this, with MASTER_ADDR, MASTER_PORT, WORLD_SIZE and RANK (of nodes) from what starts it.",
            shlex.join(argv),
            "# Where nothing sets them, a line for each node by hand, the first node's address in place of FIRST_NODE:",
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
    """Return a PyTorchJob, whose operator counts pods in WORLD_SIZE and RANK where it is told of no processes."""
    gpus = _gpus(manifest)
    container: dict[str, Json] = {
        "name": "pytorch",  # the name that the operator looks for
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
    """Return an OSMO workflow: a group of tasks that start together, whose first is the one that the others find."""
    nodes, gpus = manifest.resources.nodes, _gpus(manifest)

    def task(node: int) -> dict[str, Json]:
        # OSMO puts the address of a task where its token stands.
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
