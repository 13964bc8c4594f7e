"""Requests to render, without a run on the disk, and the schemas of Kubernetes and of Kubeflow's resources.

``kubeflow_crds.json`` holds the names, types and bounds of fields out of Kubeflow's resource definitions (Apache-2.0);
its first lines name the files. Pods are checked with the package kubernetes-validate, as a strict API server does.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from rlnb.manifests.job import Request
from rlnb.spec import Manifest, Resources, Task

RUN_ID = "20261126-082933-Isaac-Repose-Cube-Shadow-OpenAI-LSTM-Dir-rsl_rl-0dda"
ARGUMENTS = {
    "image": "registry.example/isaaclab-rlnb:3.0",
    "claim": "runs-pvc",
    "secrets": {"WANDB_API_KEY": "wandb/api-key"},
    "template": {"resources": {"accelerators": "H100:8"}},
}
"""Arguments that some forms need and others refuse."""
USED: dict[str, tuple[str, ...]] = {
    "pytorchjob": ("image", "claim", "secrets"),
    "trainjob": ("image", "claim", "secrets"),
    "osmo": ("image", "secrets"),
    "skypilot": ("image", "claim", "secrets", "template"),
    "dlc": ("image", "claim"),
}


@pytest.fixture
def request_of() -> Callable[..., Request]:
    """Returns a function that makes the request of a form for a run on 3 nodes with 8 GPUs each."""

    def make(form: str, *, nodes: int = 3, ranks: int = 8, device: str = "cuda", **arguments: Any) -> Request:
        manifest = Manifest(
            run_id=RUN_ID,
            created="2026-11-26T08:29:33+00:00",
            task=Task(id="T"),
            library="echo",
            resources=Resources(device=device, nodes=nodes, nproc_per_node=ranks),
            launcher="injected",
            launcher_settings={"walltime_s": arguments.pop("walltime_s", None), "max_restarts": 3},
            asset_root=arguments.pop("asset_root", None),
        )
        defaults = {name: ARGUMENTS[name] for name in USED.get(form, ())}
        if form == "dlc":
            arguments["template"] = {"workspace_id": "12345", **arguments.get("template", {})}
        path = Path("/mnt/workspace/rlnb-runs/runs") / RUN_ID
        return Request(path=path, manifest=manifest, form=form, **{**defaults, **arguments})

    return make


@pytest.fixture(scope="session")
def crds() -> dict[str, Any]:
    """The schemas of Kubeflow's resources, by kind."""
    crds: dict[str, Any] = json.loads((Path(__file__).parent / "kubeflow_crds.json").read_text(encoding="utf-8"))
    return crds


@pytest.fixture
def check_resource(crds: dict[str, Any]) -> Callable[[Any], None]:
    """Returns a function that checks a resource of Kubeflow. Fields that its definition does not have are errors."""
    return lambda document: jsonschema.Draft202012Validator(crds[document["kind"]]).validate(document)


@pytest.fixture
def check_pod() -> Callable[[Any], None]:
    """Returns a function that checks a pod template, strictly."""
    validate = pytest.importorskip("kubernetes_validate")

    def check(template: Any) -> None:
        metadata = {"name": "pod", **template.get("metadata", {})}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
        validate.validate(pod, validate.latest_version(), strict=True)

    return check
