"""The time from an edit of a task's cell to its first image, in the warm simulator and in a fresh Isaac Lab process.

    python benchmarks/edit_loop.py

For rlnb, the time covers everything that a user waits for after running the cell: saving it, the task card, the env,
the first frame, and the PNG. For stock, it is the time that a script with the same env and camera takes from the start
of its process to the first frame as an array.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from against_isaaclab import asset_root
from results import record

import rlnb
from rlnb.cameras.preview import read
from rlnb.protocol import requests
from rlnb.simulation.pool import pool
from rlnb.tasks import source

NUM_ENVS, SIZE = 16, (160, 120)
STATE = """
from isaaclab.utils import configclass
from isaaclab_tasks.core.cartpole.cartpole_direct_env import CartpoleEnv
from isaaclab_tasks.core.cartpole.cartpole_direct_env_cfg import CartpoleEnvCfg

@configclass
class EditedCfg(CartpoleEnvCfg):
    episode_length_s = {number}.0

class EditedEnv(CartpoleEnv):
    pass
"""
CAMERA = """
from isaaclab.utils import configclass
from isaaclab_tasks.core.cartpole.cartpole_direct_camera_env import CartpoleCameraEnv
from isaaclab_tasks.core.cartpole.cartpole_direct_camera_env_cfg import CartpoleCameraEnvCfg

@configclass
class EditedCfg(CartpoleCameraEnvCfg.BaseCartpoleCameraEnvCfg):
    episode_length_s = {number}.0

class EditedEnv(CartpoleCameraEnv):
    pass
"""
STOCK = """
import importlib, sys
import isaaclab_tasks
import gymnasium
import isaaclab.sim as sim_utils
from isaaclab.app import launch_simulation
from isaaclab.sensors import CameraCfg
from isaaclab_newton.renderers import NewtonWarpRendererCfg
from isaaclab_tasks.utils import resolve_task_config

sys.path.insert(0, {folder!r})
module = importlib.import_module({module!r})
gymnasium.register("Edited", entry_point=module.EditedEnv, disable_env_checker=True,
                   kwargs={{"env_cfg_entry_point": module.EditedCfg}})
cfg, _ = resolve_task_config("Edited", None, overrides=[])
cfg.scene.num_envs, cfg.sim.device, cfg.seed = {num_envs}, {device!r}, 42
if not {camera!r}:
    cfg.scene.preview = CameraCfg(
        prim_path="{{ENV_REGEX_NS}}/preview", data_types=["rgb"], width={width}, height={height},
        renderer_cfg=NewtonWarpRendererCfg(),
        spawn=sim_utils.PinholeCameraCfg(focal_length=24.0, horizontal_aperture=20.955, clipping_range=(0.05, 50.0)),
    )
with launch_simulation(cfg, {{"device": {device!r}}}):
    env = gymnasium.make("Edited", cfg=cfg)
    env.reset()
    image = env.unwrapped.scene.sensors[{camera!r} or "preview"].data.output["rgb"].torch.cpu().numpy()
    assert image.std() > 0
    print("FIRST", flush=True)
    import os; os._exit(0)
"""


def edited(name: str, body: str, number: int, device: str = "cpu") -> tuple[float, float]:
    """Edit the cell and preview it; return the seconds to the first image and to the last."""
    begun = time.perf_counter()
    first: list[float] = []
    source.write_module(rlnb.options.folders, name, body.format(number=number), "benchmark")
    show = read

    def meanwhile(clip: requests.Clip) -> None:
        show(name, 30, tuple(range(NUM_ENVS)), clip, inspected=False)._repr_png_()
        first.append(time.perf_counter() - begun)

    _listen(meanwhile)
    rlnb.preview(name, num_envs=NUM_ENVS, size=SIZE, device=device)._repr_png_()
    return first[0], time.perf_counter() - begun


def _listen(meanwhile: object) -> None:
    """Pass a preview's first image, which a notebook shows while the others are rendered, to this function."""
    request = _REQUEST

    def listening(question: requests.Request[object], *args: object, **options: object) -> object:
        if isinstance(question, requests.Preview):
            options["meanwhile"] = meanwhile
        return request(question, *args, **options)  # type: ignore[arg-type]

    pool.request = listening  # type: ignore[assignment]


_REQUEST = pool.request


def stock(folder: Path, body: str, camera: str | None, device: str = "cpu") -> float:
    """Return the seconds from the start of a process to the first frame."""
    module = f"edited_{time.time_ns()}"
    (folder / f"{module}.py").write_text(body.format(number=3))
    code = STOCK.format(
        folder=str(folder),
        module=module,
        num_envs=NUM_ENVS,
        camera=camera,
        width=SIZE[0],
        height=SIZE[1],
        device=device,
    )
    begun = time.perf_counter()
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        assert any(b"FIRST" in line for line in process.stdout), "stock rendered no image"
        return time.perf_counter() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    arguments = parser.parse_args()
    os.environ.setdefault("ISAACSIM_ASSET_ROOT", asset_root())
    base = Path(tempfile.mkdtemp(prefix="rlnb-bench-"))
    rlnb.options.root = base / "rlnb"
    for kind, body, camera in (("state", STATE, None), ("camera", CAMERA, "tiled_camera")):
        edited(kind, body, 1)  # starts the warm simulator and creates the task for the first time
        time.sleep(30)  # lets the simulator finish its background work
        pairs = []
        for index in range(arguments.rounds):
            first, whole = edited(kind, body, index + 2)
            time.sleep(1)
            pairs.append((first, whole, stock(base, body, camera)))
            print(kind, *(f"{value:.2f}" for value in pairs[-1]), flush=True)
        first, whole, cold = (statistics.median(values) for values in zip(*pairs, strict=True))
        record(
            f"from an edit of the cell to the first image, {kind} task, {NUM_ENVS} envs",
            f"median of {arguments.rounds}: {first:.2f} s, worst {max(p[0] for p in pairs):.2f} s; whole preview "
            f"(30 steps, a second image) {whole:.2f} s; fresh Isaac Lab process {cold:.1f} s: {first / cold:.3f}",
            "<= 1 s, <= 1/15 of cold",
            first <= 1.0 and first / cold <= 1 / 15,
        )


if __name__ == "__main__":
    main()
