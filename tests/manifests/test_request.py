"""The arguments of render(), and the size and environment of a pod."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from rlnb.manifests.job import USES, Request

Make = Callable[..., Request]


def test_the_environment_has_threads_warnings_and_assets_and_no_vendors_terms(request_of: Make) -> None:
    assert request_of("osmo", asset_root="/mnt/assets").pod_env == {
        "OMP_NUM_THREADS": "8",
        "NCCL_DEBUG": "WARN",
        "ISAACSIM_ASSET_ROOT": "/mnt/assets",
    }
    alone = request_of("osmo", nodes=1, ranks=1, cpus=6, env={"ACCEPT_EULA": "Y"})
    assert alone.pod_env == {"OMP_NUM_THREADS": "6", "ACCEPT_EULA": "Y"}
    assert request_of("osmo", env={"OMP_NUM_THREADS": "1"}).pod_env["OMP_NUM_THREADS"] == "1"


def test_the_size_of_a_pod_follows_its_gpus_or_ranks(request_of: Make) -> None:
    def size(made: Request) -> tuple[int, int, int]:
        return made.pod_cpus, made.pod_memory_gib, made.shm_gib

    assert size(request_of("osmo")) == (64, 256, 64)
    assert size(request_of("osmo", device="cpu", ranks=2)) == (4, 16, 4)
    assert size(request_of("osmo", cpus=12, memory_gib=100)) == (12, 100, 25)


def test_an_image_has_its_own_interpreter(request_of: Make) -> None:
    assert request_of("osmo").argv[:4] == ["python", "-P", "-m", "rlnb.pods"]
    assert request_of("sbatch").argv[0] == sys.executable
    assert request_of("sbatch", python="/env/bin/python").argv[0] == "/env/bin/python"


def test_a_limit_leaves_time_to_start_and_to_save(request_of: Make) -> None:
    assert request_of("osmo", walltime_s=3600.0).limit_s == 4200
    assert request_of("osmo").limit_s is None


def problems(made: Request) -> list[str]:
    return [problem.what for problem in made.problems()]


@pytest.mark.parametrize("form", USES)
def test_the_usual_arguments_of_a_form_are_no_problem(request_of: Make, form: str) -> None:
    assert problems(request_of(form)) == []


@pytest.mark.parametrize(
    ("form", "arguments", "expected"),
    [
        ("trainjob", {"image": "", "claim": ""}, ["trainjob needs a container image", "trainjob needs the persistent"]),
        ("dlc", {"claim": ""}, ["dlc needs the id of the dataset"]),
        ("shell", {"image": "i", "cpus": 3}, ["shell does not use cpus=", "shell does not use image="]),
        ("dlc", {"secrets": {"A": "b/c"}}, ["dlc does not use secrets="]),
        ("osmo", {"mount": "/data"}, ["mount='/data' does not contain /mnt/workspace/rlnb-runs/runs/"]),
        ("osmo", {"cpus": 0, "memory_gib": 1.5}, ["cpus=0 is not", "memory_gib=1.5 is not"]),
        ("osmo", {"env": {"A B": "1"}}, ["'A B' is not the name of an environment variable"]),
        ("osmo", {"env": {"PET_NNODES": "1"}}, ["PET_NNODES gives a pod its place"]),
        ("osmo", {"env": {"A": 1}}, ["A=1 is not a line of text"]),
        ("osmo", {"secrets": {"KEY": "my-key"}}, ["KEY='my-key' is not the name of a secret and of a key"]),
        ("sbatch", {"lines": ["a\nb"]}, ["is not one line of text"]),
    ],
)
def test_every_wrong_argument_is_a_problem(
    request_of: Make, form: str, arguments: dict[str, Any], expected: list[str]
) -> None:
    found = problems(request_of(form, **arguments))
    assert len(found) == len(expected), found
    for what, words in zip(found, expected, strict=True):
        assert words in what
