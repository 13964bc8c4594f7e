"""The price of films during a training: the share of the time that a film every 50 iterations takes.

    python benchmarks/film.py [--runs 5] [--iterations 160] [--num-envs 512]

The env is stepped as a training does, but nothing is learned, so the share of a training's time is smaller. It has the
first film's preparation in it.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import tempfile
import time
from pathlib import Path

from against_isaaclab import asset_root
from results import record

import rlnb
from rlnb.tasks import source

STOCK, OWN_CAMERA = "Isaac-Cartpole-Direct", "the quickstart's task, whose camera the policy does not read"
EVERY, HORIZON = 50, 16
NOTEBOOK = Path(__file__).parents[1] / "notebooks" / "01_quickstart.ipynb"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--iterations", type=int, default=160)
    parser.add_argument("--num-envs", type=int, default=512)
    arguments = parser.parse_args()
    from rlnb.worker.isaac import isaaclab

    isaaclab.start(asset_root())
    folder = Path(tempfile.mkdtemp(prefix="rlnb-bench-"))
    rlnb.options.root = folder
    for name, task in ((STOCK, rlnb.Task(id=STOCK)), (OWN_CAMERA, quickstart_task())):
        measure(name, task, folder / task.id, arguments)


def quickstart_task() -> rlnb.Task:
    """Return the task of the quickstart notebook."""
    cells = ["".join(of["source"]) for of in json.loads(NOTEBOOK.read_text())["cells"]]
    head, _, module = next(source for source in cells if source.startswith("%%task ")).partition("\n")
    name = head.removeprefix("%%task ").split()[0]
    source.write_module(rlnb.options.folders, name, module, str(NOTEBOOK))
    return rlnb.task(name)


def measure(name: str, task: rlnb.Task, folder: Path, arguments: argparse.Namespace) -> None:
    """Record the share of the time that the films of a task take."""
    task = dataclasses.replace(task, num_envs=arguments.num_envs)
    shares = [share(folder / str(number), task, arguments.iterations) for number in range(arguments.runs)]
    films = [path for path in folder.rglob("*.mp4")]
    size_kib = max((path.stat().st_size for path in films), default=0) / 1024
    record(
        f"a film every {EVERY} of {arguments.iterations} iterations without learning, {arguments.num_envs} envs of "
        f"{name}: share of the time, with the preparation",
        f"median {statistics.median(shares):.1%}, at most {max(shares):.1%}, {len(shares)} runs; {len(films)} films, "
        f"{size_kib:.0f} KiB at most",
        "<= 3 %",
        max(shares) <= 0.03,
    )


def share(folder: Path, task: rlnb.Task, iterations: int) -> float:
    """Step an env that is filmed; return the share of the time that the films took."""
    import torch

    from rlnb.worker.actions import actions
    from rlnb.worker.cameras.films import Films
    from rlnb.worker.isaac import isaaclab
    from rlnb.worker.isaac.env import environment

    with environment(task, None, device="cpu") as (env, _):
        raw = isaaclab.task_env(env)
        env.reset(seed=0)
        acts = actions(raw, "random")
        begin_s = time.monotonic()
        films = Films(raw, lambda iteration: folder / f"{iteration}.mp4", EVERY, lambda step: step // HORIZON)
        films.attach()
        with torch.inference_mode():
            for _ in range(iterations * HORIZON):
                raw.step(acts)
        films.close()
        spent_s, whole_s = films.took_s, time.monotonic() - begin_s
    print(f"  {spent_s:.2f} s of {whole_s:.1f} s, {len([*folder.glob('*.mp4')])} films", flush=True)
    return spent_s / whole_s


if __name__ == "__main__":
    main()
