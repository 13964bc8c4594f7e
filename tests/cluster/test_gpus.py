"""A job with GPUs on a real Slurm whose GPUs are other devices, so that CUDA finds none of them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from runs_on_nodes import LEAVE_S, echo, processes, wait_until

import rlnb


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.skipif(Path("/proc/driver/nvidia").exists(), reason="CUDA finds the GPUs of this machine")
def test_a_job_gets_cores_for_its_gpus_and_nodes_without_cuda_are_named(slurm_with_gpus: Any, clean: Path) -> None:
    run = echo(rlnb.slurm(nodes=2, gpus_per_node=2, walltime="00:10:00"), 10)
    with pytest.raises(rlnb.RunError, match="2 problems with the nodes; no rank was started") as error:
        run.wait(120)
    for number in range(2):
        assert f"node {number} (" in str(error.value)
    assert str(error.value).count("CUDA finds no GPU for 2 ranks on device='auto'.") == 2
    (job,) = json.loads(run.jobs[-1].folder.submitted.read_text())["jobs"]
    facts = subprocess.run(["scontrol", "show", "job", job], capture_output=True, text=True, check=True).stdout
    for fact in ("NumCPUs=16", "CPUs/Task=8", "MinMemoryNode=32G", "TresPerNode=gres:gpu:2"):
        assert fact in facts, facts
    wait_until(lambda: not processes(run) and not slurm_with_gpus.jobs(), LEAVE_S)
