"""Policies of other runs as inputs, with real Isaac Lab, and behaviour cloning, the example of a library of data."""

from __future__ import annotations

import importlib
import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import rlnb
from rlnb.hooks.registry import registry
from rlnb.records.layout import RunDir
from rlnb.simulation.pool import pool
from rlnb.tasks import source

EXAMPLE = Path(__file__).parents[3] / "docs" / "examples" / "rlnb-cloning" / "src"
TASK, NUM_ENVS, WAIT_S = "Isaac-Cartpole-Direct", 8, 300.0

LIBRARIES = ("rsl_rl", "rl_games", "skrl", "sb3")
RECURRENT = """
from isaaclab_rl.rsl_rl import RslRlRNNModelCfg
from isaaclab_tasks.core.cartpole.agents.rsl_rl_ppo_cfg import CartpolePPORunnerCfg
from isaaclab_tasks.core.cartpole.cartpole_direct_env import CartpoleEnv as ENV
from isaaclab_tasks.core.cartpole.cartpole_direct_env_cfg import CartpoleEnvCfg as TASK

LSTM = {
    "hidden_dims": [16], "activation": "elu", "obs_normalization": False,
    "rnn_type": "lstm", "rnn_hidden_dim": 8, "rnn_num_layers": 1,
}
NOISE = RslRlRNNModelCfg.GaussianDistributionCfg(init_std=1.0)
AGENTS = {
    "rsl_rl": CartpolePPORunnerCfg(
        actor=RslRlRNNModelCfg(**LSTM, distribution_cfg=NOISE), critic=RslRlRNNModelCfg(**LSTM)
    )
}
"""
"""A task whose policy keeps a state."""
POLICIES = {**dict.fromkeys(LIBRARIES, TASK), "recurrent": "Recurrent"}
"""Task of each policy, by the name of the input, which is that of its library for stock tasks."""
pytestmark = [
    pytest.mark.isaaclab,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(importlib.util.find_spec("isaaclab") is None, reason="isaaclab is not installed here"),
]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Provide a root, the example as its pyproject.toml installs it, and a warm simulator for this module."""
    folder = tmp_path_factory.mktemp("inputs")
    info = folder / "site" / "rlnb_cloning-0.1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: rlnb-cloning\nVersion: 0.1.0\n")
    (info / "entry_points.txt").write_text("[rlnb]\ncloning = rlnb_cloning.plugin\n")
    with pytest.MonkeyPatch.context() as patch:
        places = [str(info.parent), str(EXAMPLE)]
        patch.setenv("PYTHONPATH", os.pathsep.join([*places, os.environ.get("PYTHONPATH", "")]))
        for place in places:
            patch.syspath_prepend(place)
        importlib.invalidate_caches()
        registry.cache_clear()
        patch.setenv("RLNB_QUEUE", str(folder / "queue"))
        patch.setattr(rlnb.options, "root", folder / "rlnb-runs")
        patch.setattr(rlnb.options, "warm", True)
        yield folder / "rlnb-runs"
        pool.shut_down()
    registry.cache_clear()


# Acts with each policy in the env of a training, which must stay as it is.
ACTS = """
import json, random, sys
from pathlib import Path

import numpy as np
import torch

from rlnb.records.layout import RunDir
from rlnb.spec import Manifest, Task
from rlnb.storage import files
from rlnb.storage.serial import from_json
from rlnb.worker.isaac import isaaclab
from rlnb.worker.isaac.env import environment
from rlnb.worker.jobs.inputs import policy_of

run = RunDir(Path(sys.argv[1]))
manifest = from_json(Manifest, files.read_json(run.manifest))
isaaclab.start(None)
with environment(manifest.task, None, device="cpu") as (env, _):
    raw = env.unwrapped
    env.reset()
    raw.episode_length_buf += 7
    for name in manifest.inputs:
        before = dict(vars(raw))
        numbers = torch.get_rng_state(), np.random.get_state()[1].copy(), random.getstate()
        recorded = np.load(run.inputs / name / "rollout.npz")
        policy = policy_of(run, manifest, name, env, {}, trust=False)
        assert torch.equal(numbers[0], torch.get_rng_state()) and random.getstate() == numbers[2], name
        assert (np.random.get_state()[1] == numbers[1]).all(), name
        assert all(vars(raw)[key] is value for key, value in before.items()) and vars(raw).keys() == before.keys(), name
        assert (raw.episode_length_buf == 7).all(), name
        rows = zip(np.split(recorded["obs.policy"], 8), np.split(recorded["actions"], 8))
        with torch.inference_mode():
            pairs = [(policy({"policy": torch.from_numpy(obs)}).numpy(), actions) for obs, actions in rows]
        print(name, max(abs(one - other).max() for one, other in pairs), max(abs(other).max() for _, other in pairs))
"""


def test_a_policy_of_any_library_acts_as_in_its_own_run(root: Path, tmp_path: Path) -> None:
    """The env that trains is not changed, and neither are the random numbers."""
    from rlnb.spec import Manifest, Task
    from rlnb.storage import files
    from rlnb.training.create import copy_input
    from rlnb.training.inputs import InputFile

    folder, origins = RunDir(tmp_path / "run"), {}
    source.write_module(rlnb.options.folders, "Recurrent", RECURRENT, "test.ipynb")
    for name, task_id in POLICIES.items():
        library = name if name in LIBRARIES else "rsl_rl"
        run = rlnb.train(task_id, library=library, num_envs=NUM_ENVS, max_iterations=2, device="cpu").wait(WAIT_S)
        rollout = run.evaluate(episodes=NUM_ENVS, num_envs=NUM_ENVS, record=8 * NUM_ENVS).rollout
        newest = run.checkpoints.last
        assert rollout is not None
        assert newest is not None
        origins[name] = f"{run.id}/logs/{newest.name}"
        copy_input(InputFile(file=newest, origin=origins[name], policy_of=run.record), name, folder)
        (folder.inputs / name / "rollout.npz").write_bytes(rollout.read_bytes())
    task = Task(id=TASK, num_envs=NUM_ENVS)
    files.write_once(folder.manifest, Manifest(run_id="run", created="", task=task, library="rsl_rl", inputs=origins))
    pool.shut_down()
    rank = {**os.environ, "RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2"}  # a policy does not wait for other ranks
    argv = [sys.executable, "-c", ACTS, str(folder.path)]
    done = subprocess.run(argv, env=rank, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    rows = [line.split() for line in done.stdout.splitlines() if line.startswith((*POLICIES,))]
    assert [row[0] for row in rows] == list(POLICIES), done.stdout[-3000:]
    for name, difference, largest in rows:
        assert float(difference) < 1e-5 < float(largest), name


def test_a_clone_acts_as_its_demonstrator(root: Path) -> None:
    expert = rlnb.train(TASK, library="rsl_rl", num_envs=64, max_iterations=20, device="cpu").wait(WAIT_S)
    demos = expert.evaluate(64, num_envs=64, record=10_000).rollout
    assert demos is not None
    run = rlnb.train(TASK, library="cloning", num_envs=1, device="cpu", inputs={"demos": demos}).wait(WAIT_S)
    assert run.manifest.inputs == {"demos": f"{expert.id}/jobs/{demos.parent.name}/{demos.name}"}
    losses = run.metrics["policy_loss"].values
    assert losses[-1] < losses[0] / 10
    clone, original = run.evaluate(64, num_envs=64), expert.evaluate(64, num_envs=64)
    assert np.mean(clone.returns) > 0.9 * np.mean(original.returns)
    run.resume(max_iterations=101).wait(WAIT_S)
    assert run.started is not None
    assert {report.split(":")[0] for report in run.started.restored.values()} == {"restored"}
    assert set(run.export()) == {"torchscript", "onnx"}


def test_a_clone_without_demonstrations_is_refused(root: Path) -> None:
    (problem,) = rlnb.check(TASK, library="cloning", device="cpu")
    assert problem.what == "cloning needs the input 'demos', which is recorded rollouts."
