"""One env that is kept between requests, which step it, read its rewards and change its terms."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any

from rlnb.errors import RlnbError
from rlnb.protocol.requests import Change, Debug, EnvData, Open, Replay, Rewards
from rlnb.worker.actions import actions
from rlnb.worker.isaac import isaaclab, kit, terms
from rlnb.worker.isaac.env import configured
from rlnb.worker.requests.debug import DebugEnv
from rlnb.worker.requests.replay import ReplayEnv


class TunerEnv:
    """Holds the env of the tuner or of the debugger."""

    def __init__(self) -> None:
        self._stack = contextlib.ExitStack()
        self._env: Any = None
        self._key: tuple[Any, ...] = ()
        self._prints: dict[str, str] = {}
        self._debugged: DebugEnv | None = None

    @property
    def is_open(self) -> bool:
        """Whether there is an env."""
        return self._env is not None

    def open(self, request: Open) -> Change:
        """Open the env of a task: swap terms of the kept env if that is enough, otherwise make a new env.

        Raises:
            RlnbError: The task is not manager-based, so it has no terms.
            ValueError: A term names something that does not exist. The env is unchanged.
        """
        start_s, task = time.monotonic(), request.task
        registered, env_cfg, _ = configured(task, None, seed=request.seed, device=request.device)
        if not hasattr(env_cfg, "rewards"):
            raise RlnbError(f"{task.id} is not manager-based: its rewards are code, not terms that could be tuned.")
        prints, key = terms.fingerprints(env_cfg), (task.id, request.device, task.launcher_args)
        sections = terms.changed(self._prints, prints) if self._env is not None and key == self._key else None
        resolved_s = time.monotonic()
        if sections:
            terms.swap(self._env.unwrapped, env_cfg, sections)
            how = f"{', '.join(sections)} swapped"
        elif sections is None:
            self.close()
            arguments = kit.arguments_of(env_cfg.sim.device, own=task.launcher_args)
            self._env = self._stack.enter_context(isaaclab.made(registered.gym_id, env_cfg, arguments))
            how = "new env"
        else:
            how = "the same env"
        self._key, self._prints, self._actions = key, prints, request.actions
        seconds = {"resolve": resolved_s - start_s, "change": time.monotonic() - resolved_s}
        if sections is None:
            self._env.reset(seed=request.seed)
        return Change(how=how, seconds=seconds)

    def advance(self, steps: int) -> Rewards:
        """Step the env; return the values of its reward terms.

        Raises:
            RlnbError: There is no env: another request needed the simulator.
        """
        import torch

        if self._env is None:
            raise RlnbError(
                "The env was closed: another request needed the simulator, or it was idle. Run rlnb.tune again."
            )
        raw = self._env.unwrapped
        with torch.inference_mode():
            for _ in range(steps):
                self._env.step(actions(raw, self._actions))
        rows = [dict(raw.reward_manager.get_active_iterable_terms(index)) for index in range(raw.num_envs)]
        terms = {name: tuple(row[name][0] for row in rows) for name in rows[0]}
        return Rewards(terms=terms, reward=tuple(sum(row[name][0] for name in row) for row in rows))

    def debug(self, request: Debug) -> EnvData:
        """Make the env of the debugger, and reset it."""
        return self._keep(lambda: DebugEnv.of(request, self._stack), request.seed)

    def replay(self, request: Replay) -> EnvData:
        """Make the env of a training, as it was at the first recorded step."""
        return self._keep(lambda: ReplayEnv.of_record(request, self._stack), None)

    def _keep(self, make: Callable[[], DebugEnv], seed: int | None) -> EnvData:
        self.close()
        try:
            self._debugged = make()
            self._env, self._key = self._debugged.env, ()
            return self._debugged.reset(seed)
        except BaseException:
            self.close()
            raise

    @property
    def debugged(self) -> DebugEnv:
        """The env of the debugger.

        Raises:
            RlnbError: There is no such env: another request needed the simulator.
        """
        if self._debugged is None:
            raise RlnbError(
                "The env was closed: another request needed the simulator, or it was idle. Run rlnb.debug again."
            )
        return self._debugged

    def close(self) -> None:
        """Close the env, if there is one."""
        stack, self._env, self._debugged, self._stack = self._stack, None, None, contextlib.ExitStack()
        stack.close()
