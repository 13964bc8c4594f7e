"""The NVIDIA GPUs that CUDA offers to this process, in CUDA's own order.

A short child process asks the driver library, because a driver that was initialised stays in its process: the kernel
would keep memory on every GPU and could not fork. The child executes this file, which therefore imports only the
standard library.
"""

from __future__ import annotations

import ctypes
import functools
import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

LIBRARY = "libcuda.so.1"
LISTING = "/proc/driver/nvidia/gpus"
VARIABLES = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "LD_LIBRARY_PATH")
"""Environment variables that decide what the driver library answers, and which library it is."""
TIMEOUT_S = 30.0
"""Seconds for the child. Without persistence mode, the driver initialises each GPU at every start, in seconds."""
MARK = "rlnb.gpus:"
"""Beginning of the child's answer."""
NO_LIBRARY = 3
"""Exit status of the child if the driver library does not load."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """An NVIDIA GPU, or a MIG slice of one."""

    name: str
    """Name in ``CUDA_VISIBLE_DEVICES``: an index, a UUID, or a UUID's beginning."""
    uuid: str = ""
    """UUID, such as ``GPU-8932f937-d72c-4106-c12f-20bd9faed9f6``; empty if the driver library does not load."""

    @property
    def slot(self) -> str:
        """Return the name of this GPU's slot, which every process of the machine derives alike if it knows the UUID."""
        return (self.uuid or f"cuda-{self.name}").replace("/", "-")  # older names of MIG slices contain slashes


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of the driver library."""

    gpus: tuple[Gpu, ...] = ()
    """GPUs that CUDA offers, in its order."""
    error: str = ""
    """Reason why CUDA offers none; empty if it offers some, or if the library is missing."""


def answer() -> Answer:
    """Return the GPUs that CUDA offers to this process.

    Without the driver library they are those that the kernel module lists, and have no UUID.
    """
    return _answer(*(os.environ.get(variable) for variable in VARIABLES))


@functools.lru_cache(maxsize=16)
def _answer(devices: str | None, *_: str | None) -> Answer:
    """Ask the child once for each environment."""
    argv = [sys.executable, "-I", "-S", __file__]
    try:
        child = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return Answer(error=f"the NVIDIA driver did not answer within {TIMEOUT_S:.0f} s")
    if child.returncode == NO_LIBRARY:
        return Answer(tuple(Gpu(name) for name in _listed_names(devices)))
    try:
        # A library may print lines of its own, and C prints them as the process ends.
        line = next(line for line in child.stdout.splitlines() if line.startswith(MARK))
        uuids, error = json.loads(line.removeprefix(MARK))
    except (StopIteration, ValueError):
        last = (child.stderr.strip().splitlines() or [""])[-1]
        return Answer(error=f"the NVIDIA driver gave no answer (exit status {child.returncode}) {last}".strip())
    names = _names(devices) if devices is not None else map(str, range(len(uuids)))
    return Answer(tuple(map(Gpu, names, uuids)), error)  # CUDA ignores the names after the first invalid one


def _names(devices: str) -> list[str]:
    return [name.strip() for name in devices.split(",")]


def _listed_names(devices: str | None) -> Iterator[str]:
    """Yield the names of the GPUs of the kernel module, by CUDA's rules for ``CUDA_VISIBLE_DEVICES``.

    CUDA ignores the first invalid name and all after it, and offers no GPU if a name occurs twice.
    """
    try:
        count = len(os.listdir(LISTING))
    except OSError:
        return
    names = _names(devices) if devices is not None else [str(number) for number in range(count)]
    if len({*names}) < len(names):
        return
    for name in names:
        if not (name.startswith(("GPU-", "MIG-")) or (name.isdecimal() and int(name) < count)):
            return
        yield name


def ask_driver() -> tuple[list[str], str]:
    """Return the UUIDs of the GPUs that the driver library offers, and the error if it offers none.

    Raises:
        OSError: The library does not load.
    """
    cuda, count = ctypes.CDLL(LIBRARY), ctypes.c_int()
    if error := cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count)):
        text = ctypes.c_char_p()
        cuda.cuGetErrorName(error, ctypes.byref(text))
        return [], (text.value or f"CUDA error {error}".encode()).decode()
    uuids = [_uuid(cuda, index) for index in range(count.value)]
    return uuids, "" if uuids else "CUDA_ERROR_NO_DEVICE"


def _uuid(cuda: ctypes.CDLL, index: int) -> str:
    """Return the UUID of a GPU as NVML writes it."""
    device, number, name = ctypes.c_int(), ctypes.create_string_buffer(16), ctypes.create_string_buffer(256)
    cuda.cuDeviceGet(ctypes.byref(device), index)
    # The second version returns a MIG slice's own UUID, not that of its GPU. CUDA has it since 11.4.
    read = getattr(cuda, "cuDeviceGetUuid_v2", None) or cuda.cuDeviceGetUuid
    if read(number, device) != 0:
        return ""
    cuda.cuDeviceGetName(name, len(name), device)
    return f"{'MIG' if b' MIG ' in name.value else 'GPU'}-{uuid.UUID(bytes=number.raw)}"


if __name__ == "__main__":
    try:
        uuids, error = ask_driver()
    except OSError:
        sys.exit(NO_LIBRARY)
    sys.stdout.write(f"\n{MARK}{json.dumps([uuids, error])}\n")
