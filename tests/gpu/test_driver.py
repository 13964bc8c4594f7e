"""The GPUs of the driver library are those of torch, and the usage curves show the GPU that is busy."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import pytest

from rlnb.machine.gpus import visible_gpus
from rlnb.node.usage import Gpus

pytestmark = [pytest.mark.gpu, pytest.mark.part(1)]

TORCHS = """
import json, torch
properties = [torch.cuda.get_device_properties(index) for index in range(torch.cuda.device_count())]
print(json.dumps([[f"GPU-{each.uuid}", each.name] for each in properties]))
"""
BUSY = """
import sys, torch
ballast = torch.empty(2**30, dtype=torch.uint8, device=sys.argv[1])
matrix = torch.rand(4096, 4096, device=sys.argv[1])
print("ready", flush=True)
while True:
    matrix @ matrix
    torch.cuda.synchronize()
"""
"""A process that holds a GiB of a GPU's memory and multiplies matrices until it is killed."""


def test_the_gpus_are_those_of_torch_in_its_order(device: str) -> None:
    """A process of its own asks torch, since this process must not initialise CUDA."""
    done = subprocess.run([sys.executable, "-c", TORCHS], capture_output=True, text=True, check=True)
    gpus = [(gpu.uuid.replace("MIG-", "GPU-"), gpu.model) for gpu in visible_gpus()]
    assert gpus == [tuple(gpu) for gpu in json.loads(done.stdout)]
    assert device == "cpu" or gpus


def test_the_usage_is_that_of_the_busy_gpu(device: str) -> None:
    if device == "cpu":
        pytest.skip("NVML counts GPUs only")
    gpus = Gpus([visible_gpus()[0].uuid])
    before = dict(gpus.sample())
    with subprocess.Popen([sys.executable, "-c", BUSY, device], stdout=subprocess.PIPE) as busy:
        try:
            assert busy.stdout is not None
            assert busy.stdout.readline() == b"ready\n"
            time.sleep(2.0)  # NVML's utilisation is an average over up to a second
            during = dict(gpus.sample())
        finally:
            busy.kill()
    assert during["gpu0_memory_gib"] - before["gpu0_memory_gib"] > 1.0
    if "gpu0_percent" in during:  # a MIG slice has none
        assert during["gpu0_percent"] > 50.0
