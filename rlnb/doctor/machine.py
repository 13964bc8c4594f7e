"""The doctor's checks of the machine: CPUs, memory, disk, Slurm, browser, Jupyter, and the host of a notebook."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import platform
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rlnb.doctor.finding import Finding, fault, ok, warning
from rlnb.machine import cores, threads
from rlnb.machine.cores import Cores
from rlnb.machine.packages import find_browser, install_line
from rlnb.settings import options
from rlnb.storage import access

LEAST_MEMORY_GIB = 4.0
"""Free memory below which the doctor warns. A worker takes 1.2 to 1.5 GiB, and a kernel, a warm simulator and a
training may run at the same time."""
LEAST_DISK_MIB, SCARCE_DISK_GIB = 50, 2.0
SINFO_S = 3.0


def checks(root: Path) -> dict[str, Callable[[], Sequence[Finding]]]:
    """Return the checks of the machine by name; ``root`` is the folder of runs."""
    return {
        "machine": check_machine,
        "run folder": lambda: check_folder(root),
        "Slurm": lambda: [check_slurm(shutil.which("sbatch"), *partitions())],
        "browser": lambda: [check_browser(find_browser())],
        "Jupyter": lambda: [check_jupyter(_version("jupyterlab"), _version("ipykernel"))],
        "hosted": lambda: check_hosted(root, os.environ),
    }


def check_machine() -> list[Finding]:
    """Check the CPUs and the memory that this process may use."""
    import psutil

    memory = psutil.virtual_memory()
    total = min(memory.total, cores.cgroup_memory_bytes() or memory.total)
    return [
        # The load of the last minute, of which the doctor itself is only a small part.
        check_cpus(cores.available(), os.getloadavg()[0], platform.machine()),
        check_memory(total / 2**30, min(memory.available, total) / 2**30),
    ]


def check_cpus(usable: Cores, busy: float, machine: str) -> Finding:
    """Check the number of CPUs, and whether others leave some of them to a training.

    Args:
        usable: The cores that this process may use.
        busy: Cores of the whole machine that were in use lately.
        machine: Kind of the processor.
    """
    chosen = os.environ.get(threads.OMP_THREADS)
    number = f"{threads.OMP_THREADS}={chosen}" if chosen else f"{usable.each(1)} threads for a training"
    text = f"{usable.number:g} ({machine}; {usable.why}; {number})"
    if usable.number < 2:
        return warning("CPUs", text, "Use at least two CPUs. A training alone takes one.")
    if (os.cpu_count() or 1) - busy < 1:
        fix = f"In the last minute, {busy:.1f} cores were in use. A training on the CPU is slow until others end."
        return warning("CPUs", text, fix)
    return ok("CPUs", text)


def check_memory(total_gib: float, free_gib: float) -> Finding:
    """Check the free memory."""
    text = f"{total_gib:.1f} GiB, {free_gib:.1f} GiB free"
    if free_gib >= LEAST_MEMORY_GIB:
        return ok("memory", text)
    fix = f"Free memory until at least {LEAST_MEMORY_GIB:g} GiB are available. A worker alone takes 1.5 GiB."
    return warning("memory", text, fix)


def check_folder(root: Path) -> list[Finding]:
    """Check that the run folder is writable and its disk has space. Leaves no file behind."""
    existing = next(folder for folder in (root, *root.parents) if folder.exists())
    free_bytes = shutil.disk_usage(existing).free
    fix = "Set RLNB_ROOT or rlnb.options.root to a writable folder."
    try:
        with tempfile.TemporaryFile(dir=existing):
            pass
        note = "writable" if existing == root else "writable, not created yet"
        folder = ok("run folder", f"{root}: {note}")
    except OSError as exc:
        folder = fault("run folder", f"{root}: {exc.strerror or exc}", fix)
    if options.team and folder.level == "ok":
        folder = ok("run folder", f"{folder.text}, of a team: what its members put there may be executed")
    shared = [fault("run folder", problem.what, problem.fix) for problem in access.sharing_problems(root)]
    unsafe = folder.level == "ok" and shared
    return [*(shared if unsafe else [folder, *shared]), check_disk(free_bytes / 2**20)]


def check_disk(free_mib: float) -> Finding:
    """Check the free space on the run folder's disk."""
    text = f"{free_mib / 1024:.1f} GiB free on the run folder's disk"
    if free_mib / 1024 >= SCARCE_DISK_GIB:
        return ok("disk", text)
    judge = fault if free_mib < LEAST_DISK_MIB else warning
    return judge("disk", text, "Free disk space, or set RLNB_ROOT to a folder on another disk.")


# -- tools -----------------------------------------------------------------------------------------------------------


def partitions() -> tuple[str, str]:
    """Return the names of Slurm's partitions, and an error if Slurm does not answer."""
    try:
        argv = ["sinfo", "--noheader", "--format=%R"]
        process = subprocess.run(argv, capture_output=True, text=True, timeout=SINFO_S, check=False)
    except FileNotFoundError:
        return "", "sinfo is not installed"
    except subprocess.TimeoutExpired:
        return "", f"sinfo did not answer in {SINFO_S:g} s"
    message = (process.stderr.strip().splitlines() or [f"exit status {process.returncode} of sinfo"])[-1]
    return ", ".join(sorted(set(process.stdout.split()))), message if process.returncode else ""


def check_slurm(sbatch: str | None, partitions: str, error: str) -> Finding:
    """Check whether this machine can submit jobs to Slurm."""
    if sbatch is None:
        return ok("Slurm", "not used: sbatch is not on PATH, so runs start on this machine")
    if error:
        fix = "Set SLURM_CONF, or use a login node. Runs without launcher=rlnb.slurm(...) do not need Slurm."
        return warning("Slurm", f"{sbatch} is installed, but Slurm does not answer: {error}", fix)
    return ok("Slurm", f"{sbatch}, partitions: {partitions or 'none'}")


def check_browser(browser: str | None) -> Finding:
    """Check for a browser, which reports in PDF need."""
    if browser:
        return ok("browser", f"{browser} (for PDF)")
    return warning("browser", "no Chromium on PATH, so reports are HTML only", "apt install chromium")


def check_jupyter(jupyterlab: str | None, ipykernel: str | None) -> Finding:
    """Check JupyterLab and ipykernel. ipykernel 7.4.0 loses messages from widgets while a cell runs."""
    text = f"jupyterlab {jupyterlab or 'missing'}, ipykernel {ipykernel or 'missing'}"
    if ipykernel is None:
        return warning("Jupyter", text, install_line("rlnb[lab]"))
    release = tuple(int(part) for part in re.findall(r"\d+", ipykernel)[:2])
    fix = "pip install 'ipykernel>=7,<7.4'"
    if release >= (7, 4):
        text += ". Version 7.4.0 drops messages from the browser in every second cell that blocks the kernel"
        return warning("Jupyter", text, fix)
    if release < (7, 0):
        text += ". Versions before 7.0 receive no messages from the browser while a cell blocks the kernel"
        return warning("Jupyter", text, fix)
    return ok("Jupyter", text)


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


# -- notebook host ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Facts about the environment of a notebook."""

    hosts: tuple[str, ...]
    """``"JupyterHub"`` and ``"PAI-DSW"`` as detected; empty on the user's own machine."""
    base_urls: tuple[str, ...]
    """Base URLs of the running Jupyter servers, and the host's prefix."""
    proxy: bool
    """Whether jupyter-server-proxy is installed, which TensorBoard and the 3D view need behind a gateway."""
    home: bool
    """Whether the home folder is writable."""
    cache: str
    """Value of WARP_CACHE_PATH."""
    persistent: bool
    """Whether the run folder is on another file system than ``/``, and so not in the container's own layer."""
    root: Path
    """Folder of runs."""


def check_hosted(root: Path, env: Mapping[str, str]) -> list[Finding]:
    """Return the findings about the host of the notebook."""
    return judge_host(look_at_host(root, env))


def look_at_host(root: Path, env: Mapping[str, str]) -> Place:
    """Return the facts. They contain no environment variable's value except WARP_CACHE_PATH and the URL prefix."""
    hosts = []
    if any(name.startswith("JUPYTERHUB_") for name in env):
        hosts.append("JupyterHub")
    if any(name.upper().startswith(("DSW_", "PAI_DSW")) for name in env):
        hosts.append("PAI-DSW")
    prefix = env.get("JUPYTERHUB_SERVICE_PREFIX")
    existing = next(folder for folder in (root, *root.parents) if folder.exists())
    return Place(
        hosts=tuple(hosts),
        base_urls=tuple(sorted({*server_base_urls(), *([prefix] if prefix else [])})),
        proxy=importlib.util.find_spec("jupyter_server_proxy") is not None,
        home=_writable(Path.home()),
        cache=env.get("WARP_CACHE_PATH", ""),
        persistent=existing.stat().st_dev != Path("/").stat().st_dev,
        root=root,
    )


def judge_host(place: Place) -> list[Finding]:
    """Return the findings. The user's own machine needs no settings for hosted notebooks."""
    where = " and ".join(place.hosts) or "no hosted environment"
    urls = ", ".join(place.base_urls)
    findings = [ok("hosted", f"{where}; {f'base_url {urls}' if urls else 'no Jupyter server is running'}")]
    if not place.home and not place.cache:
        fix = f"export WARP_CACHE_PATH={place.root.parent / '.cache' / 'warp'} to compile kernels only once."
        findings.append(warning("hosted cache", "the home folder is not writable, and WARP_CACHE_PATH is not set", fix))
    if not place.hosts:
        return findings
    if not place.persistent:
        fix = "Set RLNB_ROOT to a mounted folder, such as /mnt/workspace/rlnb-runs or your home folder on the Hub."
        findings.append(warning("hosted folder", f"{place.root} is inside the container, and is deleted with it", fix))
    if not place.proxy:
        fix = "pip install 'jupyter-server-proxy>=4.4', then restart the server."
        text = "jupyter-server-proxy is not installed, so TensorBoard and the 3D view cannot pass the gateway"
        findings.append(warning("hosted proxy", text, fix))
    return findings


def server_base_urls() -> list[str]:
    """Return the base URL of each running Jupyter server of this user."""
    import psutil

    try:
        from jupyter_core.paths import jupyter_runtime_dir
    except ImportError:
        return []
    urls = []
    for path in sorted(Path(jupyter_runtime_dir()).glob("jpserver-*.json")):
        try:
            server = json.loads(path.read_text())
            if psutil.pid_exists(server["pid"]):
                urls.append(str(server["base_url"]))
        except (OSError, ValueError, KeyError, TypeError):  # a server that is just starting or ending
            continue
    return urls


def _writable(folder: Path) -> bool:
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False
