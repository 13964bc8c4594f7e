"""The parts of a pod in Kubernetes."""

from __future__ import annotations

from collections.abc import Callable

from rlnb.manifests import kubernetes
from rlnb.manifests.job import Request

Make = Callable[..., Request]


def test_secrets_are_references_and_never_values(request_of: Make) -> None:
    assert kubernetes.env_of(request_of("trainjob", ranks=1, nodes=1))[1:] == [
        {"name": "WANDB_API_KEY", "valueFrom": {"secretKeyRef": {"name": "wandb", "key": "api-key"}}}
    ]


def test_a_pod_has_limits_and_shared_memory_with_a_limit(request_of: Make) -> None:
    made = request_of("trainjob", cpus=16, memory_gib=64)
    assert kubernetes.resources_of(made) == {"limits": {"cpu": 16, "memory": "64Gi", "nvidia.com/gpu": 8}}
    assert kubernetes.resources_of(request_of("trainjob", device="cpu", ranks=1)) == {
        "limits": {"cpu": 2, "memory": "8Gi"}
    }
    assert kubernetes.volumes_of(made) == [
        {"name": "runs", "persistentVolumeClaim": {"claimName": "runs-pvc"}},
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "16Gi"}},
    ]
    assert kubernetes.mounts_of(made) == [
        {"name": "runs", "mountPath": "/mnt/workspace/rlnb-runs"},
        {"name": "shm", "mountPath": "/dev/shm"},
    ]


def test_a_queue_is_kueues_label(request_of: Make) -> None:
    assert kubernetes.labels_of(request_of("trainjob", queue="robots")) == {"kueue.x-k8s.io/queue-name": "robots"}
    assert not kubernetes.labels_of(request_of("trainjob"))
