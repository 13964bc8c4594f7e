"""GPU memory of processes, against a stand-in for NVIDIA's management library."""

from __future__ import annotations

import sys
import types

import pytest

from rlnb.machine import nvml

NVML = """
from types import SimpleNamespace

class NVMLError(Exception): pass
COMPUTE = [[(10, 300), (11, 40), (99, 7000)], [(10, 60), (12, None)]]  # (pid, bytes) of each card
GRAPHICS = [[(10, 300), (13, 5)], None]
def nvmlInit(): pass
def nvmlDeviceGetCount(): return 2
def nvmlDeviceGetHandleByIndex(index): return index
def _processes(listed):
    if listed is None: raise NVMLError("not supported")
    return [SimpleNamespace(pid=pid, usedGpuMemory=held) for pid, held in listed]
def nvmlDeviceGetComputeRunningProcesses(card): return _processes(COMPUTE[card])
def nvmlDeviceGetGraphicsRunningProcesses(card): return _processes(GRAPHICS[card])
"""


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    module = types.ModuleType("pynvml")
    exec(NVML, vars(module))
    monkeypatch.setitem(sys.modules, "pynvml", module)
    return module


@pytest.mark.parametrize(
    ("pids", "held"),
    [((), 0), ((1,), 0), ((10,), 360), ((10, 11), 400), ((12,), 0), ((10, 11, 12, 13), 405)],
    ids=["none", "not on a GPU", "computes and renders", "two", "not reported", "all"],
)
def test_the_memory_of_processes_is_summed_over_the_gpus(
    library: types.ModuleType, pids: tuple[int, ...], held: int
) -> None:
    assert nvml.process_memory_bytes(pids) == held


def test_a_machine_without_a_driver_or_the_package_holds_none(
    library: types.ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise library.NVMLError("Driver Not Loaded")  # type: ignore[attr-defined]

    monkeypatch.setattr(library, "nvmlInit", fail)
    assert nvml.process_memory_bytes([10]) == 0
    assert [*nvml.Gpus(["0"]).sample()] == []
    monkeypatch.setitem(sys.modules, "pynvml", None)  # type: ignore[arg-type]
    assert nvml.process_memory_bytes([10]) == 0
    assert [*nvml.Gpus(["0"]).sample()] == []
