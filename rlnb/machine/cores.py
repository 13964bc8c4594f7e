"""How many CPU cores this process may use, and what says so."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

SCHEDULERS: Mapping[str, tuple[str, ...]] = {
    "SLURM_JOB_ID": ("SLURM_CPUS_PER_TASK", "SLURM_CPUS_ON_NODE"),
    "PBS_JOBID": ("NCPUS",),
    "LSB_JOBID": ("LSB_DJOB_NUMPROC",),
    "SGE_O_HOST": ("NSLOTS",),
}
"""Variables with the cores of a job, by a variable that only jobs of that scheduler have; the first one that is set
counts. A scheduler need not bind a job to its cores."""


@dataclass(frozen=True, slots=True)
class Cores:
    """The CPU cores that a process may use."""

    number: float
    """Their number, which a quota need not make whole."""
    why: str
    """What limits them, e.g. ``"SLURM_CPUS_PER_TASK=4"``."""

    def each(self, shares: int) -> int:
        """Return the whole cores of each of several processes that share them, at least 1."""
        return max(1, int(self.number / shares))


def bound() -> int:
    """Return the number of cores that this process can run on, which is how many threads OpenMP starts by itself."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def available(environ: Mapping[str, str] = os.environ) -> Cores:
    """Return the cores that this process may use: the fewest that its affinity, a quota or a job's scheduler allows.

    Args:
        environ: Environment in which a scheduler has started the job.
    """
    return min(_limits(environ), key=lambda cores: cores.number)


def _limits(environ: Mapping[str, str]) -> Iterator[Cores]:
    number, total = bound(), os.cpu_count() or 1
    yield Cores(number, f"all {number} cores" if number == total else f"bound to {number} of {total} cores")
    if quota := cgroup_cpus():
        yield Cores(quota, f"a quota of {quota:g} core{'' if quota == 1 else 's'}")
    for job, names in SCHEDULERS.items():
        name = next((name for name in names if environ.get(name, "").isdecimal()), None)
        if job in environ and name and int(environ[name]):
            yield Cores(int(environ[name]), f"{name}={environ[name]}")


# -- cgroups ---------------------------------------------------------------------------------------------------------
# See cgroups(7) for the two versions, and proc(5) for the format of ``mountinfo``. A limit of a group also holds for
# the groups in it, so the smallest one counts.


PROC = Path("/proc/self")
"""Where Linux describes this process."""


def cgroup_cpus(proc: Path = PROC) -> float | None:
    """Return the CPU time that this process may use, in cores; None without a quota."""
    return min(_quota_cpus(proc), default=None)


def cgroup_memory_bytes(proc: Path = PROC) -> int | None:
    """Return the bytes of memory that this process may use together with its groups' others; None without a limit."""
    names = "memory.max", "memory.limit_in_bytes"
    texts = (_read_limit(folder / name) for folder in _folders("memory", proc) for name in names)
    return min((int(text) for text in texts if text.isdecimal()), default=None)


def _quota_cpus(proc: Path) -> Iterator[float]:
    for folder in _folders("cpu", proc):
        version_2 = _read_limit(folder / "cpu.max").split()
        version_1 = [_read_limit(folder / name) for name in ("cpu.cfs_quota_us", "cpu.cfs_period_us")]
        for parts in (version_2, version_1):
            # "max" and -1 stand for no quota.
            if len(parts) == 2 and all(part.isdecimal() and int(part) for part in parts):
                yield int(parts[0]) / int(parts[1])


def _folders(controller: str, proc: Path) -> Iterator[Path]:
    """Yield the folders of a controller's groups that this process is in, the innermost of each hierarchy first."""
    lines = (line.split(":", 2) for line in _read_limit(proc / "cgroup").splitlines())
    groups = {name: path for _, names, path in lines for name in names.split(",")}
    for line in _read_limit(proc / "mountinfo").splitlines():
        mount, _, system = line.partition(" - ")
        (_, _, _, root, point, *_), (kind, _, options) = mount.split(), system.split(" ", 2)
        name = "" if kind == "cgroup2" else controller
        if kind not in ("cgroup", "cgroup2") or (name and name not in options.split(",")) or name not in groups:
            continue
        path = PurePosixPath(groups[name])
        # A container may see the names of its host's groups, of which only its own are mounted.
        parts = path.relative_to(root).parts if path.is_relative_to(root) else ()
        yield from (Path(point, *parts[:depth]) for depth in range(len(parts), -1, -1))


def _read_limit(path: Path) -> str:
    with contextlib.suppress(OSError):
        return path.read_text().strip()
    return ""
