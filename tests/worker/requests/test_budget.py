"""Frames of cameras of real Isaac Lab, timed on a CPU."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

import rlnb

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
