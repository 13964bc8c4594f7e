"""Is this machine fit for rlnb? Checks that only look: they import no torch, start no simulator, leave no file.

Each check turns facts into findings and touches nothing else; facts of the worker's interpreter come
from one short subprocess of it, so that the doctor is quick and sees what the worker would see.
"""

from __future__ import annotations

import importlib.metadata
import inspect
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import rlnb
from rlnb.launch.command import interpreter

Level = Literal["ok", "warning", "fault"]

TIMEOUT_S = 4.0
"""All checks run side by side; what has not answered by then is reported as such."""
KERNEL_PYTHONS = ((3, 11), (3, 13))
ISAACLAB = "3.0"
LINE = "Isaac Lab 3.0 needs Python 3.12; on 3.11 pip silently resolves isaaclab to 2.3.x, the Isaac Sim line"
OWN_ENVIRONMENT = (
    "python3.12 -m venv isaac && isaac/bin/pip install 'rlnb[isaaclab]', "
    'then rlnb.options.python = "isaac/bin/python" (--python on the command line)'
)
LEAST_MEMORY_GIB = 4.0
"""A worker takes 1.2 to 1.5 GiB, and a kernel, a warm worker and a training may live side by side."""
LEAST_DISK_MIB, SCARCE_DISK_GIB = 50, 2.0
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """What one check found."""

    name: str
    """What was looked at."""
    level: Level
    """``"fault"``: something will not work; ``"warning"``: it will, with a limit."""
    found: str
    """What is there."""
    mend: str = ""
    """Command or setting that mends it."""


def ok(name: str, found: str, mend: str = "") -> Finding:
    """Return a finding of what works; ``mend`` may say how it would be better."""
    return Finding(name=name, level="ok", found=found, mend=mend)


def warning(name: str, found: str, mend: str = "") -> Finding:
    """Return a finding of what works with a limit."""
    return Finding(name=name, level="warning", found=found, mend=mend)


def fault(name: str, found: str, mend: str) -> Finding:
    """Return a finding of what does not work. There is always a mend."""
    return Finding(name=name, level="fault", found=found, mend=mend)


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
    driver_cuda: str = ""
    """Highest CUDA version that the driver speaks; empty when libcuda does not load."""
    devices: tuple[str, ...] = ()
    """GPUs that CUDA shows to this process."""
    kernel_cache: str = ""
    """Folder of compiled Warp kernels."""
    kernel_cache_mib: float = 0.0
    asset_pack: str = ""
    """Folder of the local asset pack, built or not; empty when no plugin brings one."""

    def version(self, name: str) -> str | None:
        """Return the version of an installed package."""
        return (self.versions or {}).get(name)


def examine(
    *, root: Path, python: str | None = None, asset_root: str | None = None, timeout_s: float = TIMEOUT_S
) -> list[Finding]:
    """Look at everything at once and return the findings, in a fixed order.

    Args:
        root: Folder of runs.
        python: Command of the worker's interpreter; None is this one.
        asset_root: Explicit asset root, as set in the options.
        timeout_s: Seconds for all checks together.
    """
    checks: dict[str, Callable[[], Sequence[Finding]]] = {
        "Python": lambda: [check_python(sys.version_info[:3])],
        "rlnb": lambda: [check_plugins(plugin_versions())],
        "worker": lambda: check_worker(look(python, timeout_s - 0.5), driver(), asset_root, os.environ),
        "machine": check_machine,
        "run folder": lambda: check_folder(root),
        "Slurm": lambda: [check_slurm(shutil.which("sbatch"))],
        "browser": lambda: [check_browser(next(filter(None, map(shutil.which, BROWSERS)), None))],
        "Jupyter": lambda: [check_jupyter(_version("jupyterlab"), _version("ipykernel"))],
        "hosted": lambda: [check_hosted(os.environ, server_base_urls())],
    }
    return _all_within(checks, timeout_s)


def _all_within(checks: Mapping[str, Callable[[], Sequence[Finding]]], timeout_s: float) -> list[Finding]:
    """Run checks side by side; a hanging file system or a bug costs one finding, not the others."""
    done: dict[str, Sequence[Finding]] = {}

    def run(name: str, check: Callable[[], Sequence[Finding]]) -> None:
        try:
            done[name] = check()
        except Exception as exc:
            done[name] = [warning(name, f"not examined: {type(exc).__name__}: {exc}")]

    deadline = time.monotonic() + timeout_s
    threads = [threading.Thread(target=run, args=item, daemon=True) for item in checks.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    silent = f"no answer in {timeout_s:g} s"
    silent = f"no answer in {timeout_s:g} s"
    late = {name: [warning(name, silent, "Look again; is a disk hanging?")] for name in checks}
    return [finding for name in checks for finding in done.get(name, late[name])]


# -- this interpreter ------------------------------------------------------------------------------------


def check_python(version: Sequence[int]) -> Finding:
    """Judge the Python of this process, the kernel's."""
    low, high = KERNEL_PYTHONS
    text = ".".join(map(str, version))
    if low <= tuple(version[:2]) <= high:
        return ok("Python", f"{text} ({sys.executable})")
    mend = "Use Python 3.11 to 3.13 for the kernel; 3.12 serves the worker too."
    return fault("Python", f"{text} ({sys.executable})", mend)


def plugin_versions() -> dict[str, str]:
    """Return the version of each plugin's distribution by plugin name; one that does not load says why."""
    import warnings

    from rlnb import plugins

    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the warning of a broken plugin is what is reported here
        manager = plugins.manager()
    for entry in sorted(importlib.metadata.entry_points(group="rlnb"), key=lambda entry: entry.name):
        found[entry.name] = f"{entry.dist.name} {entry.dist.version}" if entry.dist else entry.value
        if not manager.has_plugin(entry.name):
            found[entry.name] += f" does not load: {load_error(entry)}"
    return found


def load_error(entry: importlib.metadata.EntryPoint) -> str:
    """Return why a plugin does not load; an empty string if it does."""
    try:
        entry.load()
    except Exception as exc:  # whatever a broken plugin raises is the answer
        return f"{type(exc).__name__}: {exc}"
    return ""


def check_plugins(versions: Mapping[str, str]) -> Finding:
    """Judge rlnb and its plugins."""
    found = "; ".join([rlnb.__version__, *versions.values()])
    broken = [name for name, version in versions.items() if " does not load: " in version]
    if broken:
        mend = f"Update or uninstall {', '.join(versions[name].split()[0] for name in broken)}."
        return fault("rlnb", found, mend)
    if not versions:
        mend = "pip install rlnb-rsl-rl rlnb-tasks"
        return fault("rlnb", f"{found}, no plugin: no RL library to train with", mend)
    return ok("rlnb", found)


# -- the worker's interpreter ----------------------------------------------------------------------------


def _probe() -> None:  # runs in the worker's interpreter, from its source text: standard library only
    import ctypes
    import importlib.metadata
    import importlib.util
    import json
    import os
    import platform
    import re
    import sys

    facts: dict[str, Any] = {"python": platform.python_version(), "versions": {}}
    for name in ("rlnb", "isaaclab", "torch", "warp-lang"):
        try:
            facts["versions"][name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    torch = importlib.util.find_spec("torch")  # finds it without importing it, which takes seconds
    if torch is not None and torch.origin is not None:
        path = os.path.join(os.path.dirname(torch.origin), "version.py")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        built = re.search(r"^cuda\b.*= *'(.*)'", text, re.MULTILINE)
        facts["torch_cuda"] = built.group(1) if built else None
        version = re.search(r"^__version__ *= *'(.*)'", text, re.MULTILINE)  # with "+cpu" or "+cu130"
        if version:
            facts["versions"]["torch"] = version.group(1)
    try:
        cuda, number = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
        cuda.cuDriverGetVersion(ctypes.byref(number))
        facts["driver_cuda"] = f"{number.value // 1000}.{number.value % 1000 // 10}"
        names = []
        if cuda.cuInit(0) == 0 and cuda.cuDeviceGetCount(ctypes.byref(number)) == 0:
            for index in range(number.value):
                text_c = ctypes.create_string_buffer(256)
                cuda.cuDeviceGetName(text_c, 256, index)
                names.append(text_c.value.decode("utf-8", "replace"))
        facts["devices"] = names
    except OSError:
        pass
    if "warp-lang" in facts["versions"]:  # the rule of warp.config.kernel_cache_dir; importing warp takes a second
        base = os.environ.get("WARP_CACHE_PATH")
        base = base or os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "warp")
        cache = os.path.join(os.path.realpath(base), facts["versions"]["warp-lang"])
        files = [os.path.join(folder, name) for folder, _, names in os.walk(cache) for name in names]
        facts["kernel_cache"] = cache
        facts["kernel_cache_mib"] = sum(os.path.getsize(file) for file in files if os.path.exists(file)) / 2**20
    try:
        from rlnb import plugins
        from rlnb.worker import assets

        packs = [f"{pack.name}-{pack.version}" for pack in plugins.asset_packs().values()]
        if packs:
            facts["asset_pack"] = str(assets.cache_folder() / "assets" / "-".join(packs))
    except Exception:  # no rlnb in that interpreter, which is a finding of its own
        pass
    sys.stdout.write(json.dumps(facts) + "\n")


def look(python: str | None, timeout_s: float) -> Worker:
    """Return the facts of the worker's interpreter; nothing heavy is imported in it."""
    argv = interpreter(python)
    command = " ".join(argv)
    source = f"from __future__ import annotations\n{inspect.getsource(_probe)}\n_probe()"
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
        mend = f"Set rlnb.options.python to a Python that starts. {OWN_ENVIRONMENT}"
        return [
            fault("worker", f"{worker.command}: {worker.error}", mend),
            check_driver(worker, driver),
            check_assets(worker, asset_root, env),
        ]
    return [
        check_worker_rlnb(worker),
        check_isaaclab(worker),
        check_torch(worker, driver),
        check_driver(worker, driver),
        check_kernel_cache(worker),
        check_assets(worker, asset_root, env),
    ]


def check_worker_rlnb(worker: Worker) -> Finding:
    """Judge whether the worker's interpreter has this very rlnb."""
    theirs = worker.version("rlnb")
    found = f"{worker.command}, Python {worker.python}, rlnb {theirs or 'missing'}"
    if theirs == rlnb.__version__:
        return ok("worker", found)
    mend = f"{worker.command} -m pip install rlnb=={rlnb.__version__}"
    return fault("worker", f"{found}, here {rlnb.__version__}", mend)


def check_isaaclab(worker: Worker) -> Finding:
    """Judge Isaac Lab in the worker's interpreter: release line 3.0, which exists for Python 3.12 only."""
    version, on_312 = worker.version("isaaclab"), worker.python.startswith("3.12.")
    if version is not None and f"{version}.".startswith(f"{ISAACLAB}."):
        return ok("Isaac Lab", f"{version} on Python {worker.python}")
    found = f"{version or 'missing'} on Python {worker.python}. {LINE}."
    mend = f"{worker.command} -m pip install 'isaaclab==3.0.0'" if on_312 else OWN_ENVIRONMENT
    return fault("Isaac Lab", found, mend)


def check_torch(worker: Worker, driver: str | None) -> Finding:
    """Judge torch against the driver, by what ``torch.cuda.is_available()`` rests on."""
    version = worker.version("torch")
    if version is None:
        mend = f"{worker.command} -m pip install 'isaaclab==3.0.0'"
        return fault("torch", "missing; Isaac Lab brings it", mend)
    if worker.devices and worker.torch_cuda is None:
        mend = "Install a CUDA build of torch: https://pytorch.org/get-started/locally"
        return warning("torch", f"{version}, built for CPU; the GPU lies idle", mend)
    if worker.devices and _major(worker.torch_cuda) > _major(worker.driver_cuda):
        found = f"{version}, built for CUDA {worker.torch_cuda}; the driver speaks {worker.driver_cuda}: no CUDA"
        mend = f"Update the driver, or install a torch built for CUDA {_major(worker.driver_cuda)}."
        return fault("torch", found, mend)
    if worker.devices:
        names = ", ".join(f"{worker.devices.count(name)} x {name}" for name in dict.fromkeys(worker.devices))
        return ok("torch", f"{version}, CUDA {worker.torch_cuda}: {names}")
    if driver is None:
        return ok("torch", f"{version}; no CUDA: trainings run on the CPU")
    mend = "Look at CUDA_VISIBLE_DEVICES; start a container with --gpus all (docker) or --nv (apptainer)."
    return fault("torch", f"{version}; a driver is there, but CUDA shows no GPU", mend)


def _major(version: str | None) -> int:
    return int((version or "0").split(".")[0] or 0)


def check_driver(worker: Worker, driver: str | None) -> Finding:
    """Tell of the NVIDIA driver."""
    if driver is None:
        return ok("NVIDIA driver", "none: this machine has no NVIDIA GPU")
    speaks = f", CUDA up to {worker.driver_cuda}" if worker.driver_cuda else ", libcuda.so.1 does not load"
    return ok("NVIDIA driver", f"{driver}{speaks}")


def check_kernel_cache(worker: Worker) -> Finding:
    """Tell of the Warp kernel cache: empty, the first run compiles for about half a minute."""
    if not worker.kernel_cache:
        return warning("Warp kernels", "Warp is missing", "Isaac Lab 3.0 brings it.")
    folder = worker.kernel_cache
    if worker.kernel_cache_mib < 0.1:
        found = f"{folder}: empty, so the first run compiles for about 30 s"
        mend = "Nothing to do; to share a filled cache between machines, set WARP_CACHE_PATH."
        return ok("Warp kernels", found, mend)
    return ok("Warp kernels", f"{folder}: {worker.kernel_cache_mib:.1f} MiB")


def check_assets(worker: Worker, asset_root: str | None, env: Mapping[str, str]) -> Finding:
    """Judge where robots come from: explicit, ISAACSIM_ASSET_ROOT, else NVIDIA's cloud or the local pack."""
    variable = env.get("ISAACSIM_ASSET_ROOT")
    chosen, why = (asset_root, "set in the options") if asset_root else (variable, "ISAACSIM_ASSET_ROOT")
    if chosen and ("://" in chosen or Path(chosen).is_dir()):
        return ok("asset root", f"{chosen} ({why})")
    if chosen:
        mend = "Correct or unset it; rlnb assets build makes a folder without a download."
        return fault("asset root", f"{chosen} ({why}) is no folder", mend)
    built = bool(worker.asset_pack) and Path(worker.asset_pack).is_dir()
    if built:
        found = f"none set: NVIDIA's cloud if it answers, else the local pack, built: {worker.asset_pack}"
        return ok("asset root", found)
    if worker.asset_pack:
        found = "none set: NVIDIA's cloud if it answers, else the local pack, which the first run builds"
        return ok("asset root", found, "To build it now: rlnb assets build")
    found = "none set and no asset pack installed: robots come from NVIDIA's cloud only"
    mend = f"{worker.command} -m pip install rlnb-tasks"
    return warning("asset root", found, mend)


# -- the machine -----------------------------------------------------------------------------------------


def check_machine() -> list[Finding]:
    """Judge CPUs and memory, as this process may use them."""
    import psutil

    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    cpus = min(affinity, cpu_quota(_cgroup("cpu.max")) or affinity)
    memory = psutil.virtual_memory()
    limit = _cgroup("memory.max")
    total = min(memory.total, int(limit)) if limit.isdigit() else memory.total
    return [check_cpus(cpus, platform.machine()), check_memory(total / 2**30, min(memory.available, total) / 2**30)]


def _cgroup(name: str) -> str:
    try:
        return (Path("/sys/fs/cgroup") / name).read_text().strip()
    except OSError:
        return ""


def cpu_quota(text: str) -> float | None:
    """Return the CPUs that a container may use, from cgroup v2's ``cpu.max`` (``"200000 100000"``); None: no limit."""
    quota, _, period = text.partition(" ")
    return int(quota) / int(period) if quota.isdigit() and period.isdigit() and int(period) else None


def check_cpus(cpus: float, machine: str) -> Finding:
    """Judge the number of CPUs."""
    found = f"{cpus:g} ({machine})"
    return ok("CPUs", found) if cpus >= 2 else warning("CPUs", found, "Give it two: a training alone takes one.")


def check_memory(total_gib: float, free_gib: float) -> Finding:
    """Judge the memory."""
    found = f"{total_gib:.1f} GiB, {free_gib:.1f} GiB free"
    if free_gib >= LEAST_MEMORY_GIB:
        return ok("memory", found)
    mend = f"Free some: a worker takes 1.5 GiB, so below {LEAST_MEMORY_GIB:g} GiB it is tight."
    return warning("memory", found, mend)


def check_folder(root: Path) -> list[Finding]:
    """Judge the run folder: whether it can be written, and the disk it is on. Leaves nothing there."""
    existing = next(folder for folder in (root, *root.parents) if folder.exists())
    free_bytes = shutil.disk_usage(existing).free
    mend = "Set RLNB_ROOT, or rlnb.options.root, to a folder of yours."
    try:
        with tempfile.TemporaryFile(dir=existing):
            pass
        note = "can be written" if existing == root else "can be written, not made yet"
        folder = ok("run folder", f"{root}: {note}")
    except OSError as exc:
        folder = fault("run folder", f"{root}: {exc.strerror or exc}", mend)
    return [folder, check_disk(free_bytes / 2**20)]


def check_disk(free_mib: float) -> Finding:
    """Judge the free space at the run folder."""
    found = f"{free_mib / 1024:.1f} GiB free at the run folder"
    if free_mib / 1024 >= SCARCE_DISK_GIB:
        return ok("disk", found)
    judge = fault if free_mib < LEAST_DISK_MIB else warning
    return judge("disk", found, "Make room, or set RLNB_ROOT to another disk.")


# -- what is around it -----------------------------------------------------------------------------------


def check_slurm(sbatch: str | None) -> Finding:
    """Tell whether jobs can be sent to Slurm from here."""
    found = f"{sbatch}" if sbatch else "no sbatch on PATH: runs start on this machine"
    return ok("Slurm", found)


def check_browser(browser: str | None) -> Finding:
    """Tell whether reports can become PDF, the one thing that needs a browser."""
    if browser:
        return ok("browser", f"{browser} (for PDF)")
    found = "none on PATH: reports as HTML, not as PDF"
    return warning("browser", found, "For PDF: apt install chromium")


def check_jupyter(jupyterlab: str | None, ipykernel: str | None) -> Finding:
    """Judge JupyterLab and ipykernel, whose 7.4.0 loses what widgets send while a cell runs."""
    found = f"jupyterlab {jupyterlab or 'missing'}, ipykernel {ipykernel or 'missing'}"
    if ipykernel is None:
        return warning("Jupyter", found, "pip install 'rlnb[lab]'")
    release = tuple(int(part) for part in re.findall(r"\d+", ipykernel)[:2])
    mend = "pip install 'ipykernel>=7,<7.4'"
    if release >= (7, 4):
        found += ": 7.4.0 drops messages from the browser in every other cell that blocks"
        return warning("Jupyter", found, mend)
    if release < (7, 0):
        found += ": before 7.0 no message from the browser arrives while a cell blocks"
        return warning("Jupyter", found, mend)
    return ok("Jupyter", found)


def server_base_urls() -> list[str]:
    """Return the base_url of each Jupyter server of this user that still runs."""
    import psutil

    try:
        from jupyter_core.paths import jupyter_runtime_dir
    except ImportError:
        return []
    found = []
    for path in sorted(Path(jupyter_runtime_dir()).glob("jpserver-*.json")):
        try:
            server = json.loads(path.read_text())
            if psutil.pid_exists(server["pid"]):
                found.append(str(server["base_url"]))
        except (OSError, ValueError, KeyError, TypeError):  # a server that is just starting or ending
            continue
    return found


def check_hosted(env: Mapping[str, str], base_urls: Sequence[str]) -> Finding:
    """Tell where the notebook lives: behind JupyterHub, in DSW, or on its own. Values stay out, save the prefix."""
    hosts = []
    if any(name.startswith("JUPYTERHUB_") for name in env):
        hosts.append("JupyterHub")
    if any(name.upper().startswith(("DSW_", "PAI_DSW")) for name in env):
        hosts.append("PAI-DSW")
    prefix = env.get("JUPYTERHUB_SERVICE_PREFIX")
    urls = sorted({*base_urls, *([prefix] if prefix else [])})
    where = " and ".join(hosts) or "no hosted environment"
    return ok("hosted", f"{where}; base_url {', '.join(urls) or 'unknown: no server runs'}")


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
