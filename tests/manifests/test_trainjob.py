"""The manifest of a TrainJob."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ruamel.yaml import YAML

import rlnb
from rlnb.manifests import trainjob
from rlnb.manifests.job import Request, merged

Make = Callable[..., Request]
Check = Callable[[Any], None]


def rendered(made: Request) -> Any:
    return YAML(typ="safe").load(trainjob.render(made))


def pod_of(document: Any) -> Any:
    """Return the pod that Kubeflow's runtime makes of a TrainJob: its own container with the trainer and the patch."""
    trainer = document["spec"]["trainer"]
    container = {
        "name": "node",
        **{name: trainer[name] for name in ("image", "command", "env")},
        "resources": trainer["resourcesPerNode"],
    }
    (patch,) = document["spec"]["runtimePatches"]
    (step,) = patch["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]
    assert step["name"] == "node"
    return merged({"spec": {"containers": [container]}}, step["template"]["spec"]["template"])


def test_it_fits_the_schemas_of_kubeflow_and_kubernetes(
    request_of: Make, check_resource: Check, check_pod: Check
) -> None:
    template = {"spec": {"tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}], "nodeSelector": {"a": "b"}}}
    for arguments in ({}, {"template": template, "queue": "robots", "walltime_s": 60.0}):
        document = rendered(request_of("trainjob", **arguments))
        check_resource(document)
        check_pod(pod_of(document))


def test_the_trainer_has_the_command_and_the_patch_the_volumes(request_of: Make) -> None:
    made = request_of("trainjob", walltime_s=3600.0, queue="robots")
    document = rendered(made)
    spec = document["spec"]
    assert document["metadata"] == {"name": made.name, "labels": {"kueue.x-k8s.io/queue-name": "robots"}}
    assert (spec["runtimeRef"], spec["activeDeadlineSeconds"]) == ({"name": "torch-distributed"}, 4200)
    assert (spec["trainer"]["numNodes"], spec["trainer"]["image"]) == (3, made.image)
    assert spec["trainer"]["command"] == ["python", "-P", "-m", "rlnb.pods", str(made.path)]
    pod = pod_of(document)
    assert pod["metadata"]["annotations"] == {"sidecar.istio.io/inject": "false"}
    assert {volume["name"] for volume in pod["spec"]["volumes"]} == {"runs", "shm"}
    assert len(pod["spec"]["containers"]) == 1


def test_a_field_that_a_trainjob_cannot_change_is_refused(request_of: Make) -> None:
    with pytest.raises(rlnb.CheckError, match="'hostNetwork' of a pod"):
        trainjob.render(request_of("trainjob", template={"spec": {"hostNetwork": True}}))


@pytest.mark.parametrize("kind", ["containers", "initContainers"])
def test_a_field_of_a_container_that_a_trainjob_cannot_change_is_refused(request_of: Make, kind: str) -> None:
    template = {"spec": {kind: [{"name": "node", "imagePullPolicy": "Always", "env": []}]}}
    with pytest.raises(rlnb.CheckError, match="'imagePullPolicy' of a container") as caught:
        trainjob.render(request_of("trainjob", template=template))
    assert "'env'" not in str(caught.value)


def test_the_fields_that_it_may_change_are_those_of_kubeflow(crds: dict[str, Any]) -> None:
    schema = crds["TrainJob"]["properties"]["spec"]["properties"]["runtimePatches"]["items"]
    for name in ("trainingRuntimeSpec", "template", "spec", "replicatedJobs"):
        schema = schema["properties"][name]
    schema = schema["items"]
    for name in ("template", "spec", "template", "spec"):
        schema = schema["properties"][name]
    assert set(schema["properties"]) == trainjob.PATCHES
    for kind in ("containers", "initContainers"):
        assert set(schema["properties"][kind]["items"]["properties"]) == trainjob.CONTAINER_PATCHES
