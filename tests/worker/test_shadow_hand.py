"""The headline task on a CPU: the Shadow Hand, its cube and three camera streams, compared with reviewed pictures.

After an intended change to the pictures, write them again with RLNB_GOLDEN=write, review them and commit them.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import numpy as np
import pytest

import rlnb
from rlnb.results import Preview

pytestmark = [
    pytest.mark.isaaclab,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(importlib.util.find_spec("isaaclab") is None, reason="isaaclab is not installed here"),
]

TASK = "Isaac-Reorient-Cube-Shadow-Camera-Direct"
GOLDEN = Path(__file__).with_name("golden")
NEAR_M, FAR_M = 0.4, 1.2
"""Depths that are black and white in the golden picture. The hand is in between; depth that hit nothing is white."""
TOLERANCE = 0.02
"""Share of the pixels that may differ, since other maths libraries move edges."""
LEVELS = 8
"""Largest difference of two 8-bit values that count as equal."""


@pytest.fixture(scope="module")
def hands(folder: Path) -> Preview:
    """Two hands right after the reset."""
    return rlnb.preview(TASK, num_envs=2, steps=0, seed=7, device="cpu")


def as_pictures(hands: Preview) -> dict[str, np.ndarray]:
    """Return each stream of both envs, one above the other, as 8-bit values."""
    frames = hands.frames["tiled_camera"]
    depth = np.where(np.isfinite(frames["depth"]), frames["depth"], FAR_M)
    cube = next(number for number, label in labels(hands).items() if label == "cube")
    return {
        "rgb": np.concatenate(frames["rgb"]),
        "depth": np.concatenate(np.clip((depth[..., 0] - NEAR_M) / (FAR_M - NEAR_M) * 255, 0, 255).astype(np.uint8)),
        "segmentation": np.concatenate((frames["semantic_segmentation"][..., 0] == cube).astype(np.uint8) * 255),
    }


def labels(hands: Preview) -> dict[int, str]:
    return dict(hands.labels["tiled_camera/semantic_segmentation"])


@pytest.mark.parametrize("stream", ["rgb", "depth", "segmentation"])
def test_a_stream_matches_its_reviewed_picture(hands: Preview, stream: str) -> None:
    from PIL import Image

    shown, path = as_pictures(hands)[stream], GOLDEN / f"shadow_hand_{stream}.png"
    if os.environ.get("RLNB_GOLDEN") == "write":
        path.parent.mkdir(exist_ok=True)
        Image.fromarray(shown).save(path)
    golden = np.asarray(Image.open(path))
    assert shown.shape == golden.shape
    differs = np.abs(shown.astype(int) - golden.astype(int)) > LEVELS
    assert differs.mean() <= TOLERANCE
    assert len(np.unique(golden)) > 1, "a golden picture of one colour would prove nothing"


def test_the_streams_are_those_of_the_task_and_have_no_findings(hands: Preview) -> None:
    frames = hands.frames["tiled_camera"]
    assert {kind: image.shape for kind, image in frames.items()} == {
        "rgb": (2, 120, 120, 3),
        "depth": (2, 120, 120, 1),
        "semantic_segmentation": (2, 120, 120, 1),
    }
    assert not hands.findings
    assert not hands.added
    hit = frames["depth"][np.isfinite(frames["depth"])]
    assert NEAR_M < hit.min() < hit.max() < FAR_M, "the camera is a metre above the ground, the hand half a metre"


def test_the_former_name_is_understood(folder: Path) -> None:
    card = rlnb.task("Isaac-Repose-Cube-Shadow-Vision-Direct-v0").card()
    assert card.gym_id == TASK


@pytest.mark.parametrize("task", [TASK, "Isaac-Reorient-Cube-Shadow-Direct"])
def test_the_task_trains(folder: Path, task: str) -> None:
    run = rlnb.train(task, num_envs=4, max_iterations=1, device="cpu", agent={"num_steps_per_env": 4}).wait()
    assert run.state == "completed"
    assert np.isfinite(run.metrics["reward"].values or [0.0]).all()
    assert np.isfinite(run.metrics["value_loss"].values).all()
    assert any(name.endswith("right_hand.usda") for name in run.started.assets)
