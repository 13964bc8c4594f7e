"""RL-Games' PPO with immediate logging, complete checkpoints and a full restore on resume."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from rl_games.algos_torch.a2c_continuous import A2CAgent
from rl_games.algos_torch.a2c_discrete import DiscreteA2CAgent
from rl_games.common.a2c_common import A2CBase
from rl_games.common.algo_observer import IsaacAlgoObserver

from rlnb.backend import TrainContext, random_state, restore_random_state, vet_checkpoint, write_whole
from rlnb_rl_games import weights as checkpoints


class Observer(IsaacAlgoObserver):
    """Isaac Lab's observer, with frames as the x axis of all scalars."""

    ep_infos: list[dict[str, torch.Tensor]]

    def process_infos(self, infos: Any, done_indices: Any) -> None:
        """Collect the env's log on the rank that writes it; on other ranks it would only pile up in memory."""
        if self.algo.writer is not None:
            super().process_infos(infos, done_indices)

    def after_print_stats(self, frame: int, epoch_num: int, total_time: float) -> None:
        """Log what the env has logged over frames; RL-Games logs it over epochs, and everything else over frames.

        RL-Games takes the names of the first step, and fails if a later step has logged less.
        """
        steps = self.ep_infos
        names = dict.fromkeys(name for step in steps for name in step)
        logged = {name: [step[name].to(self.algo.device) for step in steps if name in step] for name in names}
        self.ep_infos = [{name: torch.stack(values).mean() for name, values in logged.items()}] if names else []
        super().after_print_stats(frame, frame, total_time)
        for tag, value in self.algo.values().items():
            self.writer.add_scalar(tag, value, frame)


class _Recorded(A2CBase):
    """rlnb's additions to both PPO classes of RL-Games, as overrides of public methods."""

    writer: Any
    _best: float | None = None
    _first_epoch: int

    def join(self, ctx: TrainContext, on_start: Callable[[int], None]) -> None:
        """Turn this algorithm into one of the ranks.

        RL-Games' own setup of several ranks needs a GPU per rank. The algorithm is therefore built for one process and
        turned into a rank afterwards. Only rank 0 writes.

        Args:
            ctx: The context of this rank.
            on_start: Called with the number of finished epochs before the first iteration.
        """
        self._ctx, self._on_start = ctx, on_start
        if ctx.world_size == 1:
            return
        self.multi_gpu = True
        self.global_rank, self.local_rank, self.world_size = ctx.rank, ctx.local_rank, ctx.world_size
        if self.has_central_value:
            self.central_value_net.multi_gpu = True
        if ctx.rank != 0:
            self.writer.close()
            self.writer = None

    @property
    def modules(self) -> list[torch.nn.Module]:
        """The trained modules, normalisers included."""
        return [self.model, self.central_value_net.model] if self.has_central_value else [self.model]

    def values(self) -> dict[str, float]:
        """Return what RL-Games does not log: the mean standard deviation of the actions."""
        sigmas = self.experience_buffer.tensor_dict.get("sigmas")
        return {} if sigmas is None else {"info/action_std": sigmas.mean().item()}

    def train(self) -> Any:
        """Train to the last epoch."""
        if self._ctx.init_from is not None:
            vet_checkpoint(self._ctx.init_from, self._ctx.trust)
            weights = checkpoints.read(self._ctx.init_from, self._ctx.device)
            self.set_weights(weights)
            if self.has_central_value:
                self.set_central_value_function_weights(weights)
        self._ctx.resumed(self._save_for_comparison)
        self._on_start(self.epoch_num)
        self._first_epoch = self.epoch_num
        try:
            return super().train()
        finally:
            if self.writer is not None:
                self.writer.close()

    def update_epoch(self) -> int:
        """Count the epoch, and flush the last epoch's scalars, which TensorBoard would hold for two minutes."""
        if self._best is not None:  # train() resets last_mean_rewards
            self.last_mean_rewards, self._best = self._best, None
        if self.writer is not None:
            self.writer.flush()
        if self.epoch_num > self._first_epoch:
            self._ctx.iteration_finished(self._save_last)
        return super().update_epoch()

    def _save_last(self) -> None:
        """Write a checkpoint of the last epoch, named as RL-Games names its regular ones."""
        reward = self.game_rewards.get_mean()[0] if self.game_rewards.current_size else 0.0
        self.save(f"{self.nn_dir}/last_{self.config['name']}_ep_{self.epoch_num}_rew_{reward}")

    def train_epoch(self) -> Any:
        """Collect and learn; pool the normalisers' statistics, which RL-Games keeps per rank, over all ranks."""
        values = super().train_epoch()
        for module in self.modules:
            for part in module.modules():
                if hasattr(part, "running_var"):  # a RunningMeanStd; scripting hides its class
                    self._ctx.pool(part.running_mean, part.running_var)
        return values

    def save(self, fn: str) -> None:
        """Write a checkpoint, and rename it to its final name once it is complete."""
        write_whole(f"{fn}.pth", lambda part: super(_Recorded, self).save(part.removesuffix(".pth")))

    def restore(self, fn: str, set_epoch: bool = True) -> None:
        """Load a vetted checkpoint of any device."""
        self.set_full_state_weights(checkpoints.read(fn, self._ctx.device), set_epoch=set_epoch)

    def get_full_state_weights(self) -> dict[str, Any]:
        """Return the state to save: with the random state, and plain names that torch.compile has not changed.

        It holds only types that torch's weights-only reader accepts.
        """
        state = checkpoints.with_plain_names(super().get_full_state_weights())
        state["last_mean_rewards"] = float(state["last_mean_rewards"])
        state["random_state"] = random_state()
        return state

    def set_full_state_weights(self, weights: Any, set_epoch: bool = True) -> None:
        """Load a state, including the adapted learning rate, which RL-Games would reset."""
        super().set_full_state_weights(self._with_own_names(weights), set_epoch=set_epoch)
        self.last_lr = self.optimizer.param_groups[0]["lr"]
        self._best = self.last_mean_rewards
        if "random_state" in weights:
            restore_random_state(weights["random_state"])

    def set_weights(self, weights: Any) -> None:
        """Load the policy's weights, also into a compiled model."""
        super().set_weights(self._with_own_names(weights))

    def set_central_value_function_weights(self, weights: Any) -> None:
        """Load the central value function's weights, also into a compiled model."""
        super().set_central_value_function_weights(self._with_own_names(weights))

    def _save_for_comparison(self, path: str) -> None:
        state = self.get_full_state_weights()
        torch.save(checkpoints.with_names_in(self._ctx.checkpoint, state) if self._ctx.checkpoint else state, path)

    def _with_own_names(self, weights: Any) -> dict[str, Any]:
        """Return a state with the names of this algorithm's modules, which RL-Games compiles after a restore."""
        state = {**weights, "model": checkpoints.with_names(self.model.state_dict(), weights["model"])}
        if self.has_central_value:
            names = self.central_value_net.state_dict()
            state["assymetric_vf_nets"] = checkpoints.with_names(names, weights["assymetric_vf_nets"])
        return state


class ContinuousPpo(_Recorded, A2CAgent):
    """PPO for continuous actions."""


class DiscretePpo(_Recorded, DiscreteA2CAgent):
    """PPO for discrete actions."""


ALGORITHMS = {"a2c_continuous": ContinuousPpo, "a2c_discrete": DiscretePpo}
