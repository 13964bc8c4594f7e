"""The values of an env step that the flight recorder keeps, with a name for each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from rlnb.worker.isaac import isaaclab

if TYPE_CHECKING:
    import torch

WIDEST = 1024
"""Largest number of values of an observation that is kept. Pictures are not."""
WRITERS = {
    "root_link_pose_w": ("write_root_link_pose_to_sim_index", "root_pose"),
    "root_com_vel_w": ("write_root_com_velocity_to_sim_index", "root_velocity"),
    "joint_pos": ("write_joint_position_to_sim_index", "position"),
    "joint_vel": ("write_joint_velocity_to_sim_index", "velocity"),
}
"""Method of an asset that sets a quantity, and the name of its argument."""
Kind = Literal["state", "action", "term", "reward", "observation", "alert"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """A tensor of a step, of shape (num_envs, width)."""

    kind: Kind
    """What the tensor is."""
    name: str
    """Its name, such as ``"robot.joint_pos"`` or ``"policy"``; empty if there is only one of its kind."""
    labels: tuple[str, ...]
    """Name of each value; empty if the values have no names."""
    width: int
    """Number of values for each env."""

    @property
    def key(self) -> str:
        """Name of the part's array in the record."""
        return f"{self.kind}/{self.name}" if self.name else self.kind

    def text(self, index: int) -> str:
        """Return the name of a value in words."""
        kind = {"term": "reward term"}.get(self.kind, self.kind)
        name = f" {self.name!r}" if self.name else ""
        label = f" of {self.labels[index]!r}" if self.labels else f" (index {index})" if self.width > 1 else ""
        return f"The {kind}{name}{label}"


class States:
    """The poses, velocities and joints of an env's robots and objects."""

    def __init__(self, env: Any) -> None:
        self._reads: list[tuple[Any, str]] = []
        self.parts: list[Part] = []
        scene = env.scene
        for name, asset in [*scene.articulations.items(), *scene.rigid_objects.items()]:
            if not getattr(asset, "is_fixed_base", False):
                self._add(asset, name, "root_link_pose_w", ("x", "y", "z", "qx", "qy", "qz", "qw"))
                self._add(asset, name, "root_com_vel_w", ("vx", "vy", "vz", "wx", "wy", "wz"))
            if joints := tuple(getattr(asset, "joint_names", ())):
                self._add(asset, name, "joint_pos", joints)
                self._add(asset, name, "joint_vel", joints)

    def _add(self, asset: Any, name: str, quantity: str, labels: tuple[str, ...]) -> None:
        self._reads.append((asset, quantity))
        self.parts.append(Part(kind="state", name=f"{name}.{quantity}", labels=labels, width=len(labels)))

    def read(self) -> list[torch.Tensor]:
        """Return the values, each of shape (num_envs, width)."""
        return [getattr(asset.data, quantity).torch for asset, quantity in self._reads]

    def write(self, values: Sequence[torch.Tensor]) -> None:
        """Set the values.

        Args:
            values: As :meth:`read` returns them.
        """
        for (asset, quantity), value in zip(self._reads, values, strict=True):
            writer, argument = WRITERS[quantity]
            getattr(asset, writer)(**{argument: value})


def leaves(value: Any, name: str = "") -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the tensors of a dict or tuple of tensors, or of dicts and tuples, with their names."""
    import torch

    if isinstance(value, Mapping | tuple | list):
        for key, inner in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from leaves(inner, f"{name}/{key}" if name else str(key))
    elif isinstance(value, torch.Tensor):
        yield name, value


def flat(tensors: Iterator[tuple[str, torch.Tensor]], num_envs: int) -> dict[str, torch.Tensor]:
    """Return the tensors that have a row for each env and are no pictures, each of shape (num_envs, width)."""
    rows = {name: value.reshape(num_envs, -1) for name, value in tensors if value.dim() and len(value) == num_envs}
    return {name: value for name, value in rows.items() if value.shape[1] <= WIDEST}


def outcome_parts(env: Any, outcome: Mapping[Kind, Mapping[str, torch.Tensor]]) -> list[Part]:
    """Return the description of what a step returned."""
    return [
        Part(kind=kind, name=name, labels=_labels(env, kind, name, value.shape[1]), width=value.shape[1])
        for kind, tensors in outcome.items()
        for name, value in tensors.items()
    ]


def _labels(env: Any, kind: Kind, name: str, width: int) -> tuple[str, ...]:
    """Return the observation term of each value of a group; empty if the env has no observation terms."""
    manager = getattr(env, "observation_manager", None) if kind == "observation" else None
    if manager is None or name not in manager.active_terms:
        return ()
    terms = zip(manager.active_terms[name], manager.group_obs_term_dim[name], strict=True)
    labels: list[str] = []
    for term, shape in terms:
        count = 1
        for size in shape:
            count *= size
        labels += [f"{term}[{index}]" for index in range(count)] if count > 1 else [term]
    return tuple(labels) if len(labels) == width else ()


def terms(env: Any) -> dict[str, torch.Tensor]:
    """Return the weighted reward terms of the last step, each of shape (num_envs, 1)."""
    return {name: value[:, None] for name, value in isaaclab.reward_terms(env).items()}


def place_of(values: torch.Tensor, *, env: int | None = None, nan: bool = False) -> dict[str, Any]:
    """Return the env, the index and the value of the first value that is not finite; empty if all are.

    Args:
        values: Shape (num_envs, values).
        env: The only env to look at; None looks at all.
        nan: Whether to look for nan only.
    """
    import torch

    bad = torch.isnan(values) if nan else ~torch.isfinite(values)
    places = bad.nonzero() if env is None else bad[env].nonzero().flatten()[:, None].expand(-1, 2)
    if not len(places):
        return {}
    index = int(places[0, 1])
    env = int(places[0, 0]) if env is None else env
    return {"env": env, "index": index, "value": float(values[env, index])}
