"""NVIDIA's management library (NVML): the use of GPUs, and the memory that processes hold there.

Without the library or a driver, there are no GPUs. Queries to NVML use no GPU memory.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from types import ModuleType
from typing import Any

GIB = 2**30


class Gpus:
    """NVIDIA GPUs of this node, by index or UUID."""

    def __init__(self, names: Sequence[str]) -> None:
        self._handles: dict[int, Any] = {}
        self._nvml: Any = _library()
        if (nvml := self._nvml) is None:
            return
        for number, name in enumerate(names):
            by_index = name.isdecimal()
            find = nvml.nvmlDeviceGetHandleByIndex if by_index else nvml.nvmlDeviceGetHandleByUUID
            with contextlib.suppress(nvml.NVMLError):
                self._handles[number] = find(int(name) if by_index else name)

    def sample(self) -> Iterator[tuple[str, float]]:
        """Yield the utilisation (percent) and the memory in use (GiB) of each GPU, summed over all processes."""
        for number, handle in self._handles.items():
            with contextlib.suppress(self._nvml.NVMLError):  # a MIG slice reports no utilisation
                yield f"gpu{number}_percent", float(self._nvml.nvmlDeviceGetUtilizationRates(handle).gpu)
            with contextlib.suppress(self._nvml.NVMLError):
                yield f"gpu{number}_memory_gib", self._nvml.nvmlDeviceGetMemoryInfo(handle).used / GIB


def process_memory_bytes(pids: Collection[int]) -> int:
    """Return the memory of all GPUs that these processes hold together.

    The result is 0 below WSL and in a container with its own process ids, where the driver reports nothing.
    """
    if not pids or (nvml := _library()) is None:
        return 0
    total = 0
    with contextlib.suppress(nvml.NVMLError):
        for index in range(nvml.nvmlDeviceGetCount()):
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
            held: dict[int, int] = defaultdict(int)
            for list_processes in (
                nvml.nvmlDeviceGetComputeRunningProcesses,
                nvml.nvmlDeviceGetGraphicsRunningProcesses,
            ):
                with contextlib.suppress(nvml.NVMLError):
                    for process in list_processes(handle):
                        # A process that computes and renders is in both lists, each time with all of its memory.
                        held[process.pid] = max(held[process.pid], process.usedGpuMemory or 0)
            total += sum(held[pid] for pid in pids)
    return total


def _library() -> ModuleType | None:
    """Return NVML, ready for calls; None if the package, the library or the driver is missing."""
    try:
        import pynvml
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    return pynvml
