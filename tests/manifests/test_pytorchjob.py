"""The manifest of a PyTorchJob."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML

from rlnb.manifests import pytorchjob
from rlnb.manifests.job import Request

Make = Callable[..., Request]
Check = Callable[[Any], None]
TEMPLATE = {
    "metadata": {"labels": {"team": "robots"}},
    "spec": {
        "nodeSelector": {"gpu": "h100"},
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
        "imagePullSecrets": [{"name": "registry"}],
        "containers": [{"name": "pytorch", "securityContext": {"runAsUser": 1000}}],
    },
}


def rendered(made: Request) -> Any:
    return YAML(typ="safe").load(pytorchjob.render(made))


def test_it_fits_the_schemas_of_kubeflow_and_kubernetes(
    request_of: Make, check_resource: Check, check_pod: Check
) -> None:
    for arguments in ({}, {"template": TEMPLATE, "queue": "robots", "walltime_s": 60.0}):
        document = rendered(request_of("pytorchjob", **arguments))
        check_resource(document)
        for replica in document["spec"]["pytorchReplicaSpecs"].values():
            check_pod(replica["template"])


def test_the_schemas_find_a_wrong_field(request_of: Make, check_resource: Check, check_pod: Check) -> None:
    document = rendered(request_of("pytorchjob"))
    document["spec"]["runPolicy"]["backoff"] = 3
    with pytest.raises(jsonschema.ValidationError, match="backoff"):
        check_resource(document)
    pod = document["spec"]["pytorchReplicaSpecs"]["Master"]["template"]
    pod["spec"]["containers"][0]["commands"] = []
    with pytest.raises(jsonschema.ValidationError, match="commands"):
        check_pod(pod)


def test_a_master_and_workers_are_started_again_and_see_the_runs(request_of: Make) -> None:
    made = request_of("pytorchjob")
    document = rendered(made)
    assert document["metadata"] == {"name": made.name}
    assert document["spec"]["runPolicy"]["backoffLimit"] == 4, "one more than the restarts of the run"
    replicas = document["spec"]["pytorchReplicaSpecs"]
    assert {kind: replicas[kind]["replicas"] for kind in replicas} == {"Master": 1, "Worker": 2}
    for replica in replicas.values():
        assert replica["restartPolicy"] == "OnFailure"
        template = replica["template"]
        assert template["metadata"]["annotations"] == {"sidecar.istio.io/inject": "false"}
        (container,) = template["spec"]["containers"]
        assert (container["name"], container["image"]) == ("pytorch", made.image)
        assert container["command"] == ["python", "-P", "-m", "rlnb.pods", str(made.path)]
    assert list(rendered(request_of("pytorchjob", nodes=1))["spec"]["pytorchReplicaSpecs"]) == ["Master"]


def test_the_template_is_merged_into_the_pods(request_of: Make) -> None:
    pod = rendered(request_of("pytorchjob", template=TEMPLATE))["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]
    assert pod["metadata"] == {"annotations": {"sidecar.istio.io/inject": "false"}, "labels": {"team": "robots"}}
    assert pod["spec"]["nodeSelector"] == {"gpu": "h100"}
    (container,) = pod["spec"]["containers"]
    assert container["securityContext"] == {"runAsUser": 1000}
    assert container["command"], "the container keeps its own fields"


def test_a_queue_and_a_walltime_reach_the_operator(request_of: Make) -> None:
    document = rendered(request_of("pytorchjob", queue="robots", walltime_s=3600.0))
    assert document["metadata"]["labels"] == {"kueue.x-k8s.io/queue-name": "robots"}
    assert document["spec"]["runPolicy"]["schedulingPolicy"] == {"minAvailable": 3, "queue": "robots"}
    assert document["spec"]["runPolicy"]["activeDeadlineSeconds"] == 4200
