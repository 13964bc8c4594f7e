"""Parts of a pod in Kubernetes: environment, limits and volumes."""

from __future__ import annotations

from rlnb.manifests.job import Document, Request
from rlnb.spec import Json

ANNOTATIONS: Document = {"sidecar.istio.io/inject": "false"}
"""Annotations of a pod. With a proxy of Istio beside them, ranks do not reach each other."""
KUEUE = "kueue.x-k8s.io/queue-name"


def env_of(request: Request) -> list[Json]:
    """Return the environment of a container; secrets are references (core/v1 EnvVar)."""
    variables: list[Json] = [{"name": name, "value": value} for name, value in request.pod_env.items()]
    for variable, reference in request.secrets.items():
        name, _, key = reference.partition("/")
        variables.append({"name": variable, "valueFrom": {"secretKeyRef": {"name": name, "key": key}}})
    return variables


def resources_of(request: Request) -> Document:
    """Return the limits of a container, which are its requests too (core/v1 ResourceRequirements)."""
    gpus = {"nvidia.com/gpu": request.gpus} if request.gpus else {}
    return {"limits": {"cpu": request.pod_cpus, "memory": f"{request.pod_memory_gib}Gi", **gpus}}


def volumes_of(request: Request) -> list[Json]:
    """Return the volumes of a pod: the folder of runs, and shared memory, of which NCCL needs more than 64 MiB."""
    return [
        {"name": "runs", "persistentVolumeClaim": {"claimName": request.claim}},
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": f"{request.shm_gib}Gi"}},
    ]


def mounts_of(request: Request) -> list[Json]:
    """Return the places of these volumes in a container."""
    return [{"name": "runs", "mountPath": request.root}, {"name": "shm", "mountPath": "/dev/shm"}]


def labels_of(request: Request) -> Document:
    """Return the labels of the job, by which Kueue admits it to a queue."""
    return {KUEUE: request.queue} if request.queue else {}
