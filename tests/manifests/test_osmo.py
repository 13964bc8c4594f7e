"""The workflow of NVIDIA OSMO."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ruamel.yaml import YAML

from rlnb.manifests import osmo
from rlnb.manifests.job import Request

Make = Callable[..., Request]
WORKFLOW = {"name", "pool", "labels", "timeout", "resources", "tasks", "groups"}
TASK = {
    *("name", "image", "lead", "command", "args", "environment", "credentials", "inputs", "outputs", "files"),
    *("resource", "volumeMounts", "exitActions", "checkpoint", "privileged", "hostNetwork"),
}
"""Fields of a workflow and of a task in OSMO's documentation, which refuses others."""


def rendered(made: Request) -> Any:
    return YAML(typ="safe").load(osmo.render(made))["workflow"]


def test_its_tasks_form_a_group_and_connect_to_its_first_task(request_of: Make) -> None:
    made = request_of("osmo", nodes=2, walltime_s=3600.0, queue="robots")
    workflow = rendered(made)
    assert set(workflow) <= WORKFLOW
    assert (workflow["name"], workflow["pool"], workflow["timeout"]) == (made.name, "robots", {"exec_timeout": "4200s"})
    assert workflow["resources"]["default"] == {"cpu": 64, "memory": "256Gi", "storage": "64Gi", "gpu": 8}
    (group,) = workflow["groups"]
    assert [(task["name"], task.get("lead", False)) for task in group["tasks"]] == [("node0", True), ("node1", False)]
    task = group["tasks"][1]
    assert set(task) <= TASK
    assert task["args"] == [
        f"MASTER_ADDR={{{{host:node0}}}} MASTER_PORT=29500 WORLD_SIZE=2 RANK=1 exec python -P -m rlnb.pods {made.path}"
    ]
    assert task["environment"] == {"OMP_NUM_THREADS": "8", "NCCL_DEBUG": "WARN"}
    assert task["credentials"] == {"wandb": {"WANDB_API_KEY": "api-key"}}
    assert task["volumeMounts"] == ["/mnt/workspace/rlnb-runs:/mnt/workspace/rlnb-runs", "/dev/shm"]
    assert task["exitActions"] == {"RESCHEDULE": "137,3001-3004,3006"}


def test_the_template_is_merged_into_the_workflow(request_of: Make) -> None:
    template = {
        "resources": {"default": {"platform": "dgx-h100"}},
        "groups": [{"name": "training", "tasks": [{"name": "node0", "privileged": True}]}],
    }
    workflow = rendered(request_of("osmo", nodes=2, template=template))
    assert workflow["resources"]["default"]["platform"] == "dgx-h100"
    assert workflow["resources"]["default"]["gpu"] == 8
    assert [task.get("privileged") for task in workflow["groups"][0]["tasks"]] == [True, None]
