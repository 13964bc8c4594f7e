"""The doctor's checks of the machine: CPUs, memory, disk, Slurm, browser and Jupyter."""

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

from rlnb.display.browser import find_browser
from rlnb.doctor.finding import Finding, fault, ok, warning
from rlnb.doctor.notebook_host import check_hosted
from rlnb.storage.installation import install_line

LEAST_MEMORY_GIB = 4.0
"""A worker takes 1.2 to 1.5 GiB; a kernel, a living simulator and a training may run side by side."""
LEAST_DISK_MIB, SCARCE_DISK_GIB = 50, 2.0
SINFO_S = 3.0


def checks(root: Path) -> dict[str, Callable[[], Sequence[Finding]]]:
    """Return every check of the machine by name; ``root`` is the folder of runs."""
    return {
        "machine": check_machine,
        "run folder": lambda: check_folder(root),
        "Slurm": lambda: [check_slurm(shutil.which("sbatch"), *partitions())],
        "browser": lambda: [check_browser(find_browser())],
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
    text = f"{cpus:g} ({machine})"
    return (
        ok("CPUs", text) if cpus >= 2 else warning("CPUs", text, "Use at least two CPUs; a training alone takes one.")
    )


def check_memory(total_gib: float, free_gib: float) -> Finding:
    """Judge the memory."""
    text = f"{total_gib:.1f} GiB, {free_gib:.1f} GiB free"
    if free_gib >= LEAST_MEMORY_GIB:
        return ok("memory", text)
    fix = f"Free some memory, to have at least {LEAST_MEMORY_GIB:g} GiB. A worker takes 1.5 GiB."
    return warning("memory", text, fix)


def check_folder(root: Path) -> list[Finding]:
    """Judge the run folder and its disk: whether rlnb can write there. Leaves no file."""
    existing = next(folder for folder in (root, *root.parents) if folder.exists())
    free_bytes = shutil.disk_usage(existing).free
    fix = "Set RLNB_ROOT, or rlnb.options.root, to a folder that you may write to."
    try:
        with tempfile.TemporaryFile(dir=existing):
            pass
        note = "writable" if existing == root else "writable, does not exist yet"
        folder = ok("run folder", f"{root}: {note}")
    except OSError as exc:
        folder = fault("run folder", f"{root}: {exc.strerror or exc}", fix)
    return [folder, check_disk(free_bytes / 2**20)]


def check_disk(free_mib: float) -> Finding:
    """Judge the free space at the run folder."""
    text = f"{free_mib / 1024:.1f} GiB free at the run folder"
    if free_mib / 1024 >= SCARCE_DISK_GIB:
        return ok("disk", text)
    judge = fault if free_mib < LEAST_DISK_MIB else warning
    return judge("disk", text, "Free some space, or set RLNB_ROOT to a folder on another disk.")


# -- the tools around it ---------------------------------------------------------------------------------


def partitions() -> tuple[str, str]:
    """Return the names of Slurm's partitions, and the reason if Slurm does not answer."""
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
    """Judge whether this machine can submit jobs to Slurm."""
    if sbatch is None:
        return ok("Slurm", "sbatch is not on PATH, so runs start on this machine")
    if error:
        fix = "Set SLURM_CONF, or use a login node. Without launcher=rlnb.slurm(...), runs start on this machine."
        return warning("Slurm", f"{sbatch} is installed, but Slurm does not answer: {error}", fix)
    return ok("Slurm", f"{sbatch}, partitions: {partitions or 'none'}")


def check_browser(browser: str | None) -> Finding:
    """Judge whether reports can be printed as PDF, which needs a browser."""
    if browser:
        return ok("browser", f"{browser} (for PDF)")
    return warning("browser", "none on PATH, so reports are HTML only", "apt install chromium")


def check_jupyter(jupyterlab: str | None, ipykernel: str | None) -> Finding:
    """Judge JupyterLab and ipykernel. ipykernel 7.4.0 loses messages of widgets while a cell runs."""
    text = f"jupyterlab {jupyterlab or 'missing'}, ipykernel {ipykernel or 'missing'}"
    if ipykernel is None:
        return warning("Jupyter", text, install_line("rlnb[lab]"))
    release = tuple(int(part) for part in re.findall(r"\d+", ipykernel)[:2])
    fix = "pip install 'ipykernel>=7,<7.4'"
    if release >= (7, 4):
        text += ". Version 7.4.0 drops messages from the browser in every other cell that blocks"
        return warning("Jupyter", text, fix)
    if release < (7, 0):
        text += ". Before version 7.0, no message from the browser arrives while a cell blocks"
        return warning("Jupyter", text, fix)
    return ok("Jupyter", text)


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
