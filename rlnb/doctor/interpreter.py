"""The worker's interpreter: what it has, and what it lacks."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rlnb.doctor.finding import Finding, fault, ok, warning
from rlnb.launch.command import interpreter
from rlnb.version import ISAACLAB, __version__

TIMEOUT_S = 4.0
"""All checks run side by side; what has not answered by then is reported as such."""
LINE = "needs Python 3.12; on 3.11 pip silently resolves isaaclab to 2.3.x, the Isaac Sim line"
OWN_ENVIRONMENT = (
    "python3.12 -m venv isaac && isaac/bin/pip install 'rlnb[isaaclab]', "
    'then rlnb.options.python = "isaac/bin/python" (--python on the command line)'
)
PROBE = Path(__file__).parents[1] / "worker" / "probe.py"
"""The worker's room: read here as text, since only the worker imports it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Worker:
    """Facts of the worker's interpreter."""

    command: str
    """What starts it."""
    error: str = ""
    """Why it did not answer; empty if it did."""
    python: str = ""
    """Its version."""
    versions: Mapping[str, str] | None = None
    """Installed packages of interest."""
    torch_cuda: str | None = None
    """CUDA version that its torch was built for; None for a CPU build or no torch."""
    bytecode: bool = True
    """Whether a start finds torch's modules compiled, or leaves them so for the next one."""
    driver_cuda: str = ""
    """Highest CUDA version that the driver speaks; empty when libcuda does not load."""
    devices: tuple[str, ...] = ()
    """GPUs that CUDA shows to this process."""
    kernel_cache: str = ""
    """Folder of compiled Warp kernels."""
    kernel_cache_mib: float = 0.0
    asset_pack: str = ""
    """Folder of the local asset pack, built or not; empty when no plugin brings one."""
    assets_failed: Mapping[str, str] | None = None
    """Parts of it that could not be built, and why."""

    def version(self, name: str) -> str | None:
        """Return the version of an installed package."""
        return (self.versions or {}).get(name)


# -- the worker's interpreter ----------------------------------------------------------------------------


def look(python: str | None, timeout_s: float) -> Worker:
    """Return the facts of the worker's interpreter; nothing heavy is imported in it."""
    argv = interpreter(python)
    command = " ".join(argv)
    source = PROBE.read_text(encoding="utf-8")  # by text: rlnb may be missing there, or be another one
    try:
        answer = subprocess.run([*argv, "-c", source], capture_output=True, text=True, timeout=timeout_s, check=True)
        facts = json.loads(answer.stdout.strip().splitlines()[-1])
    except subprocess.TimeoutExpired:
        return Worker(command=command, error=f"no answer in {timeout_s:g} s")
    except subprocess.CalledProcessError as exc:
        return Worker(command=command, error=(exc.stderr.strip().splitlines() or [f"exit status {exc.returncode}"])[-1])
    except (OSError, ValueError, IndexError) as exc:
        return Worker(command=command, error=f"{type(exc).__name__}: {exc}")
    return Worker(command=command, **{**facts, "devices": tuple(facts.get("devices", ()))})


def driver() -> str | None:
    """Return the version of the NVIDIA driver; None without one."""
    try:
        text = Path("/proc/driver/nvidia/version").read_text()
    except OSError:
        return None
    match = re.search(r"Kernel Module\D*?\s([\d.]+)", text)
    return match.group(1) if match else text.splitlines()[0]


def check_worker(worker: Worker, driver: str | None, asset_root: str | None, env: Mapping[str, str]) -> list[Finding]:
    """Judge everything that belongs to the worker's interpreter."""
    if worker.error:
        fix = f"Set rlnb.options.python to a Python that starts. {OWN_ENVIRONMENT}"
        return [
            fault("worker", f"{worker.command}: {worker.error}", fix),
            check_driver(worker, driver),
            check_assets(worker, asset_root, env),
        ]
    return [
        check_worker_rlnb(worker),
        check_isaaclab(worker),
        check_torch(worker, driver),
        check_driver(worker, driver),
        check_bytecode(worker),
        check_kernel_cache(worker),
        check_assets(worker, asset_root, env),
    ]


def check_worker_rlnb(worker: Worker) -> Finding:
    """Judge whether the worker's interpreter has this very rlnb."""
    theirs = worker.version("rlnb")
    found = f"{worker.command}, Python {worker.python}, rlnb {theirs or 'missing'}"
    if theirs == __version__:
        return ok("worker", found)
    fix = f"{worker.command} -m pip install rlnb=={__version__}"
    return fault("worker", f"{found}, here {__version__}", fix)


def check_isaaclab(worker: Worker) -> Finding:
    """Judge Isaac Lab in the worker's interpreter: its release line, which exists for Python 3.12 only."""
    version, on_312 = worker.version("isaaclab"), worker.python.startswith("3.12.")
    if version is not None and f"{version}.".startswith(f"{ISAACLAB}."):
        return ok("Isaac Lab", f"{version} on Python {worker.python}")
    found = f"{version or 'missing'} on Python {worker.python}. Isaac Lab {ISAACLAB} {LINE}."
    fix = f"{worker.command} -m pip install 'rlnb[isaaclab]'" if on_312 else OWN_ENVIRONMENT
    return fault("Isaac Lab", found, fix)


def check_torch(worker: Worker, driver: str | None) -> Finding:
    """Judge torch against the driver, by what ``torch.cuda.is_available()`` rests on."""
    version = worker.version("torch")
    if version is None:
        fix = f"{worker.command} -m pip install 'rlnb[isaaclab]'"
        return fault("torch", "missing; Isaac Lab brings it", fix)
    if worker.devices and worker.torch_cuda is None:
        fix = "Install a CUDA build of torch: https://pytorch.org/get-started/locally"
        return warning("torch", f"{version}, built for CPU; the GPU lies idle", fix)
    if worker.devices and _major(worker.torch_cuda) > _major(worker.driver_cuda):
        found = f"{version}, built for CUDA {worker.torch_cuda}; the driver speaks {worker.driver_cuda}: no CUDA"
        fix = f"Update the driver, or install a torch built for CUDA {_major(worker.driver_cuda)}."
        return fault("torch", found, fix)
    if worker.devices:
        names = ", ".join(f"{worker.devices.count(name)} x {name}" for name in dict.fromkeys(worker.devices))
        return ok("torch", f"{version}, CUDA {worker.torch_cuda}: {names}")
    if driver is None:
        return ok("torch", f"{version}; no CUDA: trainings run on the CPU")
    fix = "Look at CUDA_VISIBLE_DEVICES; start a container with --gpus all (docker) or --nv (apptainer)."
    return fault("torch", f"{version}; a driver is there, but CUDA shows no GPU", fix)


def _major(version: str | None) -> int:
    return int((version or "0").split(".")[0] or 0)


def check_driver(worker: Worker, driver: str | None) -> Finding:
    """Tell of the NVIDIA driver."""
    if driver is None:
        return ok("NVIDIA driver", "none: this machine has no NVIDIA GPU")
    speaks = f", CUDA up to {worker.driver_cuda}" if worker.driver_cuda else ", libcuda.so.1 does not load"
    return ok("NVIDIA driver", f"{driver}{speaks}")


def check_bytecode(worker: Worker) -> Finding:
    """Tell whether each start compiles Python anew, as where an image forbids to write bytecode."""
    if worker.bytecode:
        return ok("bytecode", "kept: a start does not compile Isaac Lab's modules anew")
    packages = "import sysconfig; print(sysconfig.get_path('purelib'))"
    found = "not there, and none is written: each start compiles 6,000 modules of Isaac Lab and torch, for about 10 s"
    fix = f'{worker.command} -m compileall -q $({worker.command} -c "{packages}"), or unset PYTHONDONTWRITEBYTECODE'
    return warning("bytecode", found, fix)


def check_kernel_cache(worker: Worker) -> Finding:
    """Tell of the Warp kernel cache: empty, the first run compiles for about half a minute."""
    if not worker.kernel_cache:
        return warning("Warp kernels", "Warp is missing", "Isaac Lab brings it.")
    folder = worker.kernel_cache
    if worker.kernel_cache_mib < 0.1:
        found = f"{folder}: empty, so the first run compiles for about 30 s"
        fix = "Nothing to do; to share a filled cache between machines, set WARP_CACHE_PATH."
        return ok("Warp kernels", found, fix)
    return ok("Warp kernels", f"{folder}: {worker.kernel_cache_mib:.1f} MiB")


def check_assets(worker: Worker, asset_root: str | None, env: Mapping[str, str]) -> Finding:
    """Judge where robots come from: explicit, ISAACSIM_ASSET_ROOT, else NVIDIA's cloud or the local pack."""
    variable = env.get("ISAACSIM_ASSET_ROOT")
    chosen, why = (asset_root, "set in the options") if asset_root else (variable, "ISAACSIM_ASSET_ROOT")
    if chosen and ("://" in chosen or Path(chosen).is_dir()):
        return ok("asset root", f"{chosen} ({why})")
    if chosen:
        fix = "Correct or unset it; rlnb assets build makes a folder without a download."
        return fault("asset root", f"{chosen} ({why}) is no folder", fix)
    built = bool(worker.asset_pack) and Path(worker.asset_pack).is_dir()
    if built:
        found = f"none set: NVIDIA's cloud if it answers, else the local pack, built: {worker.asset_pack}"
        if worker.assets_failed:
            lacking = "; ".join(f"{name}: {why}" for name, why in worker.assets_failed.items())
            return warning("asset root", f"{found}, without {lacking}", "Fix that, then: rlnb assets build")
        return ok("asset root", found)
    if worker.asset_pack:
        found = "none set: NVIDIA's cloud if it answers, else the local pack, which the first run builds"
        return ok("asset root", found, "To build it now: rlnb assets build")
    found = "none set and no asset pack installed: robots come from NVIDIA's cloud only"
    fix = f"{worker.command} -m pip install rlnb-tasks"
    return warning("asset root", found, fix)
