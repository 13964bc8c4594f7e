"""The machine, as far as the doctor judges it: CPUs, memory, disk, Slurm, browser and Jupyter."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from rlnb.doctor.finding import Finding, fault, ok, warning
from rlnb.doctor.notebook_host import check_hosted

LEAST_MEMORY_GIB = 4.0
"""A worker takes 1.2 to 1.5 GiB, and a kernel, a warm worker and a training may live side by side."""
LEAST_DISK_MIB, SCARCE_DISK_GIB = 50, 2.0
SINFO_S = 3.0
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def checks(root: Path) -> dict[str, Callable[[], Sequence[Finding]]]:
    """Return every check of the machine by name; ``root`` is the folder of runs."""
    return {
        "machine": check_machine,
        "run folder": lambda: check_folder(root),
        "Slurm": lambda: [check_slurm(shutil.which("sbatch"), *partitions())],
        "browser": lambda: [check_browser(next(filter(None, map(shutil.which, BROWSERS)), None))],
        "Jupyter": lambda: [check_jupyter(_version("jupyterlab"), _version("ipykernel"))],
        "hosted": lambda: check_hosted(root, os.environ),
    }


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
    fix = f"Free some: a worker takes 1.5 GiB, so below {LEAST_MEMORY_GIB:g} GiB it is tight."
    return warning("memory", found, fix)


def check_folder(root: Path) -> list[Finding]:
    """Judge the run folder: whether it can be written, and the disk it is on. Leaves nothing there."""
    existing = next(folder for folder in (root, *root.parents) if folder.exists())
    free_bytes = shutil.disk_usage(existing).free
    fix = "Set RLNB_ROOT, or rlnb.options.root, to a folder of yours."
    try:
        with tempfile.TemporaryFile(dir=existing):
            pass
        note = "can be written" if existing == root else "can be written, not made yet"
        folder = ok("run folder", f"{root}: {note}")
    except OSError as exc:
        folder = fault("run folder", f"{root}: {exc.strerror or exc}", fix)
    return [folder, check_disk(free_bytes / 2**20)]


def check_disk(free_mib: float) -> Finding:
    """Judge the free space at the run folder."""
    found = f"{free_mib / 1024:.1f} GiB free at the run folder"
    if free_mib / 1024 >= SCARCE_DISK_GIB:
        return ok("disk", found)
    judge = fault if free_mib < LEAST_DISK_MIB else warning
    return judge("disk", found, "Make room, or set RLNB_ROOT to another disk.")


# -- what is around it -----------------------------------------------------------------------------------


def partitions() -> tuple[str, str]:
    """Return the names of Slurm's partitions, and why there are none."""
    try:
        asked = ["sinfo", "--noheader", "--format=%R"]
        done = subprocess.run(asked, capture_output=True, text=True, timeout=SINFO_S, check=False)
    except FileNotFoundError:
        return "", "there is no sinfo"
    except subprocess.TimeoutExpired:
        return "", f"sinfo has no answer in {SINFO_S:g} s"
    said = (done.stderr.strip().splitlines() or [f"sinfo ends with {done.returncode}"])[-1]
    return ", ".join(sorted(set(done.stdout.split()))), said if done.returncode else ""


def check_slurm(sbatch: str | None, partitions: str, why_none: str) -> Finding:
    """Tell whether jobs can be sent to Slurm from here."""
    if sbatch is None:
        return ok("Slurm", "no sbatch on PATH: runs start on this machine")
    if why_none:
        fix = "Set SLURM_CONF, or run on a login node; without launcher=rlnb.slurm(...) runs start on this machine."
        return warning("Slurm", f"{sbatch} is here, but no Slurm that answers: {why_none}", fix)
    return ok("Slurm", f"{sbatch}, partitions: {partitions or 'none'}")


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
    fix = "pip install 'ipykernel>=7,<7.4'"
    if release >= (7, 4):
        found += ": 7.4.0 drops messages from the browser in every other cell that blocks"
        return warning("Jupyter", found, fix)
    if release < (7, 0):
        found += ": before 7.0 no message from the browser arrives while a cell blocks"
        return warning("Jupyter", found, fix)
    return ok("Jupyter", found)


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
