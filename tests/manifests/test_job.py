"""The arguments of a manifest, the names of jobs, and YAML documents."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any

import pytest

from rlnb.manifests.job import USES, Document, Request, job_name, merged, yaml


def test_objects_are_merged_at_any_depth_and_other_values_are_replaced() -> None:
    base: Document = {"spec": {"a": 1, "b": {"c": 2}}, "kind": "Job"}
    assert merged(base, {"spec": {"b": {"d": 3}, "a": None}}) == {
        "spec": {"a": None, "b": {"c": 2, "d": 3}},
        "kind": "Job",
    }
    assert base["spec"] == {"a": 1, "b": {"c": 2}}, "the base is unchanged"


def test_lists_of_named_objects_are_merged_by_name() -> None:
    first: Document = {"name": "a", "env": [{"name": "X", "value": "1"}]}
    base: Document = {"containers": [first, {"name": "b"}], "args": ["x"]}
    changes: Document = {
        "containers": [{"name": "a", "env": [{"name": "Y", "value": "2"}], "tty": True}, {"name": "c"}]
    }
    containers = [
        {"name": "a", "env": [{"name": "X", "value": "1"}, {"name": "Y", "value": "2"}], "tty": True},
        {"name": "b"},
        {"name": "c"},
    ]
    assert merged(base, {**changes, "args": ["y"]}) == {"containers": containers, "args": ["y"]}


def test_yaml_has_no_aliases_and_no_broken_lines() -> None:
    shared = {"x": "a" * 300}
    assert yaml({"one": shared, "two": [shared]}) == f"one:\n  x: {'a' * 300}\ntwo:\n  - x: {'a' * 300}\n"


def test_text_stays_text_for_readers_of_yaml_1_1() -> None:
    texts = ["Y", "YES", "no", "1", "010", "1:30", "true", "null", "0.5"]
    assert yaml({"env": texts, "count": 1}) == "env:\n" + "".join(f'  - "{text}"\n' for text in texts[:6]) + (
        "  - 'true'\n  - 'null'\n  - \"0.5\"\ncount: 1\n"
    )


def test_a_script_is_written_line_by_line() -> None:
    assert yaml({"run": "a\nb\n"}) == "run: |\n  a\n  b\n"


# -- names -----------------------------------------------------------------------------------------------------------


DNS_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
"""RFC 1035, which Kubeflow's PyTorchJob and TrainJob require of at most 63 characters."""
OSMO = re.compile(r"[a-zA-Z]([a-zA-Z0-9_-]*[a-zA-Z0-9])?")
"""NAMEREGEX of NVIDIA/OSMO, src/utils/job/common.py."""
SUFFIXES = ("-master-0", "-worker-999", "-node-0-999-x7f2k")
"""What PyTorchJob and TrainJob append for the pods of a job."""
IDS = (
    "20261126-082933-Isaac-Ant-Direct-rsl_rl-0dda",
    "20261126-082933-Isaac-Repose-Cube-Shadow-OpenAI-LSTM-Dir-rsl_rl-0dda",
    "20261126-082933-a_b.c-echo-0dda",
    "7",
)


@pytest.mark.parametrize("run_id", IDS)
def test_a_name_fits_every_service(run_id: str) -> None:
    name = job_name(run_id)
    assert DNS_LABEL.fullmatch(name), name
    assert OSMO.fullmatch(name), name
    assert all(len(name + suffix) <= 63 for suffix in SUFFIXES)


def test_names_of_two_runs_differ_even_if_they_are_cut() -> None:
    long = IDS[1]
    assert job_name(long) != job_name(long[:-4] + "1234")
    assert job_name(long).endswith("-0dda")
    assert job_name("20261126-082933-echo-echo-0dda") == "rlnb-20261126-082933-echo-echo-0dda"


# -- request ---------------------------------------------------------------------------------------------------------


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
