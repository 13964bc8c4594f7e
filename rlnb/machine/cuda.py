"""NVIDIA's driver, its GPUs in CUDA's order, and the CUDA version of this interpreter's torch.

A process that has initialised the driver library keeps memory on every GPU, and cannot fork. ``gpus`` therefore lets
another process execute this file. That process may run in an interpreter without rlnb, so this file imports only the
standard library.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import re
import sys
import uuid
from typing import Any, NamedTuple

LIBRARY = "libcuda.so.1"
VERSION_FILE = "/proc/driver/nvidia/version"
WSL_FILE = "/dev/dxg"
"""GPU of Windows below WSL, from any vendor."""
FILES = (VERSION_FILE, "/dev/nvidiactl", WSL_FILE)
"""A machine with an NVIDIA driver has at least one of these files."""
MARK = "rlnb.cuda:"
"""Beginning of the line with the facts. Libraries and start scripts print lines of their own."""


class Driver(NamedTuple):
    """The driver library's answer."""

    cuda: str = ""
    """Highest CUDA version that the driver supports, such as ``"13.0"``; empty if the library does not load."""
    gpus: tuple[tuple[str, str], ...] = ()
    """UUID and model of each GPU that CUDA offers to this process, in CUDA's order."""
    error: str = ""
    """Reason why CUDA offers no GPU; empty if it offers some, or if the library does not load."""


def has_driver() -> bool:
    """Return whether this machine has an NVIDIA driver."""
    if any(os.path.exists(path) for path in FILES if path != WSL_FILE):
        return True
    return os.path.exists(WSL_FILE) and _loads_library()


def _loads_library() -> bool:
    try:
        ctypes.CDLL(LIBRARY)
    except OSError:
        return False
    return True


def driver_version() -> str:
    """Return the version of the driver, such as ``"580.65.06"``; an empty text if its kernel module is not loaded."""
    try:
        with open(VERSION_FILE, encoding="utf-8") as file:
            text = file.read()
    except OSError:
        return ""
    match = re.search(r"Kernel Module.*?\s(\d+\.[\d.]+)", text)  # the open module says "for x86_64" before it
    return match.group(1) if match else text.partition("\n")[0]


def ask_driver() -> Driver:
    """Initialise the driver library in this process and return its answer."""
    try:
        library, number = ctypes.CDLL(LIBRARY), ctypes.c_int()
    except OSError:
        return Driver()
    library.cuDriverGetVersion(ctypes.byref(number))
    cuda = f"{number.value // 1000}.{number.value % 1000 // 10}"
    if error := library.cuInit(0) or library.cuDeviceGetCount(ctypes.byref(number)):
        text = ctypes.c_char_p()
        library.cuGetErrorName(error, ctypes.byref(text))
        return Driver(cuda, error=(text.value or f"CUDA error {error}".encode()).decode())
    gpus = tuple(_gpu(library, index) for index in range(number.value))
    return Driver(cuda, gpus, "" if gpus else "CUDA_ERROR_NO_DEVICE")


def _gpu(library: ctypes.CDLL, index: int) -> tuple[str, str]:
    """Return the UUID of a GPU as NVML writes it, empty if the driver does not know it, and the GPU's model."""
    device, number, name = ctypes.c_int(), ctypes.create_string_buffer(16), ctypes.create_string_buffer(256)
    library.cuDeviceGet(ctypes.byref(device), index)
    library.cuDeviceGetName(name, len(name), device)
    model = name.value.decode("utf-8", "replace")
    # The second version returns a MIG slice's own UUID, not that of its GPU. CUDA has it since 11.4.
    read = getattr(library, "cuDeviceGetUuid_v2", None) or library.cuDeviceGetUuid
    if read(number, device) != 0:
        return "", model
    return f"{'MIG' if ' MIG ' in model else 'GPU'}-{uuid.UUID(bytes=number.raw)}", model


def torch_cuda() -> str | None:
    """Return the CUDA version of torch's build, empty for a CPU build, None without torch.

    Importing torch would take seconds, so its version.py is read instead.
    """
    torch = importlib.util.find_spec("torch")
    if torch is None or torch.origin is None:
        return None
    with open(os.path.join(os.path.dirname(torch.origin), "version.py"), encoding="utf-8") as file:
        match = re.search(r"^cuda\b.*= *'(.*)'", file.read(), re.MULTILINE)
    return match.group(1) if match else ""


def write(facts: dict[str, Any]) -> None:
    """Write facts to stdout, on a line of their own."""
    sys.stdout.write(f"\n{MARK}{json.dumps(facts)}\n")


def read(output: str) -> dict[str, Any]:
    """Return the facts in the output of a process.

    Raises:
        ValueError: The output has no facts.
    """
    line = next((line for line in output.splitlines() if line.startswith(MARK)), "")
    facts: dict[str, Any] = json.loads(line.removeprefix(MARK))
    return facts


if __name__ == "__main__":
    write({**ask_driver()._asdict(), "torch_cuda": torch_cuda()})
