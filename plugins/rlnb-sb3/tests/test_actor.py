"""The module for rollouts and export gives the same actions as Stable-Baselines3 itself."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("stable_baselines3") is None, reason="stable-baselines3 is not installed here"
)


@pytest.mark.parametrize("normalised", [True, False])
@pytest.mark.parametrize("arguments", [{}, {"use_sde": True, "policy_kwargs": {"squash_output": True}}])
def test_actions_are_the_librarys_own(normalised: bool, arguments: dict[str, Any], tmp_path: Path) -> None:
    import torch
    from rlnb_sb3.actor import Actor
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.logger import configure
    from stable_baselines3.common.vec_env import VecNormalize

    env = make_vec_env("Pendulum-v1", 8, seed=0)  # torques of -2 to 2
    if normalised:
        env = VecNormalize(env)
    agent = PPO("MlpPolicy", env, n_steps=64, seed=0, device="cpu", **arguments)
    agent.set_logger(configure(str(tmp_path), []))
    agent.learn(512)
    agent.policy.action_net.weight.data *= 150.0  # so that some actions are out of bounds
    raw = torch.linspace(-1, 1, 1001)[:, None] * torch.as_tensor(env.observation_space.high)
    seen = env.normalize_obs(raw.numpy()) if isinstance(env, VecNormalize) else raw.numpy()
    expected, _ = agent.predict(seen, deterministic=True)
    with torch.no_grad():
        actions = Actor(agent, deterministic=True)({"policy": raw})
    assert actions.numpy() == pytest.approx(expected, abs=1e-6)
    torch.manual_seed(1)
    expected_sampled, _ = agent.predict(seen, deterministic=False)
    torch.manual_seed(1)
    with torch.no_grad():
        sampled = Actor(agent, deterministic=False)({"policy": raw})
    assert sampled.numpy() == pytest.approx(expected_sampled, abs=1e-6)
    assert sampled.numpy() != pytest.approx(expected, abs=1e-2)
    assert abs(expected).max() == pytest.approx(2.0, abs=0.1)
    assert abs(expected).min() < 1.9, "some actions are within bounds"


@pytest.mark.parametrize("choices", [[3], [3, 2]])
def test_the_most_likely_choices_are_taken(choices: list[int]) -> None:
    import gymnasium
    import torch
    from rlnb_sb3.actor import Actor
    from stable_baselines3 import PPO

    class Choices(gymnasium.Env[Any, Any]):
        """An env that is only seen."""

        observation_space = gymnasium.spaces.Box(-1, 1, (4,))
        action_space = gymnasium.spaces.MultiDiscrete(choices) if choices[1:] else gymnasium.spaces.Discrete(choices[0])

    agent = PPO("MlpPolicy", Choices(), seed=0, device="cpu")
    obs = torch.rand(1000, 4) * 2 - 1
    expected, _ = agent.predict(obs.numpy(), deterministic=True)
    with torch.no_grad():
        actions = Actor(agent, deterministic=True)({"policy": obs})
        sampled = Actor(agent, deterministic=False)({"policy": obs})
    assert actions.numpy().tolist() == expected.tolist()
    assert sampled.numpy().tolist() != expected.tolist()


def test_an_onnx_file_says_how_many_numbers_an_action_has(tmp_path: Path) -> None:
    import torch
    from rlnb_sb3.actor import Actor
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env

    from rlnb.backend import export_module

    onnx = pytest.importorskip("onnx")
    agent = PPO("MlpPolicy", make_vec_env("Pendulum-v1", 2, seed=0), n_steps=8, device="cpu")

    class OfTensor(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.actor = Actor(agent, deterministic=True)

        def forward(self, obs: torch.Tensor) -> torch.Tensor:
            return self.actor({"policy": obs})

    path = export_module(OfTensor().eval(), torch.zeros(4, 3), tmp_path, ["onnx"])["onnx"]
    rows, size = onnx.load(str(path)).graph.output[0].type.tensor_type.shape.dim
    assert (rows.dim_param, size.dim_value) == ("n", 1)
