"""A preview of three moments, three envs and two cameras, without a simulator."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rlnb.cameras.preview import Preview, read
from rlnb.protocol.requests import Clip, TaskFinding

TIMES, ENVS, HEIGHT, WIDTH = 3, (0, 2, 5), 24, 32


@pytest.fixture
def take(tmp_path: Path) -> Callable[..., Preview]:
    """Return a function that makes a preview. Arrays by ``<camera>/<data type>`` replace the default ones."""

    def preview(
        *, inspected: bool = True, noisy: tuple[str, ...] = (), findings: tuple[TaskFinding, ...] = (), **arrays: Any
    ) -> Preview:
        random = np.random.default_rng(0)
        shape = (TIMES, len(ENVS), HEIGHT, WIDTH)
        own = {
            "state": np.arange(TIMES * len(ENVS), dtype=np.float32).reshape(TIMES, len(ENVS), 1),
            "wrist/rgb": random.integers(0, 255, (*shape, 3), dtype=np.uint8),
            "wrist/depth": random.uniform(1.0, 4.0, (*shape, 1)).astype(np.float32),
            "front/semantic_segmentation": random.integers(0, 3, (*shape, 1), dtype=np.int32),
        }
        np.savez(tmp_path / "frames.npz", **{**own, **arrays})
        clip = Clip(
            file=str(tmp_path / "frames.npz"),
            times_s=(0.0, 0.1, 0.2),
            labels={"front/semantic_segmentation": {"0": "BACKGROUND", "1": "cube", "2": "<hand>"}},
            ranges_m={"wrist": (0.1, 10.0), "front": (0.1, 10.0)},
            noisy=noisy,
            added=False,
            findings=findings,
            seconds={"make": 0.1, "first": 0.2, "total": 0.3},
        )
        return read("T", 10, ENVS, clip, inspected=inspected)

    return preview
