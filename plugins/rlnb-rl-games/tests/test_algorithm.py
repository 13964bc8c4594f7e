"""rlnb's additions to RL-Games' own PPO."""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

NETWORK = {
    "name": "actor_critic",
    "separate": False,
    "space": {
        "continuous": {
            "mu_activation": "None",
            "sigma_activation": "None",
            "mu_init": {"name": "default"},
            "sigma_init": {"name": "const_initializer", "val": 0.0},
            "fixed_sigma": True,
        }
    },
    "mlp": {"units": [4], "activation": "elu", "initializer": {"name": "default"}},
}
CENTRAL_VALUE = {
    "minibatch_size": 8,
    "mini_epochs": 1,
    "learning_rate": 1e-3,
    "clip_value": True,
    "normalize_input": True,
    "network": {"name": "actor_critic", "central_value": True, "mlp": NETWORK["mlp"]},
}
LIMIT = {"max_epochs": 2, "save_best_after": 100, "save_frequency": 1, "score_to_win": 1e6}
PPO = {
    "env_name": "plain",
    "device": "cpu",
    "device_name": "cpu",
    "normalize_input": True,
    "normalize_value": True,
    "num_actors": 2,
    "reward_shaper": {"scale_value": 1.0},
    "normalize_advantage": True,
    "gamma": 0.99,
    "tau": 0.95,
    "learning_rate": 1e-3,
    "lr_schedule": "adaptive",
    "kl_threshold": 0.01,
    "grad_norm": 1.0,
    "entropy_coef": 0.0,
    "truncate_grads": True,
    "e_clip": 0.2,
    "horizon_length": 4,
    "minibatch_size": 8,
    "mini_epochs": 1,
    "critic_coef": 4,
    "clip_value": True,
    "ppo": True,
    "bounds_loss_coef": 0.0,
    **LIMIT,
}

pytestmark = pytest.mark.skipif(importlib.util.find_spec("rl_games") is None, reason="RL-Games is not installed here")


def test_a_rank_without_a_writer_does_not_collect_the_envs_log(monkeypatch: pytest.MonkeyPatch) -> None:
    from rl_games.common.algo_observer import IsaacAlgoObserver
    from rlnb_rl_games.algorithm import Observer

    rows: list[Any] = []
    monkeypatch.setattr(IsaacAlgoObserver, "process_infos", lambda self, infos, done_indices: rows.append(infos))
    observer = Observer()
    for writer in (None, object()):
        observer.algo = SimpleNamespace(writer=writer)
        observer.process_infos({"episode": writer}, None)
    assert rows == [{"episode": observer.algo.writer}]


def test_a_checkpoint_gets_its_name_once_it_is_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from rl_games.algos_torch.a2c_continuous import A2CAgent
    from rlnb_rl_games.algorithm import ContinuousPpo

    def save(self: A2CAgent, fn: str) -> None:
        assert not list(tmp_path.glob("ep_6*"))
        Path(f"{fn}.pth").write_text("whole")

    monkeypatch.setattr(A2CAgent, "save", save)
    ContinuousPpo.save(object.__new__(ContinuousPpo), str(tmp_path / "ep_6"))
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("ep_6.pth", "whole")]


class Trainings:
    """Trainings by RL-Games' own runner in an env that returns zeros."""

    def __init__(self, folder: Path) -> None:
        import torch
        from rl_games.common import env_configurations, ivecenv, vecenv

        class Env(ivecenv.IVecEnv):
            """Two envs that RL-Games steps at once, on the CPU like Isaac Lab's."""

            def reset(self) -> Any:
                return {"obs": torch.zeros(2, 3), "states": torch.zeros(2, 5)}

            def step(self, actions: Any) -> Any:
                return self.reset(), torch.ones(2), torch.zeros(2, dtype=torch.uint8), {}

            def get_env_info(self) -> Any:
                from gym.spaces import Box

                obs, states, actions = (Box(-1.0, 1.0, (size,)) for size in (3, 5, 2))
                return {"observation_space": obs, "action_space": actions, "state_space": states}

        vecenv.register("plain", lambda *_, **__: Env())
        env_configurations.register("plain", {"vecenv_type": "plain", "env_creator": Env})
        self._folder, self._count = folder, 0
        self.restored: dict[str, str] = {}

    def __call__(self, *, compiles: bool, central_value: bool, epochs: int = 2, **paths: Path) -> Path:
        """Train, and return the last checkpoint."""
        from rl_games.torch_runner import Runner
        from rlnb_rl_games.algorithm import ContinuousPpo, Observer

        def build(**arguments: Any) -> ContinuousPpo:
            algorithm = ContinuousPpo(**arguments)
            algorithm.join(self._context(paths), lambda _: None)
            return algorithm

        self._count += 1
        name = str(self._count)
        config = {**PPO, "torch_compile": compiles, "name": "of", "max_epochs": epochs}
        config |= {"train_dir": str(self._folder), "full_experiment_name": name}
        if central_value:
            config["central_value_config"] = CENTRAL_VALUE
        params = {"seed": 1, "torch_threads": 0, "algo": {"name": "a2c_continuous"}, "network": NETWORK}
        runner = Runner(Observer())
        runner.algo_factory.register_builder("a2c_continuous", build)
        runner.load({"params": {**params, "model": {"name": "continuous_a2c_logstd"}, "config": config}})
        checkpoint = str(paths["checkpoint"]) if "checkpoint" in paths else None
        runner.run({"train": True, "play": False, "sigma": None, "checkpoint": checkpoint})
        return max((self._folder / name / "nn").glob("*_ep_*.pth"))

    def _context(self, paths: dict[str, Path]) -> Any:
        """Return what rlnb tells an algorithm about its rank."""
        one = {"rank": 0, "world_size": 1, "device": "cpu", "trust": False, "pool": lambda *_: None}
        values = {"checkpoint": None, "init_from": None, "iteration_finished": lambda save: None, **one, **paths}
        return SimpleNamespace(**values, resumed=self._report(paths))

    def _report(self, paths: dict[str, Path]) -> Callable[[Callable[[str], object]], None]:
        from rlnb.worker.jobs.resume import restored

        def report(save: Callable[[str], object]) -> None:
            self.restored = restored(paths["checkpoint"], save) if "checkpoint" in paths else {}

        return report


@pytest.fixture
def trainings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trainings:
    """Provide trainings whose compiler generates no code, since only the names of the weights matter."""
    import torch

    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend="eager"))
    return Trainings(tmp_path)


@pytest.mark.parametrize("central_value", [False, True], ids=["one network", "central value"])
@pytest.mark.parametrize("compiles", [False, True], ids=["plain", "compiled"])
def test_a_checkpoint_serves_models_with_and_without_torch_compile(
    trainings: Trainings, compiles: bool, central_value: bool
) -> None:
    import torch

    checkpoint = trainings(compiles=compiles, central_value=central_value)
    state = torch.load(checkpoint, weights_only=True)
    names = [name for part in ("model", "assymetric_vf_nets") for name in state.get(part, {})]
    assert names
    assert not [name for name in names if "_orig_mod" in name]
    for other in (False, True):
        trainings(compiles=other, central_value=central_value, init_from=checkpoint)
        trainings(compiles=other, central_value=central_value, epochs=3, checkpoint=checkpoint)
        assert trainings.restored.keys() == state.keys()
        assert {report.split(":")[0] for report in trainings.restored.values()} == {"restored"}, trainings.restored


@pytest.mark.parametrize("compiles", [False, True], ids=["plain", "compiled"])
def test_a_checkpoint_with_the_names_of_compiled_models_is_resumed(trainings: Trainings, compiles: bool) -> None:
    """RL-Games itself writes such checkpoints."""
    import torch

    checkpoint = trainings(compiles=False, central_value=True)
    state = torch.load(checkpoint, weights_only=True)
    state["model"] = {f"_orig_mod.{name}": value for name, value in state["model"].items()}
    central = state["assymetric_vf_nets"].items()
    state["assymetric_vf_nets"] = {name.replace("model.", "model._orig_mod."): value for name, value in central}
    torch.save(state, checkpoint)
    trainings(compiles=compiles, central_value=True, epochs=3, checkpoint=checkpoint)
    assert {report.split(":")[0] for report in trainings.restored.values()} == {"restored"}, trainings.restored


def test_a_checkpoint_of_a_gpu_is_resumed_and_started_from(trainings: Trainings) -> None:
    from rlnb.testing.exports import write_as_on_gpu

    checkpoint = trainings(compiles=False, central_value=False)
    write_as_on_gpu(checkpoint)
    trainings(compiles=False, central_value=False, init_from=checkpoint)
    trainings(compiles=False, central_value=False, epochs=3, checkpoint=checkpoint)
    assert {report.split(":")[0] for report in trainings.restored.values()} == {"restored"}, trainings.restored
