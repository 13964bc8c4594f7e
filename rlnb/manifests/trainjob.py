"""``"trainjob"``: a manifest for Kubeflow Trainer from version 2.2 on (trainer.kubeflow.org/v1alpha1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rlnb.errors import CheckError, Problem
from rlnb.manifests.job import Document, Request, merged, yaml
from rlnb.manifests.kubernetes import ANNOTATIONS, env_of, labels_of, mounts_of, resources_of, volumes_of
from rlnb.spec import Json

RUNTIME = "torch-distributed"
"""Runtime that Kubeflow installs for every namespace. It sets torchrun's variables, which count nodes."""
STEP = CONTAINER = "node"
"""Name of the runtime's job and of its container."""
PATCHES = frozenset(
    {
        *("affinity", "containers", "imagePullSecrets", "initContainers", "nodeSelector", "schedulingGates"),
        *("securityContext", "serviceAccountName", "terminationGracePeriodSeconds", "tolerations", "volumes"),
    }
)
"""Fields of a pod that a TrainJob may change in its runtime."""
CONTAINER_PATCHES = frozenset({"name", "env", "securityContext", "volumeMounts"})
"""Fields of a container, or of an init container, that it may change."""


def render(request: Request) -> str:
    return yaml(document(request))


def document(request: Request) -> Document:
    """Return a TrainJob whose pods the runtime starts; a patch adds the volumes and the user's template.

    Raises:
        CheckError: The template has a field that a TrainJob cannot change.
    """
    _check(request)
    labels = labels_of(request)
    pod: Document = {
        "metadata": {"annotations": ANNOTATIONS},
        "spec": {
            "containers": [{"name": CONTAINER, "volumeMounts": mounts_of(request)}],
            "volumes": volumes_of(request),
        },
    }
    step: Document = {"name": STEP, "template": {"spec": {"template": merged(pod, request.template)}}}
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": request.name, **({"labels": labels} if labels else {})},
        "spec": {
            "runtimeRef": {"name": RUNTIME},
            **({"activeDeadlineSeconds": request.limit_s} if request.limit_s else {}),
            "trainer": {
                "numNodes": request.nodes,
                "image": request.image,
                "command": [*request.argv],
                "env": env_of(request),
                "resourcesPerNode": resources_of(request),
            },
            "runtimePatches": [
                {"manager": "rlnb", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [step]}}}}
            ],
        },
    }


def _check(request: Request) -> None:
    spec = request.template.get("spec")
    problems = [*_problems(spec, "pod", PATCHES)]
    for kind in ("containers", "initContainers"):
        containers = spec.get(kind) if isinstance(spec, Mapping) else None
        for container in containers if isinstance(containers, list | tuple) else ():
            problems += _problems(container, "container", CONTAINER_PATCHES)
    if problems:
        raise CheckError(f"trainjob of {request.manifest.run_id}", problems)


def _problems(changes: Json, whose: str, fields: frozenset[str]) -> Iterator[Problem]:
    """Yield a problem for each change of a field that a TrainJob cannot change."""
    for name in changes if isinstance(changes, Mapping) else ():
        if name not in fields:
            yield Problem(
                what=f"template: a TrainJob cannot change {name!r} of a {whose}.",
                fix=f"Change it in the runtime, or use one of {', '.join(sorted(fields))}.",
            )
