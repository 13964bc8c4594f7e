"""The names of jobs fit the rules of Kubernetes, Kubeflow and OSMO."""

from __future__ import annotations

import re

import pytest

from rlnb.manifests.job import job_name

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
