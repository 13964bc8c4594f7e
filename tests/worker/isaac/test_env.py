"""The config of an env with the requested changes. Plain configs stand in for Isaac Lab's registry."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import rlnb
from rlnb.configs.agent import AgentChoice
from rlnb.errors import RlnbError
from rlnb.hooks import plugins
from rlnb.worker.isaac import agent_configs, env, isaaclab
from rlnb.worker.isaac.env import configured, environment


@dataclass
class Part:
    num_envs: int = 64
    dt: float = 0.01
    device: str = ""


@dataclass
class Config:
    scene: Part = field(default_factory=Part)
    sim: Part = field(default_factory=Part)
    seed: int = 0
    log_dir: str = ""


@pytest.fixture(autouse=True)
def registry(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Replace Isaac Lab; return the calls to it, in order."""
    calls: list[str] = []

    class Env:
        def close(self) -> None:
            calls.append("close")

    class Made:
        def __init__(self, gym_id: str, env_cfg: Config, arguments: Mapping[str, Any], *, join_agents: bool) -> None:
            self.text = f"{gym_id} {env_cfg.scene.num_envs} {env_cfg.log_dir} {join_agents} {dict(arguments)}"

        def __enter__(self) -> Env:
            calls.append(self.text)
            return Env()

        def __exit__(self, *_: object) -> None:
            calls.append("close")

    registered = isaaclab.Registered(gym_id="Demo-v0", success=None, agents={})
    monkeypatch.setattr(isaaclab, "register", lambda task, module: registered)
    monkeypatch.setattr(env, "resolve_config", lambda task, registered, mode: Config())
    monkeypatch.setattr(
        agent_configs, "resolve", lambda task, registered, library, name, spaces: {"algorithm": {"lr": 0.1}, "of": name}
    )
    monkeypatch.setattr(isaaclab, "made", Made)
    monkeypatch.setattr(env, "resolve_backends", lambda env_cfg, arguments: calls.append(f"backends {arguments}"))
    return calls


def test_overrides_agent_values_seed_and_device_are_set() -> None:
    task = rlnb.Task(id="Demo", overrides={"sim.dt": 1})
    choice = AgentChoice(name="generic", values={"algorithm.lr": 0.5})
    _, env_cfg, agent_cfg = configured(task, plugins.library("rsl_rl"), agent=choice, seed=7, device="cpu")
    assert (env_cfg.sim.dt, env_cfg.seed, env_cfg.sim.device) == (1.0, 7, "cpu")
    assert isinstance(env_cfg.sim.dt, float)
    assert agent_cfg == {"algorithm": {"lr": 0.5}, "of": "generic"}
    assert configured(task, None, device="cpu")[2] is None


@pytest.mark.parametrize(("num_envs", "share"), [(None, 16), (8, 2)])
def test_ranks_share_the_envs(num_envs: int | None, share: int) -> None:
    env_cfg = configured(rlnb.Task(id="Demo", num_envs=num_envs), None, device="cpu", world_size=4)[1]
    assert env_cfg.scene.num_envs == share


def test_a_path_that_does_not_exist_is_refused() -> None:
    with pytest.raises(RlnbError, match=r"No config value 'sim.dtt'.*Did you mean 'dt'"):
        configured(rlnb.Task(id="Demo", overrides={"sim.dtt": 1}), None, device="cpu")


def test_the_callers_function_changes_the_config_last_and_the_env_is_closed_at_the_end(
    registry: list[str], tmp_path: Path
) -> None:
    def configure(env_cfg: Any) -> None:
        env_cfg.scene.num_envs = 3

    task = rlnb.Task(id="Demo", num_envs=8)
    with environment(task, None, device="cpu", log_dir=tmp_path, configure=configure) as (_, agent_cfg):
        assert registry[0] == "backends {'device': 'cpu'}", "before a camera could change them"
        assert registry[1:] == [f"Demo-v0 3 {tmp_path} False {{'device': 'cpu'}}"]
        assert agent_cfg is None
    assert registry[-1] == "close"


@pytest.mark.parametrize("deterministic", [False, True])
def test_launcher_arguments_reach_the_launch_and_determinism_surrounds_the_env(
    registry: list[str], monkeypatch: pytest.MonkeyPatch, deterministic: bool
) -> None:
    @contextlib.contextmanager
    def logged(name: str, *_: object) -> Iterator[None]:
        registry.append(f"{name} on")
        yield
        registry.append(f"{name} off")

    monkeypatch.setattr(env, "deterministic_simulation", lambda *values: logged("simulation", *values))
    monkeypatch.setattr(env, "deterministic_torch", lambda: logged("torch"))
    task = rlnb.Task(id="Demo", launcher_args={"livestream": 2})
    with environment(task, None, device="cpu", deterministic=deterministic):
        pass
    further = {"deterministic": True} if deterministic else {}
    launch = f"Demo-v0 64  False {dict(device='cpu', livestream=2) | further}"
    surrounded = ["simulation on", launch, "torch on", "torch off", "close", "simulation off"]
    assert registry == (surrounded if deterministic else [launch, "close"])
