"""What a physics solver carries from one step to the next, beside positions and velocities."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlnb.records.incidents import CONSTRAINTS, CONTACTS, Shortage, write_shortage

if TYPE_CHECKING:
    import torch

NAMES = ("qacc_warmstart", "act")
"""Arrays of MuJoCo Warp's data: the accelerations at which its solver starts, and the states of actuators.

Newton clears them (``SolverMuJoCo.reset``) in envs whose state is written, and also the forces, which each step writes
anew."""


def solver_data(env: Any) -> Any:
    """Return the data of an env's MuJoCo Warp solver; None if it has another solver or engine.

    In release line 3.0, the solver is a private attribute of Isaac Lab's physics manager.
    """
    manager = getattr(getattr(env, "sim", None), "physics_manager", None)
    return getattr(getattr(manager, "_solver", None), "mjw_data", None)


def memory(env: Any) -> dict[str, torch.Tensor]:
    """Return views of the arrays that the solver of an env carries on, each of shape (num_envs, values).

    Another engine than Newton with MuJoCo Warp has nothing here: PhysX keeps its contacts to itself, and other solvers
    start each step afresh.
    """
    values = solver_data(env)
    if values is None:
        return {}
    import warp

    arrays = {name: getattr(values, name, None) for name in NAMES}
    return {name: warp.to_torch(array) for name, array in arrays.items() if array is not None and array.size}


def copied(env: Any) -> dict[str, torch.Tensor]:
    """Return copies of the arrays as the next step will find them: zeros in envs that were just reset.

    Isaac Lab notes these envs in a private mask of its physics manager, and clears their rows when the step begins.
    """
    import warp

    arrays, mask = memory(env), getattr(env.sim.physics_manager, "_world_reset_mask", None)
    if mask is None:
        return {name: value.clone() for name, value in arrays.items()}
    is_reset = warp.to_torch(mask)[: env.num_envs, None]
    return {name: value.masked_fill(is_reset, 0.0) for name, value in arrays.items()}


# -- contacts that are dropped ---------------------------------------------------------------------------------------
# MuJoCo Warp prints a line for each such env and step, which fills a disk in a long training of many envs. It also
# notes the limit in ``Data.overflow``, which is read here instead.


logger = logging.getLogger(__name__)

BITS = {CONSTRAINTS: 0b00011, CONTACTS: 0b11100}
"""Bits of ``mujoco_warp.OverflowType``: NEFC and NJMAX_NNZ; BROADPHASE, NARROWPHASE and CCD."""
OTHERS = {5: "HFIELD", 6: "CONTACT_MATCH", 7: "NVMAX", 8: "EPA_HORIZON"}
"""Names of the bits for which Isaac Lab has no setting. The two limits of iterations are normal in a training."""
LOOK_S = 2.0
"""Seconds between two looks at a training, since each waits for the device."""


@contextlib.contextmanager
def unprinted(env_cfg: Any) -> Iterator[None]:
    """Make models of MuJoCo Warp that print nothing about their limits. Enter this while an env is made.

    Args:
        env_cfg: Config of the env, resolved. With another solver, this does nothing.
    """
    solver_cfg = getattr(getattr(env_cfg.sim, "physics", None), "solver_cfg", None)
    if getattr(solver_cfg, "solver_type", "") != "mujoco_warp":
        yield
        return
    import mujoco_warp

    put_model = mujoco_warp.put_model

    def quiet(*args: Any, **kwargs: Any) -> Any:
        model = put_model(*args, **kwargs)
        if hasattr(model.opt, "warn_overflow"):  # of version 3.5 on
            model.opt.warn_overflow = False
        return model

    mujoco_warp.put_model = quiet
    try:
        yield
    finally:
        mujoco_warp.put_model = put_model


def look_for_shortages(env: Any) -> dict[str, Shortage]:
    """Return the limits that some envs have exceeded since their last reset, by name.

    Another engine than Newton with MuJoCo Warp has none that can be read.

    Args:
        env: The task's own env.
    """
    import warp

    data = solver_data(env)
    if getattr(data, "overflow", None) is None:
        return {}
    overflow = warp.to_torch(data.overflow)
    if not bool(overflow.any()):
        return {}
    num_envs = len(overflow)
    _tell_others(overflow)
    sizes = {CONSTRAINTS: data.njmax, CONTACTS: data.naconmax // num_envs}
    contacts = max(int(data.nacon.numpy()[0]), int(data.ncollision.numpy()[0]))
    needs = {CONSTRAINTS: int(data.nefc.numpy().max()), CONTACTS: -(-contacts // num_envs)}
    # The bits stay until an env is reset, but the counts are those of the last step, which may have needed less.
    return {
        limit: Shortage(
            limit=limit,
            size=sizes[limit],
            needed=max(needs[limit], sizes[limit] + 1),
            envs=envs,
            num_envs=num_envs,
        )
        for limit, bits in BITS.items()
        if (envs := int((overflow & bits).bool().sum()))
    }


def _tell_others(overflow: torch.Tensor) -> None:
    """Log each other limit once that an env has exceeded."""
    for bit, name in OTHERS.items():
        if name not in _told and bool((overflow & (1 << bit)).any()):
            _told.add(name)
            logger.warning("A limit of MuJoCo Warp was exceeded: OverflowType.%s. Contacts may be inexact.", name)


_told: set[str] = set()
"""Names of the other limits that were logged."""


class Shortages:
    """The limits that the envs of a training have exceeded.

    Args:
        env: The task's own env.
        path: File for the record; None only logs a warning.
    """

    def __init__(self, env: Any, path: Path | None) -> None:
        self._env, self._path = env, path
        self._known: dict[str, Shortage] = {}
        self._next_s = 0.0

    def attach(self) -> None:
        """Look after the env's steps, from now on."""
        step = self._env.step

        def stepped(action: Any) -> Any:
            outcome = step(action)
            if (now := time.monotonic()) >= self._next_s:
                self._next_s = now + LOOK_S
                self._look()
            return outcome

        if solver_data(self._env) is not None:
            self._env.step = stepped

    def _look(self) -> None:
        try:
            shortages = {**self._known}
            for limit, shortage in look_for_shortages(self._env).items():
                shortages[limit] = shortages[limit].joined(shortage) if limit in shortages else shortage
                if limit not in self._known:
                    logger.warning("%s %s", shortage.what, shortage.fix)
            if shortages != self._known and self._path is not None:
                write_shortage(self._path, shortages.values())
            self._known = shortages
        except Exception as exc:  # a failed look must not end a training
            logger.warning("The solver's limits are not looked at any more. %s: %s", type(exc).__name__, exc)
            self._next_s = float("inf")
