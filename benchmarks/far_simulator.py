"""The warm simulator in a job of Slurm against one on this machine: times and results.

    python benchmarks/far_simulator.py --python .venv/bin/python

Run it with the interpreter of a kernel, which needs neither torch nor Isaac Lab, such as ``.venv-3.11/bin/python`` from
``make test-kernels``. ``--python`` is the interpreter of the workers. The Slurm is that of ``tests/rig/slurm.py``, and
its node does not share the folder of the tasks' modules and pictures in the way that counts: all of them travel.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import platform
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from edit_loop import NUM_ENVS, SIZE, STATE

import rlnb
from rlnb.results import Preview
from rlnb.tasks import source

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "rig"))
import slurm as rig

ROUNDS, MORE_S = 10, 0.5
"""Edits in each place, and the most seconds that the node may add to the median."""
TASK, WALLTIME = "Isaac-Cartpole-Direct", "00:30:00"
NEVER_EQUAL = ("seconds", "time", "created")


def edited(number: int, launcher: Any) -> float:
    """Edit the cell of a task and preview it; return the seconds to the picture."""
    begun = time.perf_counter()
    source.write_module(rlnb.options.folders, "Edited", STATE.format(number=number), "benchmark")
    rlnb.preview("Edited", num_envs=NUM_ENVS, size=SIZE, device="cpu", launcher=launcher)._repr_png_()
    return time.perf_counter() - begun


def frames_differ(near: Preview, far: Preview) -> list[str]:
    """Return the outputs of two previews that are not equal."""
    return [
        f"{camera}/{kind}"
        for camera, kinds in near.clip.items()
        for kind in kinds
        if not np.array_equal(near.clip[camera][kind], far.clip[camera][kind])
    ]


def values_of(run: rlnb.Run) -> Any:
    """Return the values of a run's newest evaluation, without those that are about time."""
    record = json.loads(run.jobs[-1].folder.evaluation.read_text())
    return {name: value for name, value in record.items() if not any(word in name for word in NEVER_EQUAL)}


def compare(gpu: Any) -> dict[str, bool]:
    """Return whether each verb gives the same on the node as here."""
    equal: dict[str, bool] = {}
    near, far = (rlnb.preview(TASK, num_envs=4, steps=10, device="cpu", launcher=place) for place in (None, gpu))
    equal["preview"] = not frames_differ(near, far)
    tuners = [rlnb.tune("Isaac-Cartpole", num_envs=4, device="cpu", launcher=place) for place in (None, gpu)]
    for tuner in tuners:
        tuner.set("rewards.alive.weight", 2.0).step(5)
    equal["tune"] = tuners[0].values == tuners[1].values
    for tuner in tuners:
        tuner.close()
    budget = rlnb.camera_budget(TASK, sizes=[(32, 32)], envs=(1, 2), device="cpu", launcher=gpu)
    equal["camera_budget"] = [cost.num_envs for cost in budget.costs] == [1, 2]
    run = rlnb.train(TASK, num_envs=16, max_iterations=3, device="cpu", warm=False).wait()
    results = []
    for place in (None, gpu):
        rlnb.options.simulator = place
        run.evaluate(episodes=8)
        results.append(values_of(run))
        equal["play" if place else "play here"] = run.play(1) is not None
        equal["export" if place else "export here"] = bool(run.export())
    rlnb.options.simulator = None
    equal["evaluate"] = results[0] == results[1]
    with_policy = [rlnb.preview(run, num_envs=2, steps=5, device="cpu", launcher=place) for place in (None, gpu)]
    equal["preview of a policy"] = not frames_differ(*with_policy)
    return equal


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", required=True)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--record", action="store_true", help="write the rows into RESULTS.md")
    parser.add_argument("--parts", nargs="*", choices=("edit", "verbs"), default=["edit", "verbs"])
    arguments = parser.parse_args()
    rows: list[tuple[str, str, str, bool]] = []
    kernel = f"kernel on Python {platform.python_version()}"
    kernel += " without torch" if importlib.util.find_spec("torch") is None else ""
    base = Path(tempfile.mkdtemp(prefix="rlnb-bench-"))
    rlnb.options.root, rlnb.options.python = base / "rlnb", arguments.python
    cluster = rig.Slurm(base / "slurm", 2, port=16950)
    cluster.up()
    gpu = rlnb.slurm(walltime=WALLTIME, python=arguments.python)
    try:
        if "edit" in arguments.parts:
            for number, place in enumerate((None, gpu)):
                edited(100 + number, place)
                time.sleep(10)  # lets the simulator finish its background work
            pairs = []
            for number in range(arguments.rounds):
                pairs.append((edited(2 * number, None), edited(2 * number + 1, gpu)))
                print(*(f"{value:.2f}" for value in pairs[-1]), flush=True)
            near, far = (statistics.median(times) for times in zip(*pairs, strict=True))
            what = f"from an edit of the cell to its picture, simulator on a Slurm node, {kernel}"
            measured = f"median of {arguments.rounds}: {far:.2f} s, on this machine {near:.2f} s, {far - near:+.2f} s"
            rows.append((what, measured, f"at most {MORE_S} s more", far - near <= MORE_S))
        if "verbs" in arguments.parts:
            equal = compare(gpu)
            failures = [name for name, holds in equal.items() if not holds]
            measured = f"{len(equal) - len(failures)} of {len(equal)}" + (f"; not {failures}" if failures else "")
            rows.append((f"verbs on a Slurm node against this machine, {kernel}", measured, "all equal", not failures))
    finally:
        rlnb.simulator(gpu).close()
        cluster.down()
    for row in rows:
        print(row, flush=True)
        if arguments.record:
            from results import record

            record(*row)


if __name__ == "__main__":
    main()
