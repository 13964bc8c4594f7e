"""Every RL library on a GPU: training, resuming, evaluation, exports, and checkpoints between GPU and CPU."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pytest

import rlnb
from rlnb.spec import Json
from rlnb.studies import verify_determinism
from rlnb.tasks import source
from rlnb.testing.exports import run_export

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]

TASK = "Isaac-Cartpole-Direct"
ITERATIONS = 3
Measured = Callable[[str, str, str, bool], None]
START_S = 300.0
"""Seconds that a training may take if its simulator has to compile kernels."""
TOLERANCE = 1e-2
"""Allowed difference of actions between the GPU and an export on the CPU. The GPU multiplies matrices in TF32."""
CENTRAL = """
from isaaclab.utils import configclass
from isaaclab_tasks.core.cartpole.cartpole_direct_env import CartpoleEnv
from isaaclab_tasks.core.cartpole.cartpole_direct_env_cfg import CartpoleEnvCfg


@configclass
class CentralCfg(CartpoleEnvCfg):
    state_space = 4


class CentralEnv(CartpoleEnv):
    def _get_observations(self):
        observations = super()._get_observations()
        return {**observations, "critic": observations["policy"]}
"""
"""A cell with a task whose env gives observations for a central value function."""
CENTRAL_VALUE: Mapping[str, Json] = {
    "minibatch_size": 512,
    "mini_epochs": 2,
    "learning_rate": 1e-4,
    "clip_value": True,
    "normalize_input": True,
    "network": {
        "name": "actor_critic",
        "central_value": True,
        "mlp": {
            "units": [32, 32],
            "activation": "elu",
            "d2rl": False,
            "initializer": {"name": "default"},
            "regularizer": {"name": "None"},
        },
    },
}


class Case(NamedTuple):
    """A training to test."""

    part: int
    library: str
    agent: Mapping[str, Json] = {}
    task: str = TASK


CASES = {
    "rsl_rl": Case(1, "rsl_rl"),
    "skrl": Case(3, "skrl"),
    "skrl_jax": Case(3, "skrl_jax"),
    "sb3": Case(3, "sb3"),
    "rl_games": Case(4, "rl_games", {"+params.config.torch_compile": False}),
    "rl_games, compiled": Case(4, "rl_games", {"+params.config.torch_compile": True}),
    "rl_games, central value": Case(
        4,
        "rl_games",
        {
            "+params.config.torch_compile": False,
            "+params.config.central_value_config": CENTRAL_VALUE,
            "+params.env.obs_groups": {"obs": ["policy"], "states": ["critic"]},
        },
        "Central-Cartpole",
    ),
}
JAX = """
import sys, torch, jax
torch.zeros(1, device=sys.argv[1])
print(jax.devices()[0].platform)
"""


def train(case: str, device: str, iterations: int = ITERATIONS, **arguments: Any) -> rlnb.Run:
    """Train and wait; skip the test if the library is not installed."""
    _, library, agent, task = CASES[case]
    if lacking := rlnb.task(task).card().agents[library].missing:
        pytest.skip(f"{library} needs {', '.join(lacking)}")
    run = rlnb.train(
        task, library=library, num_envs=64, max_iterations=iterations, agent=agent, device=device, **arguments
    )
    return run.wait(timeout_s=START_S)


@pytest.fixture(scope="module")
def runs(folder: object) -> dict[tuple[str, str], rlnb.Run]:
    """Provide the trainings of this module by case and device, so that each is made once."""
    source.write_module(rlnb.options.folders, "Central-Cartpole", CENTRAL, "test.ipynb")
    return {}


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.part(case.part)) for name, case in CASES.items()])
def run(request: pytest.FixtureRequest, runs: dict[tuple[str, str], rlnb.Run], device: str) -> rlnb.Run:
    """Provide a training of a library on the device."""
    key = request.param, device
    if key not in runs:
        runs[key] = train(*key)
    return runs[key]


@pytest.fixture
def case(run: rlnb.Run, request: pytest.FixtureRequest) -> str:
    """Return the name of the run's case."""
    return str(request.node.callspec.params["run"])


def test_a_training_is_resumed_with_its_whole_state(run: rlnb.Run, device: str) -> None:
    run.resume(max_iterations=run.progress[0] + 1).wait(timeout_s=START_S)
    started = run.started
    assert started is not None
    assert started.first_iteration == ITERATIONS
    assert all(name.startswith(device) for name in started.devices), started.devices
    assert {report.split(":")[0] for report in started.restored.values()} == {"restored"}, started.restored


def test_its_exports_act_on_a_cpu_as_the_policy_on_the_device(run: rlnb.Run, case: str, measured: Measured) -> None:
    evaluation = run.evaluate(episodes=8, num_envs=8, record=100)
    assert evaluation.rollout is not None
    rollout = np.load(evaluation.rollout)
    worst = {}
    for name, path in run.export().items():
        actions = run_export(name, path, rollout["obs.policy"][:100])
        worst[name] = float(np.abs(actions - rollout["actions"][:100]).max())
    assert worst
    text = ", ".join(f"{name} {difference:.1e}" for name, difference in worst.items())
    measured(f"{case}: actions of an export on the CPU", text, f"<= {TOLERANCE:g}", max(worst.values()) <= TOLERANCE)


def test_checkpoints_move_between_the_device_and_the_cpu(
    run: rlnb.Run, case: str, runs: dict[tuple[str, str], rlnb.Run], device: str
) -> None:
    """A checkpoint of the device is evaluated on the CPU. The CPU's is resumed on the device, and trained on there."""
    on_cpu = train(case, "cpu", seed=7)
    assert on_cpu.evaluate(episodes=4, num_envs=4, checkpoint=run.checkpoints[-1]).episodes == 4
    run.resume(checkpoint=on_cpu.checkpoints[-1], max_iterations=run.progress[0] + 1).wait(timeout_s=START_S)
    started = run.started
    assert started is not None
    # The random numbers of a GPU are not in the checkpoint of a CPU.
    others = [report for part, report in started.restored.items() if "random_state" not in f"{part} {report}"]
    assert {report.split(":")[0] for report in others} == {"restored"}, started.restored
    after = train(case, device, 1, init_from=on_cpu)
    assert after.manifest.parent == on_cpu.id
    assert after.checkpoints


@pytest.mark.part(3)
def test_jax_uses_the_device_beside_torch(device: str) -> None:
    pytest.importorskip("jax")
    done = subprocess.run([sys.executable, "-c", JAX, device], capture_output=True, text=True, check=True)
    assert done.stdout.split()[-1] == ("cpu" if device == "cpu" else "gpu")


@pytest.mark.part(1)
def test_the_same_seed_gives_the_same_training(folder: object, device: str, measured: Measured) -> None:
    options = {"num_envs": 64, "max_iterations": ITERATIONS, "device": device, "timeout_s": START_S}
    proof = verify_determinism(TASK, deterministic=True, **options)
    measured("two trainings with one seed", repr(proof), "bit-equal", proof.deterministic)
