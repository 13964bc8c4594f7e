"""The task of SkyPilot."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from typing import Any

import pytest
from ruamel.yaml import YAML

import rlnb
from rlnb.manifests import skypilot
from rlnb.manifests.job import Request

Make = Callable[..., Request]
FIELDS = {"name", "num_nodes", "resources", "volumes", "envs", "secrets", "setup", "run", "config"}
"""Fields of a task in SkyPilot's documentation."""


def rendered(made: Request) -> Any:
    return YAML(typ="safe").load(skypilot.render(made))


def test_it_requests_the_nodes_and_mounts_the_volume(request_of: Make) -> None:
    made = request_of("skypilot")
    task = rendered(made)
    assert set(task) <= FIELDS
    assert (task["name"], task["num_nodes"]) == (made.name, 3)
    assert task["resources"] == {
        "image_id": f"docker:{made.image}",
        "cpus": "64+",
        "memory": "256+",
        "accelerators": "H100:8",
    }
    assert task["volumes"] == {"/mnt/workspace/rlnb-runs": "runs-pvc"}
    assert task["secrets"] == {"WANDB_API_KEY": None}, "SkyPilot asks for it at the launch"
    assert task["envs"]["NCCL_DEBUG"] == "WARN"


def test_the_variables_of_skypilot_become_those_of_a_pod(request_of: Make) -> None:
    script = rendered(request_of("skypilot", python="/usr/bin/env"))["run"]
    variables = {
        "SKYPILOT_NODE_IPS": "10.0.0.1\n10.0.0.2",
        "SKYPILOT_NUM_NODES": "2",
        "SKYPILOT_NODE_RANK": "1",
        "PATH": os.environ["PATH"],
    }
    script = script[: script.index("exec")] + "env"
    lines = subprocess.check_output(["bash", "-c", script], env=variables, text=True).splitlines()
    assert {"MASTER_ADDR=10.0.0.1", "MASTER_PORT=29500", "WORLD_SIZE=2", "RANK=1"} <= set(lines)


def test_gpus_without_a_model_are_refused(request_of: Make) -> None:
    with pytest.raises(rlnb.CheckError, match=r'template=\{"resources": \{"accelerators": "H100:8"\}\}'):
        skypilot.render(request_of("skypilot", template={}))
    assert "accelerators" not in rendered(request_of("skypilot", template={}, device="cpu"))["resources"]
