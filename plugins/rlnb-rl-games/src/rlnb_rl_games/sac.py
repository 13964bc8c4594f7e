"""RL-Games' SAC with immediate logging, complete checkpoints, and the replay buffer beside each of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from rl_games.algos_torch.sac_agent import SACAgent

from rlnb import RlnbError
from rlnb.backend import (
    TrainContext,
    random_state,
    read_tensors,
    remove_older,
    restore_random_state,
    vet_checkpoint,
    write_tensors,
    write_whole,
)
from rlnb_rl_games.companions import BUFFER

BUFFERS = 2
"""Number of newest checkpoints that keep their replay buffer. The older of them serves if the newest is damaged."""
FIELDS = ("obses", "actions", "rewards", "next_obses", "dones")
"""Tensors of RL-Games' replay buffer."""
COUNTERS = "counters"
"""Name of the buffer's counters among the tensors of its file: the next row, and whether it is full."""


class _LastEpochError(Exception):
    """Ends RL-Games' loop, which would go on if no episode has ended yet."""


class Sac(SACAgent):
    """RL-Games' SAC, with rlnb's additions as overrides of public methods."""

    max_epochs: int
    save_freq: int
    rewards_shaper: Callable[[torch.Tensor], torch.Tensor]
    _first_epoch = 0
    _actor_info: Any = None

    def join(self, ctx: TrainContext, on_start: Callable[[int], None]) -> None:
        """Connect the algorithm to its training.

        Args:
            ctx: The context of the only rank.
            on_start: Called with the number of finished epochs before the first iteration.

        Raises:
            RlnbError: There are several ranks, which RL-Games' SAC does not synchronise.
        """
        if ctx.world_size > 1:
            raise RlnbError("RL-Games' SAC trains in one process. Use nproc_per_node=1.")
        self._ctx, self._on_start = ctx, on_start
        self._critic_losses: list[torch.Tensor] = []
        # RL-Games ends and saves only after an epoch by whose end an episode has ended. Here the next epoch does both.
        self._last_epoch, self.max_epochs = self.max_epochs, -1
        self._interval, self.save_freq = self.save_freq, 0
        # RL-Games adds up rewards after it has shaped them for learning. Their sum is not the return of an episode.
        shape, self.rewards_shaper = self.rewards_shaper, lambda rewards: rewards
        add = self.replay_buffer.add
        self.replay_buffer.add = lambda obs, actions, rewards, *others: add(obs, actions, shape(rewards), *others)

    @property
    def modules(self) -> list[torch.nn.Module]:
        """The trained modules, normaliser included."""
        return [self.model]

    def train(self) -> Any:
        """Train to the last epoch."""
        if self._ctx.init_from is not None:
            vet_checkpoint(self._ctx.init_from, self._ctx.trust)
            self.set_weights(_read(self._ctx.init_from, self._ctx.device))
        self._ctx.resumed(self._save_for_comparison)
        self._on_start(self.epoch_num)
        self._first_epoch = self.epoch_num
        try:
            return super().train()
        except _LastEpochError:
            return self.last_mean_rewards, self.epoch_num
        finally:
            self.writer.close()

    def train_epoch(self) -> Any:
        """Finish the last epoch, whose scalars are all written by now, and run the next one."""
        self.epoch_num -= 1
        if self.epoch_num > self._first_epoch:
            self.writer.flush()
            ends = self.epoch_num >= self._last_epoch
            if ends or (self._interval > 0 and self.epoch_num % self._interval == 0):
                self._save_last()
            self._ctx.iteration_finished(self._save_last)
            if ends:
                raise _LastEpochError
        self.epoch_num += 1
        return super().train_epoch()

    def update(self, step: int) -> Any:
        """Learn from a batch, and keep the mean loss of both critics."""
        info, first, second = super().update(step)
        self._critic_losses.append((first + second) / 2)
        return info, first, second

    def extract_actor_stats(
        self, actor_losses: Any, entropies: Any, alphas: Any, alpha_losses: Any, actor_loss_info: Any
    ) -> None:
        """Log the values of the last update of the policy, where RL-Games logs zeros for an update of the critics only.

        RL-Games fails if the first update of an epoch has a loss of the temperature and a later one has none.
        """
        if self.update_counter % self.policy_frequency == 0:
            self._actor_info = actor_loss_info
        super().extract_actor_stats(actor_losses, entropies, alphas, alpha_losses, self._actor_info or actor_loss_info)

    def save(self, fn: str) -> None:
        """Write a checkpoint, which gets its name once it is complete."""
        state = self.get_full_state_weights()
        write_whole(f"{fn}.pth", lambda part: torch.save(state, part))

    def restore(self, fn: str, set_epoch: bool = True) -> None:
        """Load a vetted checkpoint of any device, and the replay buffer beside it."""
        self.set_full_state_weights(_read(fn, self._ctx.device), set_epoch=set_epoch)
        self._read_buffer(Path(fn))

    def get_full_state_weights(self) -> dict[str, Any]:
        """Return the state to save: with the temperature, the counter of updates and the random state."""
        state = {**super().get_full_state_weights(), "log_alpha": self.log_alpha.detach()}
        state |= {"updates": self.update_counter, "last_mean_rewards": float(self.last_mean_rewards)}
        return {**state, "random_state": random_state()}

    def set_full_state_weights(self, weights: Any, set_epoch: bool = True) -> None:
        """Load a state. The logarithm of the temperature stays the parameter of its optimiser."""
        super().set_full_state_weights(weights, set_epoch=set_epoch)
        self.log_alpha.data.copy_(weights["log_alpha"])
        self.update_counter = weights["updates"]
        restore_random_state(weights["random_state"])

    def values(self) -> dict[str, float]:
        """Return what RL-Games does not log: the replay buffer's size, the learning rate, and the critics' loss."""
        values = {"info/buffer_size": float(self.buffer_size)}
        values["info/last_lr"] = float(self.actor_optimizer.param_groups[0]["lr"])
        if self._critic_losses:
            values["losses/critic_loss"] = torch.stack(self._critic_losses).mean().item()
            self._critic_losses.clear()
        return values

    @property
    def buffer_size(self) -> int:
        """Number of transitions in the replay buffer."""
        buffer = self.replay_buffer
        return int(buffer.capacity if buffer.full else buffer.idx)

    def _save_last(self) -> None:
        """Write a checkpoint of the last epoch, named as RL-Games names its regular ones, and its replay buffer."""
        reward = float(self.game_rewards.get_mean()) if self.game_rewards.current_size else 0.0
        path = Path(self.nn_dir) / f"last_{self.config['name']}_ep_{self.epoch_num}_rew_{reward}"
        self._write_buffer(path.with_name(f"{path.name}{BUFFER}"))
        self.save(str(path))
        remove_older(path.parent.glob(f"last_*{BUFFER}"), keep=BUFFERS)

    def _save_for_comparison(self, path: str) -> None:
        self._write_buffer(_buffer_of(Path(path)))
        torch.save(self.get_full_state_weights(), path)

    def _write_buffer(self, path: Path) -> None:
        """Write the replay buffer without its empty part."""
        buffer, rows = self.replay_buffer, self.buffer_size
        tensors = {name: getattr(buffer, name)[:rows] for name in FIELDS}
        write_tensors(path, {**tensors, COUNTERS: torch.tensor([buffer.idx, int(buffer.full)])})

    def _read_buffer(self, checkpoint: Path) -> None:
        path, buffer = _buffer_of(checkpoint), self.replay_buffer
        if not path.exists():
            raise RlnbError(
                f"{checkpoint.name} has no replay buffer beside it. The last {BUFFERS} checkpoints of a run have one. "
                "Resume from one of them, or start a new run from the weights with init_from=."
            )
        saved = read_tensors(path)  # on the CPU, since a GPU may not have room for the buffer twice
        index, full = saved.pop(COUNTERS).tolist()
        rows = len(saved["obses"])
        if rows > buffer.capacity or (full and rows != buffer.capacity):
            raise RlnbError(
                f"{path.name} has {rows} transitions of a full replay buffer, but params.config.replay_buffer_size is "
                f"{buffer.capacity}. Resume with the size of the run."
            )
        for name in FIELDS:
            getattr(buffer, name)[:rows].copy_(saved[name])
        buffer.idx, buffer.full = index, bool(full)


def _buffer_of(checkpoint: Path) -> Path:
    return checkpoint.with_name(f"{checkpoint.stem}{BUFFER}")


def _read(checkpoint: str | Path, device: str) -> dict[str, Any]:
    """Return the content of a vetted checkpoint on a device; RL-Games loads tensors to the device of their training."""
    state: dict[str, Any] = torch.load(checkpoint, map_location=device, weights_only=False)
    return state
