"""The limits of the control groups that this process is in: a container's, a pod's, a Slurm job's, a systemd slice's.

See cgroups(7) for the two versions, and proc(5) for the format of ``mountinfo``. A limit of a group also holds for the
groups in it, so the smallest one counts.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

PROC = Path("/proc/self")
"""Where Linux describes this process."""


def cpus(proc: Path = PROC) -> float | None:
    """Return the CPU time that this process may use, in cores; None without a quota."""
    return min(_cpus(proc), default=None)


def memory_bytes(proc: Path = PROC) -> int | None:
    """Return the bytes of memory that this process may use together with its groups' others; None without a limit."""
    names = "memory.max", "memory.limit_in_bytes"
    texts = (_read(folder / name) for folder in _folders("memory", proc) for name in names)
    return min((int(text) for text in texts if text.isdecimal()), default=None)


def _cpus(proc: Path) -> Iterator[float]:
    for folder in _folders("cpu", proc):
        version_2 = _read(folder / "cpu.max").split()
        version_1 = [_read(folder / name) for name in ("cpu.cfs_quota_us", "cpu.cfs_period_us")]
        for parts in (version_2, version_1):
            # "max" and -1 stand for no quota.
            if len(parts) == 2 and all(part.isdecimal() and int(part) for part in parts):
                yield int(parts[0]) / int(parts[1])


def _folders(controller: str, proc: Path) -> Iterator[Path]:
    """Yield the folders of a controller's groups that this process is in, the innermost of each hierarchy first."""
    lines = (line.split(":", 2) for line in _read(proc / "cgroup").splitlines())
    groups = {name: path for _, names, path in lines for name in names.split(",")}
    for line in _read(proc / "mountinfo").splitlines():
        mount, _, system = line.partition(" - ")
        (_, _, _, root, point, *_), (kind, _, options) = mount.split(), system.split(" ", 2)
        name = "" if kind == "cgroup2" else controller
        if kind not in ("cgroup", "cgroup2") or (name and name not in options.split(",")) or name not in groups:
            continue
        path = PurePosixPath(groups[name])
        # A container may see the names of its host's groups, of which only its own are mounted.
        parts = path.relative_to(root).parts if path.is_relative_to(root) else ()
        yield from (Path(point, *parts[:depth]) for depth in range(len(parts), -1, -1))


def _read(path: Path) -> str:
    with contextlib.suppress(OSError):
        return path.read_text().strip()
    return ""
