"""The weights of a checkpoint reach the policy for each of RSL-RL's algorithms. Needs no simulator."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

import rlnb

pytestmark = pytest.mark.skipif(importlib.util.find_spec("rsl_rl") is None, reason="rsl-rl-lib is not installed here")

PPO = {"class_name": "PPO"}
DISTILLATION = {"class_name": "Distillation", "gradient_length": 4}


def runner(algorithm: dict[str, Any], seed: int) -> Any:
    """Return a runner with random networks, on an env that only provides shapes."""
    import torch
    from rsl_rl.env import VecEnv
    from rsl_rl.runners import DistillationRunner, OnPolicyRunner
    from tensordict import TensorDict

    class Env(VecEnv):
        num_envs, num_actions, max_episode_length, device, cfg = 2, 1, 10, "cpu", {}

        def get_observations(self) -> TensorDict:
            return TensorDict({"policy": torch.linspace(-1, 1, 6).reshape(2, 3)}, batch_size=[2])

        def step(self, actions: torch.Tensor) -> Any:
            raise NotImplementedError

    torch.manual_seed(seed)
    network = {"class_name": "MLPModel", "hidden_dims": [4], "obs_normalization": True}
    acting = {**network, "distribution_cfg": {"class_name": "GaussianDistribution"}}
    parts = {"actor": acting, "critic": network} if algorithm == PPO else {"student": acting, "teacher": acting}
    groups = {name: ["policy"] for name in parts}
    cfg = {"num_steps_per_env": 4, "obs_groups": groups, "algorithm": dict(algorithm)}
    return (OnPolicyRunner if algorithm == PPO else DistillationRunner)(
        Env(), {**cfg, **{name: dict(part) for name, part in parts.items()}}
    )


def same(one: Any, other: Any) -> bool:
    return all(bool((value == other.state_dict()[name]).all()) for name, value in one.state_dict().items())


@pytest.fixture
def checkpoint(tmp_path: Path) -> Any:
    """Return a function that saves a runner and returns the file's path."""

    def save(of: Any) -> Path:
        path = tmp_path / "model_1.pt"
        of.save(str(path))
        return path

    return save


@pytest.mark.parametrize("algorithm", [PPO, DISTILLATION], ids=["an actor", "a student"])
def test_a_policy_has_the_weights_of_its_checkpoint(checkpoint: Any, algorithm: dict[str, Any]) -> None:
    from rlnb_rsl_rl import weights

    saved, loaded = runner(algorithm, seed=1), runner(algorithm, seed=2)
    saved.alg.get_policy().obs_normalizer.update(saved.env.get_observations()["policy"])
    assert not same(loaded.alg.get_policy(), saved.alg.get_policy())
    weights.load_policy(loaded, checkpoint(saved), "cpu", trust=False)
    assert same(loaded.alg.get_policy(), saved.alg.get_policy())


def test_weights_equal_to_the_policys_own_are_accepted(checkpoint: Any) -> None:
    from rlnb_rsl_rl import weights

    weights.load_policy(runner(PPO, seed=1), checkpoint(runner(PPO, seed=1)), "cpu", trust=False)


def test_an_algorithm_that_leaves_the_policy_random_is_refused(checkpoint: Any) -> None:
    from rlnb_rsl_rl import weights
    from rsl_rl.algorithms import Distillation

    class Forgetful(Distillation):
        def load(self, *_: Any) -> bool:
            return False

    forgetful = runner({**DISTILLATION, "class_name": Forgetful}, seed=2)
    with pytest.raises(rlnb.RlnbError, match=r"not have the weights of model_1\.pt: Forgetful\.load\(\) .*\. Use "):
        weights.load_policy(forgetful, checkpoint(runner(DISTILLATION, seed=1)), "cpu", trust=False)


@pytest.mark.parametrize(
    ("algorithm", "other", "lacking"),
    [(PPO, DISTILLATION, "actor_state_dict"), (DISTILLATION, PPO, "student_state_dict")],
    ids=["of a distillation", "of PPO"],
)
def test_a_checkpoint_of_another_algorithm_is_refused(
    checkpoint: Any, algorithm: dict[str, Any], other: dict[str, Any], lacking: str
) -> None:
    from rlnb_rsl_rl import weights

    name = algorithm["class_name"]
    with pytest.raises(rlnb.RlnbError, match=rf"not a checkpoint of {name}: it has no '{lacking}'\. Use .* {name}\."):
        weights.load_policy(runner(algorithm, seed=1), checkpoint(runner(other, seed=1)), "cpu", trust=False)


def test_a_distillation_starts_from_the_student_of_another(checkpoint: Any) -> None:
    from rlnb_rsl_rl import weights

    first, further = runner(DISTILLATION, seed=2), runner(DISTILLATION, seed=3)
    assert not same(further.alg.student, first.alg.student)
    weights.start_from(further, checkpoint(first), "cpu")
    assert same(further.alg.student, first.alg.student)


@pytest.mark.parametrize("version", [2, 3])
def test_a_checkpoint_of_a_former_version_is_loaded(tmp_path: Path, version: int) -> None:
    import torch
    from rlnb_rsl_rl import weights

    saved, loaded, started = (runner(PPO, seed=seed) for seed in (1, 2, 3))
    for model in (saved.alg.actor, saved.alg.critic):
        model.obs_normalizer.update(saved.env.get_observations()["policy"])
    module, further = {}, {}
    for network, model in (("actor", saved.alg.actor), ("critic", saved.alg.critic)):
        for name, value in model.state_dict().items():
            part, _, rest = name.partition(".")
            if part == "obs_normalizer" and version == 2:
                entry = "obs_norm_state_dict" if network == "actor" else "privileged_obs_norm_state_dict"
                further.setdefault(entry, {})[rest] = value
            else:
                former = {"mlp": f"{network}.{rest}", "obs_normalizer": f"{network}_obs_normalizer.{rest}"}
                module[former.get(part, "std")] = value
    path = tmp_path / "model_1499.pt"
    torch.save({"model_state_dict": module, "optimizer_state_dict": {}, "iter": 1499, "infos": None, **further}, path)
    weights.load_policy(loaded, path, "cpu", trust=False)
    assert same(loaded.alg.actor, saved.alg.actor)
    weights.start_from(started, path, "cpu")
    assert same(started.alg.actor, saved.alg.actor)
    assert same(started.alg.critic, saved.alg.critic)
