"""What a physics solver carries from one step to the next, beside positions and velocities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

NAMES = ("qacc_warmstart", "act")
"""Arrays of MuJoCo Warp's data: the accelerations at which its solver starts, and the states of actuators.

Newton clears them (``SolverMuJoCo.reset``) in envs whose state is written, and also the forces, which each step writes
anew."""


def data(env: Any) -> Any:
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
    values = data(env)
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
