"""The cameras of a training on a cluster, live in the notebook: real Isaac Lab on two nodes of a real Slurm."""

from __future__ import annotations

import importlib.util
import time
from pathlib import Path
from typing import Any

import pytest
from runs_on_nodes import processes, wait_until

import rlnb
from rlnb.worker.assets.packs import build

pytestmark = [
    pytest.mark.slow,
    pytest.mark.isaaclab,
    pytest.mark.timeout(900),
    pytest.mark.skipif(importlib.util.find_spec("isaaclab") is None, reason="isaaclab is not installed here"),
]


def test_the_cameras_of_a_cluster_training_are_shown_in_the_kernel(
    slurm: Any, clean: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ISAACSIM_ASSET_ROOT", str(build().folder))
    run = rlnb.train(
        "Isaac-Cartpole-Camera-Direct",
        num_envs=8,
        max_iterations=10_000,
        launcher=rlnb.slurm(nodes=2, walltime="00:20:00"),
    )
    wait_until(lambda: run.state not in ("queued", "starting") or len(run.metrics["reward"].values) > 0, 300)
    feed = run.camera_feed(num_envs=3, share=0.5)
    shown: list[Any] = []
    deadline = time.monotonic() + 120
    while len(shown) < 3 and run.state == "running" and time.monotonic() < deadline:
        feed.still_looking()
        found = feed.newest()
        shown += [found] if found else []
        time.sleep(0.1)
    assert len(shown) == 3, run.logs()
    first, last = (each.pictures[0] for each in (shown[0], shown[-1]))
    assert first.size == last.size
    assert max(high - low for low, high in first.getextrema()) > 50, "the picture is not uniform"
    assert first.tobytes() != last.tobytes(), "the robots move"
    run.cancel()
    wait_until(lambda: not processes(run), 30)
