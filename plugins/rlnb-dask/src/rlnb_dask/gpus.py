"""The GPUs of a node, as CUDA and torch see them in the interpreter of the ranks."""

from __future__ import annotations

import inspect
import json
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ANSWER_S = 60.0
"""Seconds that CUDA has to list the GPUs; a driver that loads for the first time takes some."""
DRIVER = Path("/proc/driver/nvidia/version")


@dataclass(frozen=True, kw_only=True, slots=True)
class GpuFacts:
    """Facts about a node's GPUs and about the software that uses them."""

    names: tuple[str, ...] = ()
    """Name of each GPU that the job may use."""
    driver: str = ""
    """Version of the NVIDIA driver; empty without a driver."""
    driver_cuda: str = ""
    """Highest CUDA version that the driver supports; empty if libcuda does not load."""
    torch_cuda: str | None = None
    """CUDA version that the ranks' torch was built for, empty for a CPU build; None if unknown."""


def look(python: str | None, contained: bool = False) -> GpuFacts:
    """Return the facts about this node's GPUs.

    Args:
        python: Command of the ranks' interpreter; None is this interpreter.
        contained: Whether a container has the ranks' interpreter, so that its torch is unknown.

    Raises:
        OSError: The interpreter does not start.
        ValueError: The interpreter gives no answer. ``subprocess.TimeoutExpired``: not in time.
    """
    argv = shlex.split(python) if python else [sys.executable]
    # A process of its own: CUDA stays loaded for the life of a process.
    source = f"import json\n{inspect.getsource(cuda)}\n{inspect.getsource(torch_cuda)}\n"
    source += "print(json.dumps([*cuda(), torch_cuda()]))"
    process = subprocess.run([*argv, "-c", source], capture_output=True, text=True, timeout=ANSWER_S, check=False)
    if process.returncode or not process.stdout.strip():
        raise ValueError((process.stderr.strip().splitlines() or [f"it ended with {process.returncode}"])[-1])
    names, driver_cuda, build = json.loads(process.stdout.strip().splitlines()[-1])
    build = None if contained else build
    return GpuFacts(names=tuple(names), driver=driver(), driver_cuda=driver_cuda, torch_cuda=build)


def driver() -> str:
    """Return the version of the NVIDIA driver; an empty text without a driver."""
    try:
        text = DRIVER.read_text()
    except OSError:
        return ""
    match = re.search(r"Kernel Module.*?\s(\d+\.[\d.]+)", text)  # the open one says "for x86_64" before it
    return match.group(1) if match else text.splitlines()[0]


def cuda() -> tuple[list[str], str]:
    """Return the names of the GPUs, and the highest CUDA version of the driver. Needs only the standard library."""
    import ctypes

    try:
        library, number = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
    except OSError:
        return [], ""
    library.cuDriverGetVersion(ctypes.byref(number))
    version, names = f"{number.value // 1000}.{number.value % 1000 // 10}", []
    if library.cuInit(0) == 0 and library.cuDeviceGetCount(ctypes.byref(number)) == 0:
        for index in range(number.value):
            name = ctypes.create_string_buffer(256)
            library.cuDeviceGetName(name, 256, index)
            names.append(name.value.decode("utf-8", "replace"))
    return names, version


def torch_cuda() -> str | None:
    """Return the CUDA version of torch's build, empty for a CPU build, None without torch. Does not import torch."""
    import importlib.util
    import os
    import re

    spec = importlib.util.find_spec("torch")
    path = os.path.join(os.path.dirname(spec.origin), "version.py") if spec and spec.origin else ""
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as file:
        match = re.search(r"^cuda\b.*= *'(.*)'", file.read(), re.MULTILINE)
    return match.group(1) if match else ""
