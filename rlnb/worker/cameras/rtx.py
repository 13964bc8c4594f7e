"""Pictures of NVIDIA's RTX renderers: in Isaac Sim (``isaac_rtx``) and outside of it (``ovrtx``).

Isaac Sim renders all cameras together, and only once for each physics step and call of ``sim.render()``. A camera that
is moved after that keeps its picture. Both renderers build a picture up over several frames: the first one of a new
camera may be empty, and the first ones after a jump are noisy or still show what was there before.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rlnb.worker.isaac import release

RENDERER_TYPES = ("isaac_rtx", "ovrtx")
SETTLING_FRAMES = 8
"""Frames until a picture shows the current state alone. Isaac Lab's own tasks render 1 to 3 of them after a reset."""


def is_rtx(camera_cfg: Any) -> bool:
    """Return whether an RTX renderer takes the pictures of a camera with this config."""
    return release.required(camera_cfg.renderer_cfg, "renderer_type", "a camera") in RENDERER_TYPES


def render(env: Any, sensors: Iterable[Any], frames: int) -> None:
    """Render the current state with those cameras that have an RTX renderer. Others render when they are read.

    A camera with an ``update_period`` keeps its picture until the period is over, as in a training run.

    Args:
        env: The task's env.
        sensors: Isaac Lab's sensors, whose poses are set.
        frames: Number of frames to render. The last one is the picture.
    """
    cameras = [sensor for sensor in sensors if is_rtx(sensor.cfg)]
    for _ in range(frames if cameras else 0):
        env.sim.render()
        for camera in cameras:
            camera.update(0.0, force_recompute=True)


def unread(sensors: Iterable[Any]) -> list[Any]:
    """Return those cameras with an RTX renderer whose current picture is not part of the task's observations.

    Only these may be rendered again: observations may be views of a camera's data, which then change.
    """
    return [sensor for sensor in sensors if is_rtx(sensor.cfg) and _renders_when_read(sensor)]


def _renders_when_read(sensor: Any) -> bool:
    """Read a camera; return whether the read rendered a new picture."""
    import torch

    before = sensor.frame.torch.clone()
    _ = sensor.data
    return not torch.equal(before, sensor.frame.torch)
