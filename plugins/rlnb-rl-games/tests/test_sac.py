"""rlnb's additions to RL-Games' SAC: resumed trainings go on bit by bit as if they had not been interrupted."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rlnb import RlnbError
from rlnb.hooks import plugins
from rlnb.hooks.plugins import agent_config

pytestmark = pytest.mark.skipif(importlib.util.find_spec("rl_games") is None, reason="RL-Games is not installed here")

NUM_ENVS, HORIZON = 2, 4


class Trainings:
    """Trainings by RL-Games' own runner, in an env that goes on where it was when it is reset."""

    def __init__(self, folder: Path, length: int = 5) -> None:
        """Register the env.

        Args:
            folder: Folder of the trainings.
            length: Steps of an episode.
        """
        import torch
        from rl_games.common import env_configurations, ivecenv, vecenv

        class Env(ivecenv.IVecEnv):
            """Points that drift, whose actions push them back."""

            def __init__(self) -> None:
                self.noise, self.points, self.steps = torch.Generator().manual_seed(7), torch.zeros(NUM_ENVS, 3), 0

            def copy(self) -> Env:
                other = Env()
                other.noise.set_state(self.noise.get_state())
                other.points, other.steps = self.points.clone(), self.steps
                return other

            def reset(self) -> Any:
                return {"obs": self.points.clone()}

            def step(self, actions: Any) -> Any:
                noise = torch.randn(NUM_ENVS, 3, generator=self.noise)
                self.points = 0.9 * self.points + 0.3 * actions.sum(1, keepdim=True) + noise
                self.steps += 1
                over = torch.full((NUM_ENVS,), self.steps % length == 0)
                return self.reset(), -self.points.abs().sum(1), over.to(torch.uint8), {"time_outs": over}

            def get_env_info(self) -> Any:
                from gym.spaces import Box

                obs, actions = (Box(-2.0, 2.0, (size,)) for size in (3, 2))
                return {"observation_space": obs, "action_space": actions}

        self.env: Any = Env()
        vecenv.register("drift", lambda *_, **__: self.env)
        env_configurations.register("drift", {"vecenv_type": "drift", "env_creator": Env})
        self._folder, self._count = folder, 0
        self.restored: dict[str, str] = {}

    def __call__(self, epochs: int, *, seed: int = 1, finished: Callable[[], object] = int, **values: Any) -> Any:
        """Train, and return the algorithm.

        Args:
            epochs: The last epoch.
            seed: Seed of the training.
            finished: Called after each epoch.
            values: Values of RL-Games' settings, and ``checkpoint`` or ``init_from``.
        """
        from rl_games.torch_runner import Runner
        from rlnb_rl_games.algorithm import Observer
        from rlnb_rl_games.sac import Sac

        paths = {name: values.pop(name, None) for name in ("checkpoint", "init_from")}
        made: list[Sac] = []

        def build(**arguments: Any) -> Sac:
            made.append(Sac(**arguments))
            context = {"rank": 0, "world_size": 1, "device": "cpu", "trust": False, **paths}
            callbacks = {"iteration_finished": lambda save: finished(), "resumed": self._report(paths["checkpoint"])}
            made[0].join(SimpleNamespace(**context, **callbacks), lambda _: None)
            return made[0]

        self._count += 1
        params: Any = agent_config(plugins.library("rl_games_sac").default_agent)["params"]
        params["network"]["mlp"]["units"] = [8]
        params |= {"seed": seed, "torch_threads": 0}
        params["config"] |= {"env_name": "drift", "device": "cpu", "device_name": "cpu", "num_actors": NUM_ENVS}
        params["config"] |= {
            "torch_compile": False,
            "num_steps_per_episode": HORIZON,
            "batch_size": 4,
            "save_frequency": 1,
        }
        params["config"] |= {
            "num_updates_per_step": 3,
            "num_warmup_steps": 2,
            "replay_buffer_size": 100,
            "max_epochs": epochs,
        }
        params["config"] |= {"train_dir": str(self._folder), "full_experiment_name": str(self._count), **values}
        runner = Runner(Observer())
        runner.algo_factory.register_builder("sac", build)
        runner.load({"params": params})
        checkpoint = str(paths["checkpoint"]) if paths["checkpoint"] else None
        runner.run({"train": True, "play": False, "sigma": None, "checkpoint": checkpoint})
        return made[0]

    def checkpoint(self, epoch: int, training: int = 1) -> Path:
        (path,) = (self._folder / str(training) / "nn").glob(f"last_*_ep_{epoch}_*.pth")
        return path

    def _report(self, checkpoint: Path | None) -> Callable[[Callable[[str], object]], None]:
        """Return ``ctx.resumed`` as rlnb has it, which keeps the report."""
        from rlnb.worker.jobs.resume import restored

        def resumed(save: Callable[[str], object]) -> None:
            if checkpoint is not None:
                self.restored = restored(checkpoint, save, plugins.library("rl_games_sac"))

        return resumed


def state(algorithm: Any) -> dict[str, str]:
    """Return all that an algorithm has learned and collected, as text."""
    import torch
    from rlnb_rl_games.sac import FIELDS

    torch.set_printoptions(threshold=10**5, precision=10)
    saved = algorithm.get_full_state_weights()
    tensors = {name: str(getattr(algorithm.replay_buffer, name)) for name in FIELDS}
    return {name: str(value) for name, value in saved.items()} | tensors | {"size": str(algorithm.buffer_size)}


@pytest.mark.parametrize("settings", [{}, {"policy_frequency": 2}, {"replay_buffer_size": 11}])
def test_a_resumed_training_equals_the_uninterrupted_one(settings: dict[str, Any], tmp_path: Path) -> None:
    train = Trainings(tmp_path)
    envs: list[Any] = []
    train(3, finished=lambda: envs.append(train.env.copy()), **settings)
    at_three, checkpoint = envs[-1], train.checkpoint(3)
    train.env = at_three.copy()
    whole = train(5, checkpoint=checkpoint, seed=3, **settings)
    assert {report.split(":")[0] for report in train.restored.values()} == {"restored"}, train.restored
    assert train.restored.keys() >= {"replay_buffer", "log_alpha", "updates", "random_state", "running_mean_std"}
    again = Trainings(tmp_path / "again")
    assert state(again(5, **settings)) == state(whole)


def test_a_training_ends_although_no_episode_has_ended(tmp_path: Path) -> None:
    train = Trainings(tmp_path, length=10**6)
    algorithm = train(3)
    assert algorithm.epoch_num == 3
    assert train.checkpoint(3).is_file()
    assert algorithm.frame == 3 * NUM_ENVS * HORIZON


def test_only_the_newest_checkpoints_keep_their_buffers(tmp_path: Path) -> None:
    from rlnb_rl_games.companions import BUFFER

    train = Trainings(tmp_path)
    train(4)
    buffers = {path.name for path in (tmp_path / "1" / "nn").glob(f"*{BUFFER}")}
    assert buffers == {f"{train.checkpoint(epoch).stem}{BUFFER}" for epoch in (3, 4)}
    with pytest.raises(RlnbError, match="has no replay buffer beside it"):
        train(5, checkpoint=train.checkpoint(1))
    with pytest.raises(RlnbError, match=r"replay_buffer_size is 8\. Resume with the size of the run"):
        train(5, checkpoint=train.checkpoint(4), replay_buffer_size=8)


def test_a_buffer_is_not_twice_on_its_gpu(tmp_path: Path) -> None:
    train = Trainings(tmp_path)
    algorithm = train(2)
    algorithm._ctx.device = "cuda:63"  # no tensor can be there
    algorithm.replay_buffer.idx = 0
    algorithm._read_buffer(train.checkpoint(2))
    assert algorithm.buffer_size == 2 * NUM_ENVS * HORIZON


def test_a_run_starts_from_the_weights_only(tmp_path: Path) -> None:
    import torch

    train = Trainings(tmp_path)
    train(3)
    starts: list[dict[str, Any]] = []
    from rlnb_rl_games.sac import Sac

    original = Sac.train_epoch

    def first_epoch(self: Sac) -> Any:
        starts.append({name: value.clone() for name, value in self.model.sac_network.state_dict().items()})
        starts[0]["epoch"] = starts[0].get("epoch", self.epoch_num)
        return original(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Sac, "train_epoch", first_epoch)
        train(2, init_from=train.checkpoint(3), seed=5)
    saved = torch.load(train.checkpoint(3))
    assert all(torch.equal(value, starts[0][f"actor.{name}"]) for name, value in saved["actor"].items())
    assert starts[0]["epoch"] == 1


def test_each_epoch_logs_the_common_metrics(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    Trainings(tmp_path)(4, policy_frequency=2, num_updates_per_step=1)
    events = EventAccumulator(str(tmp_path / "1" / "summaries")).Reload()
    metrics = plugins.library("rl_games_sac").metrics
    assert {tag for name, tag in metrics.items() if name != "success_rate"} <= {*events.Tags()["scalars"]}
    sizes = [(event.step, event.value) for event in events.Scalars(metrics["buffer_size"])]
    assert sizes == [(NUM_ENVS * HORIZON * n, NUM_ENVS * HORIZON * n) for n in (1, 2, 3, 4)]
    assert all(event.value < 0.0 or event.value > 0.0 for event in events.Scalars(metrics["entropy"]))


def test_the_reward_is_the_return_of_the_env_and_not_the_one_shaped_for_learning(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    returns, rewards = [], []
    for scale in (1.0, 5.0):
        folder = tmp_path / str(scale)
        algorithm = Trainings(folder, length=HORIZON)(1, reward_shaper={"scale_value": scale})
        events = EventAccumulator(str(folder / "1" / "summaries")).Reload()
        returns.append(events.Scalars(plugins.library("rl_games_sac").metrics["reward"])[0].value)
        rewards.append(algorithm.replay_buffer.rewards[: NUM_ENVS * HORIZON].flatten())
    assert returns[0] == returns[1] == pytest.approx(rewards[0].sum().item() / NUM_ENVS)
    assert rewards[1].tolist() == pytest.approx((5.0 * rewards[0]).tolist()), "the buffer has what is learned from"


def test_several_ranks_are_refused() -> None:
    from rlnb_rl_games.sac import Sac

    with pytest.raises(RlnbError, match="nproc_per_node=1"):
        Sac.join(object.__new__(Sac), SimpleNamespace(world_size=2), print)  # type: ignore[arg-type]
