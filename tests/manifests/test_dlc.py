"""The command that submits a job to PAI-DLC."""

from __future__ import annotations

import shlex
from collections.abc import Callable

import pytest

import rlnb
from rlnb.manifests import dlc
from rlnb.manifests.job import Request

Make = Callable[..., Request]


def flags(text: str) -> dict[str, str]:
    """Return the parameters of the command, as a shell passes them."""
    command = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    words = shlex.split(command.replace("\\\n", " "))
    assert words[:3] == ["dlc", "submit", "pytorchjob"]
    return dict(word.removeprefix("--").split("=", 1) for word in words[3:])


def test_it_has_the_parameters_of_the_client(request_of: Make) -> None:
    made = request_of("dlc", queue="quota123", walltime_s=90.0, template={"workspace_id": 270969, "priority": "5"})
    assert flags(dlc.render(made)) == {
        "name": made.name,
        "workers": "3",
        "worker_image": made.image,
        "worker_cpu": "64",
        "worker_memory": "256Gi",
        "worker_shared_memory": "64Gi",
        "worker_gpu": "8",
        "data_sources": "runs-pvc",
        "resource_id": "quota123",
        "job_max_running_time_minutes": "12",
        "envs": "OMP_NUM_THREADS=8,NCCL_DEBUG=WARN",
        "workspace_id": "270969",
        "priority": "5",
        "command": f"python -P -m rlnb.pods {made.path}",
    }


def test_an_instance_type_replaces_the_size(request_of: Make) -> None:
    text = dlc.render(request_of("dlc", template={"worker_spec": "ecs.gn7i-c8g1.2xlarge"}))
    names = {name for name in flags(text) if name.startswith("worker_")}
    assert names == {"worker_spec", "worker_image"}
    assert "#   workers: 3, each with ecs.gn7i-c8g1.2xlarge\n" in text


def test_comments_name_the_fields_of_the_console(request_of: Make) -> None:
    text = dlc.render(request_of("dlc"))
    assert "#   workers: 3, each with 64 cores, 256 GiB, shared memory 64 GiB, 8 GPUs\n" in text
    assert "#   dataset: runs-pvc, mounted so that /mnt/workspace/rlnb-runs is the folder of runs\n" in text


def test_values_that_the_client_would_misread_are_refused(request_of: Make) -> None:
    with pytest.raises(rlnb.CheckError, match="3 problems") as caught:
        dlc.render(request_of("dlc", env={"A": "1,2", "B": 'say "a"'}, template={"tags": ["x"]}))
    assert "A='1,2' has a comma or a quotation mark" in str(caught.value)


def test_a_command_without_a_workspace_is_refused(request_of: Make) -> None:
    with pytest.raises(rlnb.CheckError, match=r'template=\{"workspace_id": "12345"\}'):
        dlc.render(request_of("dlc", template={"workspace_id": ""}))
