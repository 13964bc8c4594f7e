"""The NVIDIA GPUs that CUDA offers to this process, in CUDA's own order, and the GPUs of another interpreter.

A short child process asks the driver library, for the reasons in ``cuda``.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict, cast

from rlnb.machine import cuda

LISTING = "/proc/driver/nvidia/gpus"
VARIABLES = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "LD_LIBRARY_PATH")
"""Environment variables that decide what the driver library answers, and which library it is."""
TIMEOUT_S = 30.0
"""Seconds for the child. Without persistence mode, the driver initialises each GPU at every start, in seconds."""
LONG_TIMEOUT_S = 60.0
"""Seconds for another interpreter, which may be in a container or on a slow file system."""
EXECUTE = "import sys; sys.path[:] = filter(None, sys.path); exec(sys.argv.pop(1))"
"""Code that executes its first argument, and imports nothing from the working folder. Python 3.10 does not know -P."""


class Facts(TypedDict):
    """The child's answer: that of :class:`rlnb.machine.cuda.Driver`, and the CUDA version of the child's torch."""

    cuda: str
    gpus: list[tuple[str, str]]
    error: str
    torch_cuda: str | None


@dataclass(frozen=True, slots=True)
class Gpu:
    """An NVIDIA GPU, or a MIG slice of one."""

    name: str
    """Name in ``CUDA_VISIBLE_DEVICES``: an index, a UUID, or a UUID's beginning."""
    uuid: str = ""
    """UUID, such as ``GPU-8932f937-d72c-4106-c12f-20bd9faed9f6``; empty if the driver library does not load."""
    model: str = ""
    """Model, such as ``NVIDIA H100 80GB HBM3``; empty if the driver library does not load."""

    @property
    def slot(self) -> str:
        """Return the name of this GPU's slot, the same in every process that knows the UUID."""
        return (self.uuid or f"cuda-{self.name}").replace("/", "-")  # older names of MIG slices contain slashes


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of the driver library."""

    gpus: tuple[Gpu, ...] = ()
    """GPUs that CUDA offers, in its order."""
    error: str = ""
    """Reason why CUDA offers none; empty if it offers some, or if the library is missing."""


def gpu_count() -> int:
    """Return the number of NVIDIA GPUs that this process may use."""
    return len(visible_gpus())


def visible_gpus() -> tuple[Gpu, ...]:
    """Return the NVIDIA GPUs that this process may use, in CUDA's order."""
    if not any(os.path.exists(path) for path in cuda.FILES):
        return ()  # at once, since every training counts the GPUs, and most laptops have none
    return answer().gpus


def answer() -> Answer:
    """Return the GPUs that CUDA offers to this process.

    Without the driver library, return the GPUs that the kernel module lists, without UUIDs.
    """
    key = tuple(os.environ.get(variable) for variable in VARIABLES)
    if key not in _answers:
        result = _answer(key[0])
        if result.error:  # a driver that was slow to start may answer the next time
            return result
        _answers[key] = result
    return _answers[key]


_answers: dict[tuple[str | None, ...], Answer] = {}
"""Answers without an error, by the values of ``VARIABLES``."""


def _answer(devices: str | None) -> Answer:
    """Ask a child, given the value of ``CUDA_VISIBLE_DEVICES``."""
    try:
        facts = _facts([sys.executable, "-I", "-S", cuda.__file__], TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return Answer(error=f"the NVIDIA driver did not answer within {TIMEOUT_S:.0f} s")
    except ValueError as exc:
        return Answer(error=f"the NVIDIA driver gave no answer ({exc})")
    if not facts["cuda"]:
        return Answer(tuple(Gpu(name) for name in _listed_names(devices)))
    gpus = facts["gpus"]
    names = _names(devices) if devices is not None else map(str, range(len(gpus)))
    # CUDA ignores the names after the first invalid one.
    return Answer(tuple(Gpu(name, *gpu) for name, gpu in zip(names, gpus, strict=False)), facts["error"])


def _facts(argv: Sequence[str], timeout_s: float) -> Facts:
    """Return the answer of a child that executes ``cuda``.

    Raises:
        OSError: The child does not start.
        ValueError: The child gives no answer.
        subprocess.TimeoutExpired: The child gives no answer in time.
    """
    child = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout_s)
    try:
        return cast(Facts, cuda.read(child.stdout))
    except ValueError:
        last = (child.stderr.strip().splitlines() or [""])[-1]
        raise ValueError(f"exit status {child.returncode}{f': {last}' if last else ''}") from None


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


@dataclass(frozen=True, kw_only=True, slots=True)
class GpuFacts:
    """Facts about the GPUs of a machine and about the software of an interpreter that uses them."""

    names: tuple[str, ...] = ()
    """Model of each GPU that the process may use, in CUDA's order."""
    driver: str = ""
    """Version of the NVIDIA driver; empty without a driver."""
    driver_cuda: str = ""
    """Highest CUDA version that the driver supports; empty if libcuda does not load."""
    torch_cuda: str | None = None
    """CUDA version that the interpreter's torch was built for, empty for a CPU build; None without torch."""


def gpu_facts(argv: Sequence[str], timeout_s: float = LONG_TIMEOUT_S) -> GpuFacts:
    """Return the facts about the GPUs that an interpreter on this machine can use. It does not need rlnb.

    Args:
        argv: Command that starts the interpreter.
        timeout_s: Seconds for the answer. A driver that loads for the first time takes some.

    Raises:
        OSError: The interpreter does not start.
        ValueError: The interpreter gives no answer.
        subprocess.TimeoutExpired: The interpreter gives no answer in time.
    """
    facts = _facts([*argv, "-c", EXECUTE, Path(cuda.__file__).read_text(encoding="utf-8")], timeout_s)
    return GpuFacts(
        names=tuple(model for _, model in facts["gpus"]),
        driver=cuda.driver_version(),
        driver_cuda=facts["cuda"],
        torch_cuda=facts["torch_cuda"],
    )
