"""Event files of ten packages: what rlnb reads beside what TensorBoard reads, value by value and folder by folder.

    python benchmarks/event_files.py          # makes environments of the packages, and writes files anew
    python benchmarks/event_files.py --keep   # and keeps them for the tests, in tests/metrics/event_files
    python benchmarks/event_files.py --kept   # compares the kept files only

``event_writers.py`` writes the files, in an environment of each package's own. Those of the RL libraries are of short
trainings in this environment.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from results import record

import rlnb
from rlnb.metrics.events import EventReader

WRITERS = Path(__file__).with_name("event_writers.py")
KEPT = Path(__file__).parents[1] / "tests" / "metrics" / "event_files"
ENVIRONMENTS = {
    "torch": ("torch", "tensorboard", "tensorboardX"),
    "tensorboardx": ("torch", "tensorboard", "tensorboardX"),
    "tensorflow": ("tensorflow-cpu", "keras", "tensorboard"),
    "keras": ("tensorflow-cpu", "keras", "tensorboard"),
    "clu": ("clu", "tensorflow-cpu", "flax", "tensorboard"),
    "lightning": ("lightning", "tensorboard"),
}
LIBRARIES = ("rsl_rl", "rl_games", "skrl", "sb3")


def environment(base: Path, packages: tuple[str, ...]) -> str:
    """Make an environment with packages, if there is none yet; return its interpreter."""
    folder = base / "-".join(packages)
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run(["uv", "venv", "--quiet", "--python", sys.executable, str(folder)], check=True)
        subprocess.run(["uv", "pip", "install", "--quiet", "--python", str(python), *packages], check=True)
    return str(python)


def write(base: Path, files: Path) -> None:
    """Write the files of all packages, one folder each, with TensorBoard's reading in ``tensorboard.json``."""
    for package, packages in ENVIRONMENTS.items():
        subprocess.run([environment(base, packages), WRITERS, package, files / package], check=True)
    for library in LIBRARIES:
        run = rlnb.train("Isaac-Cartpole-Direct", library=library, num_envs=4, max_iterations=5)
        run.wait()
        for path in (run.path / "logs").rglob("*tfevents*"):
            below = path.relative_to(run.path / "logs")
            if below.parts[0] != "system":
                (files / library / below).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, files / library / below)
    reader = environment(base, ENVIRONMENTS["torch"])
    for package in (*ENVIRONMENTS, *LIBRARIES):
        told = subprocess.run([reader, WRITERS, "read", files / package], check=True, capture_output=True, text=True)
        (files / package / "tensorboard.json").write_text(told.stdout)


def ours(folder: Path) -> dict[str, dict[str, list[list[float]]]]:
    """Return what rlnb reads: folder to tag to step and value of each point."""
    reader = EventReader(folder)
    reader.refresh()
    runs: dict[str, dict[str, list[list[float]]]] = {}
    for curve in reader.curves.values():
        runs.setdefault(curve.folder or ".", {})[curve.tag] = [[step, value] for step, _, value in curve.column]
    return runs


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        files = KEPT if "--kept" in sys.argv else Path(temporary) / "files"
        if files != KEPT:
            write(Path(temporary), files)
        equal, parts = True, []
        for package in (*ENVIRONMENTS, *LIBRARIES):
            theirs = json.loads((files / package / "tensorboard.json").read_text())
            same = json.dumps(theirs, sort_keys=True) == json.dumps(ours(files / package), sort_keys=True)
            curves = [points for tags in theirs.values() for points in tags.values()]
            equal &= same
            parts.append(f"{package} {len(curves)} curves, {sum(map(len, curves))} points{'' if same else ' DIFFER'}")
        if "--keep" in sys.argv:
            shutil.rmtree(KEPT, ignore_errors=True)
            shutil.copytree(files, KEPT)
    kept = ", kept" if files == KEPT else ""
    record(
        f"event files of ten packages{kept}, against TensorBoard",
        f"{'equal' if equal else 'NOT equal'}: {'; '.join(parts)}",
        "equal value by value, folder by folder",
        equal,
    )


if __name__ == "__main__":
    main()
