"""Frames of cameras of real Isaac Lab, timed on a CPU; and frames of a stand-in for the RTX renderer."""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import rlnb
from rlnb.protocol.requests import Budget, Costs
from rlnb.spec import Task
from rlnb.worker.requests import budget as worker_budget

pytestmark = [
    pytest.mark.isaaclab,
    pytest.mark.timeout(600),
    pytest.mark.skipif(importlib.util.find_spec("isaaclab") is None, reason="isaaclab is not installed here"),
]

STATE_TASK = "Isaac-Cartpole-Direct"
CAMERA_TASK = "Isaac-Cartpole-Camera-Direct"


@pytest.mark.slow
@pytest.mark.parametrize(("task", "data_types"), [(CAMERA_TASK, None), (STATE_TASK, ["rgb", "depth"])])
def test_camera_frames_are_measured_by_size_and_number_of_envs(
    folder: Path, task: str, data_types: list[str] | None
) -> None:
    sizes = [(48, 32), (192, 128)]
    budget = rlnb.camera_budget(task, sizes=sizes, envs=[4, 1], data_types=data_types, frames=3, device="cpu")
    assert [(cost.size, cost.num_envs) for cost in budget.costs] == [(size, n) for size in sizes for n in (1, 4)]
    small, large = budget.of(sizes[0])[1], budget.of(sizes[1])[1]
    assert all(len(cost.times_ms) == 3 for cost in budget.costs)
    assert large.ms > 2 * small.ms > 0, "sixteen times the pixels"
    channels = 4 + (4 if data_types else 0)  # rgba, and depth as float32
    assert large.mib == pytest.approx(4 * 192 * 128 * channels / 2**20, rel=1e-3)
    with pytest.raises(rlnb.RlnbError, match="cannot give 'smell'"):
        rlnb.camera_budget(task, envs=[1], data_types=["smell"], device="cpu")


STEP_S, PIXEL_S = 0.5, 1e-3
"""Time of a step without its observations, and of a pixel."""
SIZES = ((20, 10), (40, 10))


@pytest.fixture
def envs(rtx_env: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], list[list[str]]]:
    """Return a function that sets the renderer of a task with a camera, and returns the cameras of each env made.

    The env and the renderer are stand-ins. A clock moves on with the steps, and with the pixels of all frames.
    """
    from isaaclab.sensors import CameraCfg
    from isaaclab_newton.physics import NewtonCfg

    clock = SimpleNamespace(now_s=0.0)
    cameras: list[list[str]] = []

    def draw(camera: Any) -> None:
        clock.now_s += PIXEL_S * camera.cfg.width * camera.cfg.height

    def configure(renderer_cfg: Any) -> list[list[str]]:
        def config() -> Any:
            own = CameraCfg(prim_path="{ENV_REGEX_NS}/own", width=10, height=10, renderer_cfg=renderer_cfg)
            return SimpleNamespace(
                sim=SimpleNamespace(physics=NewtonCfg(), device="cpu"), scene=SimpleNamespace(own=own)
            )

        @contextlib.contextmanager
        def environment(task: Task, library: None, *, configure: Any, **_: Any) -> Iterator[Any]:
            env_cfg = config()
            configure(env_cfg)
            cameras.append([*vars(env_cfg.scene)])
            env = rtx_env(observed=("own",), **vars(env_cfg.scene))
            env.sim.draw, step = draw, env.step

            def timed_step(action: str) -> Any:
                clock.now_s += STEP_S
                return step(action)

            env.step = timed_step
            yield env, None

        monkeypatch.setattr(worker_budget, "configured", lambda *_, **__: (None, config(), None))
        monkeypatch.setattr(worker_budget, "environment", environment)
        return cameras

    monkeypatch.setattr(worker_budget, "time", SimpleNamespace(perf_counter=lambda: clock.now_s))
    monkeypatch.setattr(worker_budget, "actions", lambda env, kind: kind)
    monkeypatch.setattr(worker_budget.isaaclab, "task_env", lambda env: env)
    return configure


def measured() -> Costs:
    request = Budget(task=Task(id="Demo"), sizes=SIZES, envs=(2,), frames=3)
    return worker_budget.budget(request, lambda costs: None)


def test_newton_renders_each_size_alone_so_one_env_has_all(envs: Callable[[Any], list[list[str]]]) -> None:
    from isaaclab_newton.renderers import NewtonWarpRendererCfg

    cameras = envs(NewtonWarpRendererCfg())
    small, large = measured().rows
    assert cameras == [["own", "rlnb_20x10_", "rlnb_40x10_"]]
    assert small.times_ms == pytest.approx([200.0] * 3)
    assert large.times_ms == pytest.approx([400.0] * 3)


def test_rtx_renders_all_cameras_so_each_size_has_an_env_and_costs_the_longer_steps(
    envs: Callable[[Any], list[list[str]]],
) -> None:
    """The task reads a camera of its own in each step, so that the picture of the copy is there before it is read."""
    from isaaclab_physx.renderers import IsaacRtxRendererCfg

    cameras = envs(IsaacRtxRendererCfg())
    small, large = measured().rows
    assert cameras == [["own", "rlnb_20x10_"], ["own", "rlnb_40x10_"], ["own"]], "Isaac Sim starts with a renderer"
    assert small.times_ms == pytest.approx([200.0] * 3)
    assert large.times_ms == pytest.approx([400.0] * 3)
