"""The doctor's checks of the worker's interpreter: rlnb, Isaac Lab, torch, the driver, caches and assets."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rlnb.doctor.finding import Finding, fault, ok, warning
from rlnb.launch.command import interpreter
from rlnb.machine import cuda
from rlnb.machine.gpus import EXECUTE
from rlnb.machine.packages import install_line
from rlnb.storage.serial import from_json
from rlnb.version import ISAACLAB, ISAACLAB_MAJOR, __version__, belongs_to, untested

TIMEOUT_S = 4.0
"""Seconds for all checks, which run at the same time. A check that takes longer becomes a warning."""
LINE = "needs Python 3.12; on Python 3.11, pip silently installs isaaclab 2.3.x, which needs Isaac Sim"
CAPABILITIES = "NVIDIA_DRIVER_CAPABILITIES"
"""Variable of NVIDIA's container images: the parts of the driver that a container gets."""
PROBE = Path(__file__).parents[1] / "worker" / "probe.py"
"""Script that the worker's interpreter executes with ``python -c``; only the worker may import it."""


def _own_environment() -> str:
    """Return the commands that give Isaac Lab an environment of its own."""
    python = "~/isaac/bin/python"
    install = install_line("rlnb[isaaclab]", python=python)
    return f'python3.12 -m venv ~/isaac && {install}, then RLNB_PYTHON={python} or rlnb.options.python = "{python}"'


@dataclass(frozen=True, kw_only=True, slots=True)
class Worker:
    """Facts of the worker's interpreter."""

    command: str
    """Command that starts the interpreter."""
    error: str = ""
    """Reason why the interpreter did not answer; empty if it did."""
    python: str = ""
    """Version of Python."""
    versions: Mapping[str, str] | None = None
    """Versions of the installed packages that the checks need, by name."""
    isaacsim: str = ""
    """Folder of Isaac Sim; empty without it."""
    terms: str = ""
    """Reason why Isaac Sim cannot start, with the fix: its terms are not accepted. Empty if they are."""
    torch_cuda: str | None = None
    """CUDA version that torch was built for; None for a CPU build or without torch."""
    bytecode: bool = True
    """Whether torch's modules have cached bytecode, or the next start can write it."""
    driver_cuda: str = ""
    """Highest CUDA version that the driver supports; empty if libcuda does not load."""
    devices: tuple[str, ...] = ()
    """Names of the GPUs that CUDA finds in the interpreter."""
    kernel_cache: str = ""
    """Folder of the compiled Warp kernels; empty without Warp."""
    kernel_cache_mib: float = 0.0
    asset_pack: str = ""
    """Folder of the local asset pack, whether built or not; empty if no plugin provides one."""
    assets_failed: Mapping[str, str] | None = None
    """Parts of the pack that could not be built, with the reason."""

    def version(self, name: str) -> str | None:
        """Return the version of an installed package."""
        return (self.versions or {}).get(name)

    def install_line(self, requirement: str) -> str:
        """Return the shell line that installs a package of rlnb into the interpreter."""
        return install_line(requirement, python=self.command, isaacsim=bool(self.isaacsim))


def look(python: str | None, timeout_s: float) -> Worker:
    """Return the facts of the worker's interpreter, without importing heavy packages there."""
    argv = interpreter(python)
    command = " ".join(argv)
    # passed as text: that interpreter may lack rlnb
    source, driver = (path.read_text(encoding="utf-8") for path in (PROBE, Path(cuda.__file__)))
    try:
        facts = cuda.read(_output([*argv, "-c", EXECUTE, source, driver], timeout_s))
    except subprocess.TimeoutExpired:
        return Worker(command=command, error=f"no answer in {timeout_s:g} s")
    except subprocess.CalledProcessError as exc:
        return Worker(command=command, error=(exc.stderr.strip().splitlines() or [f"exit status {exc.returncode}"])[-1])
    except (OSError, ValueError) as exc:
        return Worker(command=command, error=f"{type(exc).__name__}: {exc}")
    return from_json(Worker, {**facts, "command": command}, ignore_unknown=True)


def _output(argv: Sequence[str], timeout_s: float) -> str:
    """Return the stdout of a command, which is ended after ``timeout_s``, with every process that its wrappers started.

    Raises:
        CalledProcessError: The command failed.
        TimeoutExpired: The command took too long.
    """
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, stdout=pipe, stderr=pipe, text=True, start_new_session=True) as process:
        try:
            output, error = process.communicate(timeout=timeout_s)
        except BaseException:
            if sys.platform == "win32":
                process.kill()
            else:
                os.killpg(process.pid, signal.SIGKILL)
            raise
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, argv, output, error)
    return output


def check_worker(worker: Worker, driver: str, asset_root: str | None, env: Mapping[str, str]) -> list[Finding]:
    """Return all findings about the worker's interpreter."""
    if worker.error:
        fix = f"Set rlnb.options.python to a working Python, or create one: {_own_environment()}"
        return [
            fault("worker", f"{worker.command}: {worker.error}", fix),
            check_driver(worker, driver),
            check_assets(worker, asset_root, env),
        ]
    return [
        check_worker_rlnb(worker),
        check_isaaclab(worker),
        check_isaacsim(worker, env),
        check_ovphysx(worker),
        check_torch(worker, driver),
        check_driver(worker, driver),
        check_bytecode(worker),
        check_kernel_cache(worker),
        check_assets(worker, asset_root, env),
    ]


def check_worker_rlnb(worker: Worker) -> Finding:
    """Check that the worker's interpreter has the same version of rlnb as this process."""
    version = worker.version("rlnb")
    text = f"{worker.command}, Python {worker.python}, rlnb {version or 'missing'}"
    if version == __version__:
        return ok("worker", text)
    fix = worker.install_line("rlnb")
    return fault("worker", f"{text}; this process has rlnb {__version__}", fix)


def check_isaaclab(worker: Worker) -> Finding:
    """Check that the worker's interpreter has an Isaac Lab that the worker can use, which requires Python 3.12."""
    version, on_312 = worker.version("isaaclab") or "", worker.python.startswith("3.12.")
    text = f"{version or 'missing'} on Python {worker.python}"
    fix = worker.install_line("rlnb[isaaclab]") if on_312 else _own_environment()
    if not belongs_to(version, ISAACLAB_MAJOR):
        script = f", or use rlnb.train(script=...) for training scripts of Isaac Lab {version}" if version else ""
        return fault("Isaac Lab", f"{text}. Isaac Lab {ISAACLAB} {LINE}.", f"{fix}{script}")
    if caution := untested(version):
        return warning("Isaac Lab", f"{text}: {caution}", fix)
    return ok("Isaac Lab", text)


def check_isaacsim(worker: Worker, env: Mapping[str, str]) -> Finding:
    """Check that the user has accepted the terms of Isaac Sim, and that a container lets it use Vulkan."""
    if not worker.isaacsim:
        return ok("Isaac Sim", "not installed, so tasks cannot use its PhysX and its renderer")
    text = f"{worker.version('isaacsim') or 'binary distribution'} in {worker.isaacsim}"
    if worker.terms:
        reason, _, fix = worker.terms.partition(". ")
        return fault("Isaac Sim", f"{text}. {reason}.", fix)
    capabilities = env.get(CAPABILITIES, "all")
    if {"graphics", "all"}.isdisjoint(capabilities.split(",")):
        text = f"{text}. {CAPABILITIES} is {capabilities}, without graphics, so its cameras cannot render."
        return warning("Isaac Sim", text, f"Start the container with {CAPABILITIES}=all.")
    return ok("Isaac Sim", text)


def check_ovphysx(worker: Worker) -> Finding:
    """Report whether tasks can use PhysX without Isaac Sim."""
    version = worker.version("ovphysx")
    if version is not None:
        return ok("OvPhysX", f"{version}, which is PhysX without Isaac Sim")
    return ok("OvPhysX", f'not installed; physics="ovphysx" needs it: {worker.install_line("rlnb[physx]")}')


def check_torch(worker: Worker, driver: str) -> Finding:
    """Check that torch can use the GPUs, from the facts behind ``torch.cuda.is_available()``."""
    version = worker.version("torch")
    if version is None:
        fix = worker.install_line("rlnb[isaaclab]")
        return fault("torch", "not installed; Isaac Lab brings it", fix)
    if worker.devices and worker.torch_cuda is None:
        fix = "Install a CUDA build of torch: https://pytorch.org/get-started/locally"
        return warning("torch", f"{version}, a CPU build, so the GPU is not used", fix)
    if worker.devices and _major(worker.torch_cuda) > _major(worker.driver_cuda):
        text = f"{version}, built for CUDA {worker.torch_cuda}, but the driver supports only CUDA {worker.driver_cuda}"
        fix = f"Update the driver, or install a torch built for CUDA {_major(worker.driver_cuda)}."
        return fault("torch", text, fix)
    if worker.devices:
        names = ", ".join(f"{worker.devices.count(name)} x {name}" for name in dict.fromkeys(worker.devices))
        return ok("torch", f"{version}, CUDA {worker.torch_cuda}: {names}")
    if not driver:
        return ok("torch", f"{version}; there is no NVIDIA driver, so trainings run on the CPU")
    fix = "Check CUDA_VISIBLE_DEVICES, or start the container with --gpus all (docker) or --nv (apptainer)."
    return fault("torch", f"{version}; the NVIDIA driver is installed, but CUDA finds no GPU", fix)


def _major(version: str | None) -> int:
    return int((version or "0").split(".")[0] or 0)


def check_driver(worker: Worker, driver: str) -> Finding:
    """Report the version of the NVIDIA driver."""
    if not driver:
        return ok("NVIDIA driver", "not installed, so no NVIDIA GPU can be used")
    cuda = f", supports CUDA up to {worker.driver_cuda}" if worker.driver_cuda else "; libcuda.so.1 does not load"
    return ok("NVIDIA driver", f"{driver}{cuda}")


def check_bytecode(worker: Worker) -> Finding:
    """Check whether Python's bytecode is cached. A container image may forbid writing it."""
    if worker.bytecode:
        return ok("bytecode", "cached, so starts do not recompile the modules of Isaac Lab")
    packages = "import sysconfig; print(sysconfig.get_path('purelib'))"
    text = "not cached, so each start spends about 10 s compiling 6,000 modules of Isaac Lab and torch"
    fix = f'{worker.command} -m compileall -q $({worker.command} -c "{packages}"), or unset PYTHONDONTWRITEBYTECODE'
    return warning("bytecode", text, fix)


def check_kernel_cache(worker: Worker) -> Finding:
    """Report Warp's kernel cache. If it is empty, the first run compiles kernels for about half a minute."""
    if not worker.kernel_cache:
        return warning("Warp kernels", "Warp is not installed", worker.install_line("rlnb[isaaclab]"))
    folder = worker.kernel_cache
    if worker.kernel_cache_mib < 0.1:
        text = f"{folder}: empty, so the first run compiles kernels for about 30 s"
        fix = "No action needed. To share a cache between machines, set WARP_CACHE_PATH."
        return ok("Warp kernels", text, fix)
    return ok("Warp kernels", f"{folder}: {worker.kernel_cache_mib:.1f} MiB")


def check_assets(worker: Worker, asset_root: str | None, env: Mapping[str, str]) -> Finding:
    """Check the asset root: the setting, or ISAACSIM_ASSET_ROOT, or else NVIDIA's cloud or the local asset pack."""
    variable = env.get("ISAACSIM_ASSET_ROOT")
    location, source = (asset_root, "set in the options") if asset_root else (variable, "ISAACSIM_ASSET_ROOT")
    if location and ("://" in location or Path(location).is_dir()):
        return ok("asset root", f"{location} ({source})")
    if location:
        fix = "Correct the path, or unset it. To build a local folder without a download: rlnb assets build"
        return fault("asset root", f"{location} ({source}) is not a folder", fix)
    if worker.asset_pack and Path(worker.asset_pack).is_dir():
        text = f"not set: NVIDIA's cloud if it is reachable, otherwise the local asset pack in {worker.asset_pack}"
        if worker.assets_failed:
            missing = "; ".join(f"{name}: {reason}" for name, reason in worker.assets_failed.items())
            return warning("asset root", f"{text}, which lacks {missing}", "Fix the cause, then run: rlnb assets build")
        return ok("asset root", text)
    if worker.asset_pack:
        text = "not set: NVIDIA's cloud if it is reachable, otherwise the local asset pack, which the first run builds"
        return ok("asset root", text, "No action needed. To build the pack now: rlnb assets build")
    text = "not set, and no asset pack is installed, so robots come only from NVIDIA's cloud"
    fix = worker.install_line("rlnb-tasks")
    return warning("asset root", text, fix)
