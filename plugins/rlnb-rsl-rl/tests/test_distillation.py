"""Distillation with real Isaac Lab: a student learns from another run and acts with its learned weights."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rlnb
from rlnb.simulation.pool import pool
from rlnb.tasks import source
from rlnb.testing import run_export

pytestmark = [
    pytest.mark.isaaclab,
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(importlib.util.find_spec("isaaclab") is None, reason="isaaclab is not installed here"),
]

TEACHER, STUDENT = "Isaac-Cartpole-Direct", "Student"
NUM_ENVS = 8
WAIT_S = 300.0
TOLERANCE = 1e-6

# The teacher's network is that of the stock agent config, [32, 32]. The agent config of the student has another one.
MODULE = """
from isaaclab_rl.rsl_rl import RslRlDistillationAlgorithmCfg, RslRlDistillationRunnerCfg, RslRlMLPModelCfg
from isaaclab_tasks.core.cartpole.cartpole_direct_env import CartpoleEnv as ENV
from isaaclab_tasks.core.cartpole.cartpole_direct_env_cfg import CartpoleEnvCfg as TASK


def network(hidden_dims, init_std, obs_normalization):
    return RslRlMLPModelCfg(
        hidden_dims=hidden_dims,
        activation="elu",
        obs_normalization=obs_normalization,
        distribution_cfg=RslRlMLPModelCfg.GaussianDistributionCfg(init_std=init_std),
    )


AGENTS = {
    "rsl_rl": RslRlDistillationRunnerCfg(
        num_steps_per_env=16,
        max_iterations=20,
        save_interval=1,
        experiment_name="student",
        obs_groups={"student": ["policy"], "teacher": ["policy"]},
        student=network([16], 0.1, obs_normalization=True),
        teacher=network([8], 1.0, obs_normalization=True),
        algorithm=RslRlDistillationAlgorithmCfg(num_learning_epochs=2, learning_rate=1e-2, gradient_length=16),
    )
}
"""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A root folder with the student's task, and a warm simulator for this module."""
    folder = tmp_path_factory.mktemp("distillation")
    patch = pytest.MonkeyPatch()
    patch.setenv("RLNB_QUEUE", str(folder / "queue"))
    patch.setattr(rlnb.options, "root", folder / "rlnb-runs")
    patch.setattr(rlnb.options, "warm", True)
    source.write_module(rlnb.options.folders, STUDENT, MODULE, "test.ipynb")
    yield folder / "rlnb-runs"
    pool.shut_down()
    patch.undo()


@pytest.fixture(scope="module")
def teacher(root: Path) -> rlnb.Run:
    return rlnb.train(TEACHER, num_envs=NUM_ENVS, max_iterations=2, device="cpu").wait(WAIT_S)


@pytest.fixture(scope="module")
def student(teacher: rlnb.Run) -> rlnb.Run:
    return rlnb.train(STUDENT, num_envs=NUM_ENVS, device="cpu", inputs={"teacher": teacher}).wait(WAIT_S)


def test_the_record_of_a_student_has_its_teacher_and_a_checkpoint_only_the_student(
    teacher: rlnb.Run, student: rlnb.Run
) -> None:
    assert student.manifest.inputs == {"teacher": f"{teacher.id}/logs/{teacher.checkpoints[-1].name}"}
    assert student.manifest.parent is None
    learned = _load(student.checkpoints[-1])
    assert "student_state_dict" in learned
    assert "teacher_state_dict" not in learned


def test_a_student_learns_the_actions_of_its_teacher(teacher: rlnb.Run, student: rlnb.Run) -> None:
    """The teacher's network is that of its own agent config, and not the one of the student's."""
    rollout = teacher.evaluate(episodes=NUM_ENVS, num_envs=NUM_ENVS, record=100).rollout
    assert rollout is not None
    recorded = np.load(rollout)
    observations, actions = recorded["obs.policy"], recorded["actions"]
    first, last = (_load(path)["student_state_dict"] for path in (student.checkpoints[0], student.checkpoints[-1]))
    before, after = (abs(_actions(state, observations) - actions).mean() for state in (first, last))
    assert after < before / 2


def test_a_student_acts_and_is_exported_with_its_own_weights(student: rlnb.Run) -> None:
    first, last = (_load(path) for path in (student.checkpoints[0], student.checkpoints[-1]))
    evaluation = student.evaluate(episodes=NUM_ENVS, num_envs=NUM_ENVS, record=100)
    assert evaluation.episodes == NUM_ENVS
    assert evaluation.rollout is not None
    rollout = np.load(evaluation.rollout)
    observations, actions = rollout["obs.policy"], rollout["actions"]
    expected = _actions(last["student_state_dict"], observations)
    np.testing.assert_allclose(actions, expected, atol=TOLERANCE)
    assert abs(expected - _actions(first["student_state_dict"], observations)).max() > 1e-2, "it has learned"
    exports = student.export()
    assert set(exports) == {"torchscript", "onnx"}
    for name, path in exports.items():
        np.testing.assert_allclose(run_export(name, path, observations), expected, atol=TOLERANCE, err_msg=name)


def test_a_resumed_distillation_restores_the_student_and_has_the_same_teacher(student: rlnb.Run) -> None:
    iterations = student.progress[1]
    student.resume(max_iterations=iterations + 1).wait(WAIT_S)
    started = student.started
    assert started is not None
    assert started.first_iteration == iterations
    assert {"student_state_dict", "optimizer_state_dict"} <= set(started.restored)
    assert {report.split(":")[0] for report in started.restored.values()} == {"restored"}, started.restored


def test_a_distillation_without_a_teacher_is_refused_with_a_fix(teacher: rlnb.Run) -> None:
    (problem,) = rlnb.check(STUDENT, num_envs=NUM_ENVS, device="cpu")
    assert problem.what == "rsl_rl needs the input 'teacher', which is a policy."
    assert problem.fix == "Use inputs={'teacher': run}."
    (problem,) = rlnb.check(STUDENT, num_envs=NUM_ENVS, device="cpu", init_from=teacher)
    assert problem.fix == f"Use inputs={{'teacher': {teacher.id!r}}} in place of init_from."


def test_ppo_takes_no_teacher(teacher: rlnb.Run) -> None:
    (problem,) = rlnb.check(TEACHER, num_envs=NUM_ENVS, device="cpu", inputs={"teacher": teacher})
    assert "only with the agent config values class_name='DistillationRunner'" in problem.what


def test_a_teacher_with_other_actions_is_refused(root: Path) -> None:
    other = rlnb.train("Isaac-Ant-Direct", num_envs=NUM_ENVS, max_iterations=1, device="cpu").wait(WAIT_S)
    (problem,) = rlnb.check(STUDENT, num_envs=NUM_ENVS, device="cpu", inputs={"teacher": other})
    assert problem.what == f"The input 'teacher', {other.id}, has 8 actions, but Student has 1."


def _load(checkpoint: Path) -> dict[str, Any]:
    import torch

    state: dict[str, Any] = torch.load(checkpoint, weights_only=True)
    return state


def _actions(state: dict[str, Any], observations: np.ndarray) -> np.ndarray:
    """Compute the mean actions, shape (n, action_dim), from a student's weights, without RSL-RL."""
    import torch

    mean, std = state["obs_normalizer._mean"], state["obs_normalizer._std"]
    latent = (torch.from_numpy(observations) - mean) / (std + 1e-2)
    hidden = torch.nn.functional.elu(latent @ state["mlp.0.weight"].T + state["mlp.0.bias"])
    actions: np.ndarray = (hidden @ state["mlp.2.weight"].T + state["mlp.2.bias"]).numpy()
    return actions
