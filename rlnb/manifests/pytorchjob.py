"""``"pytorchjob"``: a manifest for version 1 of Kubeflow's training operator (kubeflow.org/v1)."""

from __future__ import annotations

from rlnb.manifests.job import Document, Request, merged, yaml
from rlnb.manifests.kubernetes import ANNOTATIONS, env_of, labels_of, mounts_of, resources_of, volumes_of
from rlnb.spec import Json

CONTAINER = "pytorch"
"""Name of the container, which the operator requires."""


def render(request: Request) -> str:
    return yaml(document(request))


def document(request: Request) -> Document:
    """Return a PyTorchJob without nprocPerNode, so that the operator's WORLD_SIZE and RANK count pods.

    The operator ends the job once its pods were started again ``backoffLimit`` times, all together.
    """
    counts = {"Master": 1, "Worker": request.nodes - 1}
    template = merged(_pod(request), request.template)
    replicas: dict[str, Json] = {
        kind: {"replicas": count, "restartPolicy": "OnFailure", "template": template}
        for kind, count in counts.items()
        if count
    }
    labels = labels_of(request)
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": request.name, **({"labels": labels} if labels else {})},
        "spec": {
            "runPolicy": {
                "cleanPodPolicy": "All",
                "backoffLimit": request.max_restarts + 1,
                **({"activeDeadlineSeconds": request.limit_s} if request.limit_s else {}),
                # Volcano reads this policy. Without Volcano the operator ignores it.
                "schedulingPolicy": {
                    "minAvailable": request.nodes,
                    **({"queue": request.queue} if request.queue else {}),
                },
            },
            "pytorchReplicaSpecs": replicas,
        },
    }


def _pod(request: Request) -> Document:
    container: Document = {
        "name": CONTAINER,
        "image": request.image,
        "command": [*request.argv],
        "env": env_of(request),
        "resources": resources_of(request),
        "volumeMounts": mounts_of(request),
    }
    return {
        "metadata": {"annotations": ANNOTATIONS},
        "spec": {"containers": [container], "volumes": volumes_of(request)},
    }
