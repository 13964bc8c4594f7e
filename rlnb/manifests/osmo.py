"""``"osmo"``: a workflow of NVIDIA OSMO."""

from __future__ import annotations

import shlex

from rlnb.manifests.job import PORT, Document, Request, merged, yaml
from rlnb.spec import Json

STORAGE = "64Gi"
"""Disk of each task; its results are on the mounted folder."""
RESCHEDULED = "137,3001-3004,3006"
"""Exit statuses of a task that OSMO starts again, while the other tasks wait for it.

The memory of the task ran out (137), the service failed or could not start it (3001 to 3003), or the task was evicted
(3004) or preempted (3006). By default, OSMO starts only a preempted task again (its guide, "Exit Actions").
"""


def render(request: Request) -> str:
    return yaml(document(request))


def document(request: Request) -> Document:
    """Return a workflow of one group of tasks, which start together and find each other through the first."""
    workflow: Document = {
        "name": request.name,
        **({"pool": request.queue} if request.queue else {}),
        **({"timeout": {"exec_timeout": f"{request.limit_s}s"}} if request.limit_s else {}),
        "resources": {
            "default": {
                "cpu": request.pod_cpus,
                "memory": f"{request.pod_memory_gib}Gi",
                "storage": STORAGE,
                "gpu": request.gpus,
            }
        },
        "groups": [{"name": "training", "tasks": [_task(request, node) for node in range(request.nodes)]}],
    }
    return {"workflow": merged(workflow, request.template)}


def _task(request: Request, node: int) -> Json:
    # OSMO replaces {{host:node0}} by the address of that task.
    where = f"MASTER_ADDR={{{{host:node0}}}} MASTER_PORT={PORT} WORLD_SIZE={request.nodes} RANK={node}"
    credentials: dict[str, dict[str, Json]] = {}
    for variable, reference in request.secrets.items():
        name, _, key = reference.partition("/")
        credentials.setdefault(name, {})[variable] = key
    shm = ["/dev/shm"] if request.gpus > 1 else []
    return {
        "name": f"node{node}",
        "image": request.image,
        **({"lead": True} if node == 0 else {}),
        "command": ["bash", "-c"],
        "args": [f"{where} exec {shlex.join(request.argv)}"],
        "environment": request.pod_env,
        **({"credentials": credentials} if credentials else {}),
        "volumeMounts": [f"{request.root}:{request.root}", *shm],
        "exitActions": {"RESCHEDULE": RESCHEDULED},
    }
