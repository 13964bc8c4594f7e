"""Fixtures of the tests on real Isaac Lab, and a stand-in for the RTX renderer of Isaac Sim."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import rlnb


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One root and one warm simulator for the module: starting a simulator is the slow part."""
    from rlnb.simulation.pool import pool
    from rlnb.worker.assets.packs import build

    root = tmp_path_factory.mktemp("isaaclab")
    patch = pytest.MonkeyPatch()
    patch.setenv("RLNB_QUEUE", str(root / "queue"))
    patch.setenv("ISAACSIM_ASSET_ROOT", str(build().folder))
    patch.setattr(rlnb.options, "root", root / "rlnb-runs")
    patch.setattr(rlnb.options, "warm", True)
    yield root / "rlnb-runs"
    pool.shut_down()
    patch.undo()


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return a function that makes Isaac Lab appear in a version, by the metadata of a package."""

    def version(number: str) -> None:
        info = tmp_path / f"isaaclab-{number}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Name: isaaclab\nVersion: {number}\n")
        monkeypatch.syspath_prepend(str(tmp_path))

    return version


WARM_UP = 3
"""Frames that the stand-in's pictures need after a change until they show it without noise."""


class Simulation:
    """Isaac Sim as ``isaaclab_physx/renderers/isaac_rtx_renderer_utils.py`` of Isaac Lab 3.0.0 drives it.

    An update renders all cameras. There is at most one for each physics step and each call of ``render``.
    """

    def __init__(self) -> None:
        self.steps = self.generation = self.updates = 0
        self.cameras: list[RtxCamera] = []
        self.draw: Callable[[RtxCamera], None] = lambda camera: None
        """Called for each camera and frame."""
        self._key = (-1, -1)

    def render(self) -> None:
        self.generation += 1

    def ensure_update(self) -> None:
        key = (self.steps, self.generation)
        if key != self._key:
            self._key = key
            self.updates += 1
            for camera in self.cameras:
                camera.rendered()


class RtxCamera:
    """A camera sensor of Isaac Lab. Its pixels hold the step, its pose, and its frames since the last change."""

    def __init__(self, env: Any, cfg: Any) -> None:
        import torch

        self.cfg, self.frame = cfg, SimpleNamespace(torch=torch.zeros(env.num_envs, dtype=torch.long))
        self._sim, self._is_rtx = env.sim, cfg.renderer_cfg.renderer_type == "isaac_rtx"
        self._outdated, self._scene, self._history = True, (-1, -1), -1
        self.pose = 0
        image = torch.zeros((env.num_envs, 2, 2, 3), dtype=torch.uint8)
        pose = torch.zeros((env.num_envs, 4))
        self._data = SimpleNamespace(
            output={kind: SimpleNamespace(torch=image) for kind in cfg.data_types},
            info=None,
            pos_w=SimpleNamespace(torch=pose[:, :3]),
            quat_w_ros=SimpleNamespace(torch=pose),
            intrinsic_matrices=SimpleNamespace(torch=torch.eye(3).expand(env.num_envs, 3, 3)),
            image_shape=(2, 2),
        )
        env.sim.cameras.append(self)

    def rendered(self) -> None:
        self._sim.draw(self)
        scene = (self._sim.steps, self.pose)
        self._history = self._history + 1 if scene == self._scene else 0
        self._scene = scene

    @property
    def data(self) -> Any:
        import torch

        if self._outdated:
            if self._is_rtx:
                self._sim.ensure_update()
            else:
                self.rendered()
                self._history = WARM_UP
            self._outdated = False
            self.frame.torch += 1
            pixel = torch.tensor([*self._scene, min(self._history, WARM_UP)], dtype=torch.uint8)
            for image in self._data.output.values():
                image.torch[:] = pixel
        return self._data

    def update(self, dt: float, force_recompute: bool = False) -> None:
        self._outdated = True
        if force_recompute:
            _ = self.data

    def set_world_poses_from_view(self, eyes: Any, targets: Any) -> None:
        self.pose += 1

    def set_world_poses(self, positions: Any, orientations: Any, convention: str) -> None:
        self.pose += 1
        self._data.pos_w.torch[:], self._data.quat_w_ros.torch[:] = positions, orientations


@pytest.fixture
def rtx_env() -> Callable[..., Any]:
    """Return a function that makes an env with a camera for each keyword, which is its data types or its config."""

    def make(renderer_type: str = "isaac_rtx", observed: tuple[str, ...] = (), **cameras: Any) -> Any:
        import torch

        none = torch.zeros(2, dtype=torch.bool)

        def observe() -> str:
            for sensor in env.scene.sensors.values():
                sensor.update(0.1)
            for name in observed:
                _ = env.scene.sensors[name].data
            return "obs"

        def step(action: Any) -> tuple[Any, ...]:
            env.sim.steps += 1
            return observe(), torch.zeros(2), none, none, {}

        still = torch.tensor([0.0, 0.0, 0.0, 1.0]).expand(2, 1, 4)
        robot = SimpleNamespace(
            data=SimpleNamespace(
                body_pos_w=SimpleNamespace(torch=torch.zeros(2, 1, 3)), body_quat_w=SimpleNamespace(torch=still)
            ),
            cfg=SimpleNamespace(prim_path="/World/envs/env_.*/robot"),
            body_names=["robot"],
        )
        scene = SimpleNamespace(
            sensors={},
            env_regex_ns="/World/envs/env_.*",
            env_ns="/World/envs",
            stage=SimpleNamespace(GetPrimAtPath=lambda path: None),
            env_origins=torch.zeros(2, 3),
            articulations={"robot": robot},
            rigid_objects={},
            get_state=lambda *, is_relative: {},
        )
        env = SimpleNamespace(num_envs=2, device="cpu", step_dt=0.1, sim=Simulation(), scene=scene, step=step)
        env.reset = lambda *, seed=None: (observe(), {})
        env.unwrapped = env
        for name, camera in cameras.items():
            cfg = SimpleNamespace(
                prim_path=f"/World/envs/env_.*/{name}",
                data_types=camera,
                spawn=None,
                renderer_cfg=SimpleNamespace(renderer_type=renderer_type),
            )
            scene.sensors[name] = RtxCamera(env, cfg if isinstance(camera, list) else camera)
        return env

    return make
