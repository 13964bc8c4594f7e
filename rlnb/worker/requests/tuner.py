"""One env that lives from request to request: it is stepped, looked into, and its terms are changed."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from typing import Any

from rlnb.errors import RlnbError
from rlnb.spec import Task
from rlnb.worker.acting import actions
from rlnb.worker.isaac import isaaclab, terms
from rlnb.worker.isaac.env import configured


class Studio:
    """Holds a manager-based env."""

    def __init__(self) -> None:
        self._stack = contextlib.ExitStack()
        self._env: Any = None
        self._key: tuple[Any, ...] = ()
        self._prints: dict[str, str] = {}

    @property
    def is_open(self) -> bool:
        """Whether there is an env."""
        return self._env is not None

    def open(self, task: Task, request: Mapping[str, Any]) -> dict[str, Any]:
        """Have the env of a task: the living one with its terms swapped where that is enough, else a new one.

        Args:
            task: The task, with ``num_envs``.
            request: ``seed``, ``device``, ``asset_root`` and ``actions`` (``"random"`` or ``"zero"``).

        Returns:
            ``how`` it was had, in words; ``seconds`` that it took to ``resolve`` the config, and for the ``change``.

        Raises:
            RlnbError: The task is not manager-based: it has no terms.
            ValueError: A term names something that does not exist; the env is as it was.
        """
        begun = time.monotonic()
        isaaclab.start(request.get("asset_root"))
        registered, env_cfg, _ = configured(task, None, seed=int(request["seed"]), device=request["device"])
        if not hasattr(env_cfg, "rewards"):
            raise RlnbError(f"{task.id} is not manager-based: its rewards are code, not terms that could be tuned.")
        prints, key = terms.fingerprints(env_cfg), (task.id, request["device"])
        sections = terms.changed(self._prints, prints) if self._env is not None and key == self._key else None
        resolved = time.monotonic()
        if sections:
            terms.swap(self._env.unwrapped, env_cfg, sections)
            how = f"{', '.join(sections)} swapped"
        elif sections is None:
            self.close()
            self._env = self._stack.enter_context(isaaclab.made(registered.gym_id, env_cfg, env_cfg.sim.device))
            how = "new env"
        else:
            how = "the same env"
        self._key, self._prints, self._actions = key, prints, request["actions"]
        seconds = {"resolve": resolved - begun, "change": time.monotonic() - resolved}
        if sections is None:
            self._env.reset(seed=int(request["seed"]))
        return {"how": how, "seconds": seconds}

    def advance(self, steps: int) -> dict[str, Any]:
        """Step the env; return what its reward terms give.

        Returns:
            ``terms``: by name a value per env of the last step, weight included, per second. ``reward``: their sum.
            ``ended``: how many episodes ended meanwhile.

        Raises:
            RlnbError: There is no env: another request needed the simulator.
        """
        import torch

        if self._env is None:
            raise RlnbError("The env was closed, since something else needed the simulator. Run rlnb.tune again.")
        raw, ended = self._env.unwrapped, 0
        with torch.inference_mode():
            for _ in range(steps):
                _, _, terminated, truncated, _ = self._env.step(actions(raw, self._actions))
                ended += int((terminated | truncated).sum())
        rows = [dict(raw.reward_manager.get_active_iterable_terms(index)) for index in range(raw.num_envs)]
        found = {name: [row[name][0] for row in rows] for name in rows[0]}
        return {"terms": found, "reward": [sum(row[name][0] for name in row) for row in rows], "ended": ended}

    def close(self) -> None:
        """Close the env, if there is one."""
        stack, self._env, self._stack = self._stack, None, contextlib.ExitStack()
        stack.close()
