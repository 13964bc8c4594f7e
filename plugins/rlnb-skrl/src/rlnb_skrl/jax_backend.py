"""The backend of skrl with JAX: the same training with networks in Flax. Runs in the worker process."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rlnb_skrl import jax_ranks

jax_ranks.join()

import gymnasium  # noqa: E402
import jax  # noqa: E402
import skrl  # noqa: E402
import torch  # noqa: E402
from isaaclab_rl.skrl import SkrlVecEnvWrapper  # noqa: E402
from skrl.utils.runner.jax import Runner  # noqa: E402

from rlnb.backend import export_module  # noqa: E402
from rlnb_skrl import jax_gpu  # noqa: E402
from rlnb_skrl.actor import Actor  # noqa: E402
from rlnb_skrl.backend import HORIZON, OneAgent, Skrl  # noqa: E402
from rlnb_skrl.jax_export import copy_part  # noqa: E402
from rlnb_skrl.jax_record import JaxRecorder  # noqa: E402
from rlnb_skrl.part import parts  # noqa: E402
from rlnb_skrl.select import Selection  # noqa: E402


class _Policy(OneAgent):
    """A skrl agent in JAX as a policy that takes Isaac Lab's observation dict."""

    def act(self, observations: torch.Tensor, states: torch.Tensor | None) -> torch.Tensor:
        """Return flat actions for flat observations and states, each of shape (num_envs, size)."""
        actions, outputs = self._agent.act(_array(observations), _array(states), timestep=0, timesteps=0)
        known = {name: _tensor(outputs[name]) for name in ("mean_actions", "net_output") if name in outputs}
        return self._select("", _tensor(actions), known).to(observations.device)


def _array(tensor: torch.Tensor | None) -> jax.Array | None:
    return None if tensor is None else jax.numpy.asarray(tensor.cpu().numpy())


def _tensor(array: jax.Array) -> torch.Tensor:
    return torch.from_dlpack(array).clone()


class SkrlJax(Skrl):
    """The :class:`rlnb.backend.Backend` of skrl with JAX."""

    has_replay = False
    recorder = JaxRecorder
    policy = _Policy

    def runner(self, env: Any, agent_cfg: Any, device: str, seed: int) -> tuple[Any, Any]:
        """Return skrl's runner and the wrapped env."""
        jax_gpu.check(device, jax.default_backend())
        skrl.config.jax.device = device
        # This key also initialises the networks, and skrl's env wrapper reseeds the env with it at its first reset.
        skrl.config.jax.key = seed
        wrapper = SkrlVecEnvWrapper(_Copies(env), ml_framework="jax")
        return Runner(wrapper, agent_cfg), wrapper

    def load(self, agent: Any, checkpoint: Path) -> None:
        """Load a vetted checkpoint for rollouts."""
        JaxRecorder(agent, HORIZON, 1).load_weights(checkpoint)

    def export(
        self,
        env: Any,
        agent_cfg: Any,
        checkpoint: Path,
        folder: Path,
        *,
        formats: Sequence[str],
        device: str,
        trust: bool,
    ) -> Mapping[str, Path]:
        """Write ``policy.pt`` (TorchScript) and ``policy.onnx``, through the same network in PyTorch."""
        in_torch = copy.deepcopy(agent_cfg)
        runner, _ = self._restored(env, agent_cfg, checkpoint, device, trust)
        in_torch["models"]["separate"] = True  # in JAX, skrl ignores this setting: it has no shared models
        in_torch["agent"]["experiment"].update(write_interval=0, checkpoint_interval=0)
        in_torch["trainer"].update(close_environment_at_exit=False, disable_progressbar=True)
        twin, wrapper = Skrl.runner(self, env, in_torch, device, int(agent_cfg["seed"]))
        observations, _ = wrapper.reset()
        (source,), (target,) = parts(runner.agent), parts(twin.agent)
        copy_part(source, target)
        selection = Selection.of(twin.agent, agent_cfg, wrapper.action_space, "cpu")
        return export_module(Actor(target, selection), observations, folder, formats)


class _Copies(gymnasium.Wrapper):
    """An env that copies its tensors, because on a CPU, JAX shares the memory that the env writes to."""

    def reset(self, **options: Any) -> Any:
        """Reset the env."""
        return _copied(self.env.reset(**options))

    def step(self, action: torch.Tensor) -> Any:
        """Step the env."""
        return _copied(self.env.step(action.clone()))


def _copied(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.clone()
    if isinstance(value, Mapping):
        return {name: _copied(one) for name, one in value.items()}
    return tuple(map(_copied, value)) if isinstance(value, tuple) else value
