"""PhysX outside of Isaac Sim, on a CPU: every call works with it, also beside Newton in one process."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import rlnb
from rlnb.launchers import LocalLauncher
from rlnb.metrics.events import EventReader

pytestmark = [
    pytest.mark.isaaclab,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(importlib.util.find_spec("ovphysx") is None, reason="ovphysx is not installed here"),
]

PHYSICS = "ovphysx"
TASK, CAMERA_TASK, TERMS_TASK = "Isaac-Cartpole-Direct", "Isaac-Cartpole-Camera-Direct", "Isaac-Cartpole"
NUM_ENVS, ITERATIONS = 16, 3
EPISODE_S = 1.0
"""Length of an episode, short enough for a film."""
LEVELS = 8
"""Largest difference of two 8-bit values that count as equal."""


def on(task: str, physics: str = PHYSICS) -> rlnb.Task:
    return rlnb.task(task, physics=physics, renderer="newton_renderer" if task == CAMERA_TASK else None)


def scalars(run: rlnb.Run) -> dict[str, list[float]]:
    reader = EventReader(run.path / "logs", without="system")
    reader.refresh()
    untimed = {tag: points for tag, points in reader.scalars.items() if "Perf/" not in tag and "/time" not in tag}
    return {tag: [value for _, _, value in points] for tag, points in untimed.items()}


@pytest.fixture(scope="module")
def runs(folder: Path) -> dict[str, rlnb.Run]:
    """A run of each library, each in a fresh process, two at a time. The warm simulator stays free for requests."""
    launcher = LocalLauncher(max_running=2)
    task = rlnb.task(TASK, physics=PHYSICS, overrides={"episode_length_s": EPISODE_S})
    return {
        library: rlnb.train(
            task,
            library=library,
            num_envs=NUM_ENVS,
            max_iterations=ITERATIONS,
            device="cpu",
            warm=False,
            launcher=launcher,
        )
        for library in ("rsl_rl", "rl_games", "skrl", "sb3")
    }


def test_pictures_show_the_same_state_with_both_engines_in_one_process(folder: Path) -> None:
    for task, camera in ((TASK, "preview"), (CAMERA_TASK, "tiled_camera")):
        views = [
            rlnb.preview(on(task, physics), num_envs=4, data_types=["rgb", "depth"], steps=2, device="cpu", seed=3)
            for physics in ("newton_mjwarp", PHYSICS, "newton_mjwarp", "physx")
        ]
        assert all(not view.findings for view in views)
        frames = [view.frames[camera] for view in views]
        assert frames[0]["rgb"].std() > 1
        np.testing.assert_array_equal(frames[2]["rgb"], frames[0]["rgb"], "Newton draws the same as before")
        np.testing.assert_array_equal(frames[3]["rgb"], frames[1]["rgb"], "physx stands for OvPhysX")
        far = np.abs(frames[1]["rgb"].astype(int) - frames[0]["rgb"]).max(axis=-1) > LEVELS
        assert far.mean() < 0.01, "after two steps, both engines have the same state"
        assert (frames[1]["depth"][0] != frames[1]["depth"][1]).any(), "each env has its own state"


def test_every_library_trains(runs: dict[str, rlnb.Run]) -> None:
    for library, run in runs.items():
        run.wait(timeout_s=300)
        assert run.progress == (ITERATIONS, ITERATIONS), library
        assert run.started is not None
        assert run.started.versions["ovphysx"].startswith("0.")
        assert np.isfinite([value for values in scalars(run).values() for value in values]).all(), library


def test_a_policy_is_evaluated_filmed_and_exported(runs: dict[str, rlnb.Run]) -> None:
    import av

    run = runs["rsl_rl"].wait(timeout_s=300)
    evaluation = run.evaluate(episodes=4, num_envs=4, video=True)
    assert evaluation.episodes == 4
    assert np.isfinite(evaluation.returns).all()
    assert evaluation.video is not None
    with av.open(str(evaluation.video.path)) as container:
        frames = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
    assert np.abs(frames[0].astype(int) - frames[-1]).max() > 50, "the poles moved"
    assert run.export()["onnx"].stat().st_size > 0


def test_a_reward_term_is_tuned_and_frames_are_measured(folder: Path) -> None:
    tuner = rlnb.tune(on(TERMS_TASK), num_envs=4)
    tuner.set("rewards.pole_pos.weight", -3.0)
    assert tuner.how == "rewards swapped"
    assert tuner.task.physics == PHYSICS
    budget = rlnb.camera_budget(on(CAMERA_TASK), sizes=[(32, 32)], envs=[1, 4])
    assert (budget.table()["ms"] > 0).all()


def test_a_warm_simulator_that_had_newton_gives_the_numbers_of_a_fresh_process(runs: dict[str, rlnb.Run]) -> None:
    for physics in ("newton_mjwarp", PHYSICS, "newton_mjwarp"):
        rlnb.preview(on(TASK, physics), num_envs=2, steps=2, device="cpu")
    fresh = runs["rsl_rl"].wait(timeout_s=300)
    warm = rlnb.train(fresh.manifest.task, num_envs=NUM_ENVS, max_iterations=ITERATIONS, device="cpu").wait(
        timeout_s=300
    )
    assert scalars(warm)
    assert scalars(warm) == scalars(fresh)
