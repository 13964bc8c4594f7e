"""``"skypilot"``: a task of SkyPilot on Kubernetes, for ``sky jobs launch`` or ``sky launch``."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from rlnb.errors import CheckError, Problem
from rlnb.manifests.job import PORT, Document, Request, merged, yaml


def render(request: Request) -> str:
    return yaml(document(request))


def document(request: Request) -> Document:
    """Return a task. SkyPilot counts nodes in SKYPILOT_NODE_RANK and lists their addresses, that of the head first.

    Raises:
        CheckError: The template does not name the GPUs, which SkyPilot requests by their model.
    """
    task: Document = {
        "name": request.name,
        "num_nodes": request.nodes,
        "resources": {
            "image_id": f"docker:{request.image}",
            "cpus": f"{request.pod_cpus}+",
            "memory": f"{request.pod_memory_gib}+",
        },
        "volumes": {request.root: request.claim},
        "envs": request.pod_env,
        **({"secrets": dict.fromkeys(request.secrets)} if request.secrets else {}),
        "run": _script(request),
    }
    task = merged(task, request.template)
    resources = task["resources"]
    if request.gpus and isinstance(resources, Mapping) and not resources.get("accelerators"):
        fix = f'template={{"resources": {{"accelerators": "H100:{request.gpus}"}}}}'
        what = f"skypilot needs the model of the {request.gpus} GPUs of each node."
        raise CheckError(f"skypilot of {request.manifest.run_id}", [Problem(what=what, fix=fix)])
    return task


def _script(request: Request) -> str:
    return (
        f'export MASTER_ADDR=$(echo "$SKYPILOT_NODE_IPS" | head -n 1) MASTER_PORT={PORT}\n'
        "export WORLD_SIZE=$SKYPILOT_NUM_NODES RANK=$SKYPILOT_NODE_RANK\n"
        f"exec {shlex.join(request.argv)}\n"
    )
