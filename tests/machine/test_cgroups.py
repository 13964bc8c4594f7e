"""The limits of cgroups of both versions, as Linux describes them, and of a real one where this user may make it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rlnb.machine import cores

V1 = Path("/sys/fs/cgroup/cpu")
"""Where most systems mount the first version's controller of the CPU."""
V2 = Path("/sys/fs/cgroup")


def proc(folder: Path, groups: str, mounts: dict[str, str]) -> Path:
    """Make a folder like ``/proc/self``.

    Args:
        folder: Where to make it.
        groups: Content of ``cgroup``.
        mounts: Root, system, and options of each mounted hierarchy, by its folder in ``folder``.
    """
    (folder / "cgroup").write_text(groups)
    lines = []
    for name, text in mounts.items():
        root, kind, options = text.split()
        (folder / name).mkdir(parents=True, exist_ok=True)
        lines.append(f"42 41 0:38 {root} {folder / name} rw,relatime shared:9 - {kind} {kind} rw,{options}\n")
    (folder / "mountinfo").write_text("".join(lines) + "1 0 8:1 / / rw - ext4 /dev/vda rw\n")
    return folder


def limit(folder: Path, **values: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in values.items():
        (folder / name.replace("__", ".")).write_text(f"{text}\n")


def test_the_smallest_quota_around_a_process_counts(tmp_path: Path) -> None:
    here = proc(tmp_path, "0::/slurm/job_7/step_0\n", {"unified": "/ cgroup2 nsdelegate"})
    assert cores.cgroup_cpus(here) is None
    limit(tmp_path / "unified/slurm/job_7/step_0", cpu__max="max 100000")
    limit(tmp_path / "unified/slurm/job_7", cpu__max="150000 100000", memory__max="2147483648")
    limit(tmp_path / "unified/slurm", cpu__max="800000 100000", memory__max="max")
    assert (cores.cgroup_cpus(here), cores.cgroup_memory_bytes(here)) == (1.5, 2**31)


def test_the_first_version_has_a_mount_for_each_controller(tmp_path: Path) -> None:
    groups = "4:memory:/kubepods/pod1\n2:cpu,cpuacct:/kubepods/pod1\n0::/\n"
    mounts = {"cpu": "/ cgroup cpu,cpuacct", "memory": "/ cgroup memory", "unified": "/ cgroup2 nsdelegate"}
    here = proc(tmp_path, groups, mounts)
    limit(tmp_path / "cpu/kubepods/pod1", **{"cpu.cfs_quota_us": "50000", "cpu.cfs_period_us": "100000"})
    limit(tmp_path / "memory/kubepods/pod1", **{"memory.limit_in_bytes": "9223372036854771712"})
    assert (cores.cgroup_cpus(here), cores.cgroup_memory_bytes(here)) == (0.5, 9223372036854771712)
    limit(tmp_path / "cpu/kubepods/pod1", **{"cpu.cfs_quota_us": "-1"})
    assert cores.cgroup_cpus(here) is None


def test_a_container_that_sees_the_names_of_its_host_finds_its_own_group(tmp_path: Path) -> None:
    here = proc(tmp_path, "2:cpu:/docker/4f1a\n", {"cpu": "/docker/4f1a cgroup cpu"})
    limit(tmp_path / "cpu", **{"cpu.cfs_quota_us": "200000", "cpu.cfs_period_us": "100000"})
    assert cores.cgroup_cpus(here) == 2.0


def test_a_system_without_cgroups_sets_no_limit(tmp_path: Path) -> None:
    assert (cores.cgroup_cpus(tmp_path), cores.cgroup_memory_bytes(tmp_path)) == (None, None)


@pytest.fixture
def group() -> Iterator[Path]:
    """A real group with a quota of one core."""
    files = (
        (V1, {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "100000"}),
        (V2, {"cpu.max": "100000 100000"}),
    )
    for parent, limits in files:
        path = parent / f"rlnb-test-{os.getpid()}"
        try:
            path.mkdir()
        except OSError:
            continue
        try:
            for name, text in limits.items():
                (path / name).write_text(text)
            yield path
            return
        except OSError:
            continue
        finally:
            path.rmdir()
    pytest.skip("This user may make no group with a quota.")


def test_a_real_quota_is_found_and_gives_a_training_its_threads(group: Path) -> None:
    look = "from rlnb.machine import cores, threads; print(cores.available()); print(threads.variables({}))"
    enter = f"import os; open({str(group / 'cgroup.procs')!r}, 'w').write(str(os.getpid())); {look}"
    answer = subprocess.run([sys.executable, "-c", enter], capture_output=True, text=True, check=True).stdout
    if (os.cpu_count() or 1) > 1:
        assert "Cores(number=1.0, why='a quota of 1 core')" in answer
        assert "'OMP_NUM_THREADS': '1', 'RLNB_THREADS': 'a quota of 1 core'" in answer
