"""A training on real Isaac Lab ends with the iteration that reaches its frames."""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path

import pytest

import rlnb

TASK, FRAMES = "Isaac-Cartpole-Direct", 2000


@pytest.mark.isaaclab
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(importlib.util.find_spec("isaaclab") is None, reason="isaaclab is not installed here")
@pytest.mark.parametrize(
    ("library", "ranks"), [("rsl_rl", 2), ("sb3", 1), ("skrl", 1), ("rl_games", 1), ("skrl_sac", 1)]
)
def test_the_frames_of_every_library_are_counted(folder: Path, library: str, ranks: int) -> None:
    run = rlnb.train(TASK, library=library, num_envs=16, nproc_per_node=ranks, max_frames=FRAMES, device="cpu")
    started = run.wait(timeout_s=500.0, check=True).started
    assert started is not None
    frames = started.horizon * started.num_envs
    assert started.max_iterations == math.ceil(FRAMES / frames)
    done = run.metrics["fps"].frames[-1]
    assert FRAMES <= done < FRAMES + frames
    assert run.manifest.max_frames == FRAMES
    with pytest.raises(rlnb.RunError, match="nothing is left to do"):
        run.resume()
