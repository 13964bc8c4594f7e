"""What a user does to an env that is being stepped: pushes of its robots, and velocity commands that are held."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rlnb.errors import RlnbError, unknown
from rlnb.worker.isaac import isaaclab, release

if TYPE_CHECKING:
    import torch

COMPONENTS = ("lin_vel_x", "lin_vel_y", "ang_vel_z")
"""Components of a velocity command of Isaac Lab, in m/s and rad/s in the frame of the robot."""
LIMIT = 10.0
"""Largest component of a push, in m/s, and of a command, in m/s or rad/s."""

Ranges = Mapping[str, tuple[float, float]]
"""Range of each component of a command."""


class Controls:
    """Pushes the robots of an env and holds its velocity commands, in all envs.

    Args:
        env: The env, as gymnasium made it.
    """

    def __init__(self, env: Any) -> None:
        self._env = isaaclab.task_env(env)
        robots = getattr(self._env.scene, "articulations", {})
        self._robots = {name: robot for name, robot in robots.items() if not robot.is_fixed_base}
        self._commands = {
            name: VelocityCommand(term, ranges)
            for name, term in _terms(self._env)
            if (ranges := ranges_of(term)) is not None
        }
        names = ", ".join(repr(name) for name in robots)
        reason = f"The base of {names} is fixed" if names else "The task has no robot"
        self.no_push = "" if self._robots else f"{reason}, so a push has no effect."
        """Why no robot can be pushed; empty if one can."""

    @property
    def commands(self) -> Mapping[str, Ranges]:
        """Range from which the task samples each component of its velocity commands, by command."""
        return {name: command.ranges for name, command in self._commands.items()}

    def push(self, velocity: Sequence[float]) -> None:
        """Change the velocity of the base of each robot, as Isaac Lab's event ``push_by_setting_velocity``.

        Args:
            velocity: Change in the frame of the world, m/s: x and y, or x, y and z. One value is a speed, for which
                each env gets a random horizontal direction.

        Raises:
            RlnbError: No robot has a base that moves, or the velocity is not possible.
        """
        import torch

        if self.no_push:
            raise RlnbError(self.no_push)
        _check("The velocity of a push", velocity, (1, 2, 3), "Use (x, y) or (x, y, z), or one number for a speed.")
        change = torch.zeros((self._env.num_envs, 6), device=self._env.device)  # linear, then angular
        if len(velocity) == 1:
            angle = torch.rand(self._env.num_envs, device=self._env.device) * 2 * math.pi
            change[:, 0], change[:, 1] = velocity[0] * torch.cos(angle), velocity[0] * torch.sin(angle)
        else:
            change[:, : len(velocity)] = torch.tensor(velocity, device=self._env.device)
        for robot in self._robots.values():
            robot.write_root_com_velocity_to_sim_index(root_velocity=robot.data.root_com_vel_w.torch + change)

    def hold(self, name: str, value: Sequence[float] | None) -> None:
        """Hold a command from the next step on, whatever the task samples.

        Args:
            name: Name of the command.
            value: A value for each of :data:`COMPONENTS`; None lets the task sample the command again, at once.

        Raises:
            NotFoundError: The task has no velocity command of this name.
            RlnbError: The value is not possible.
        """
        if name not in self._commands:
            raise unknown("velocity command", name, self._commands, has="The task has")
        if value is not None:
            lengths = (len(COMPONENTS),)
            _check(f"The command {name!r}", value, lengths, f"Use ({', '.join(COMPONENTS)}).")
        self._commands[name].hold(value)


class VelocityCommand:
    """A velocity command that can be held.

    The value is written after each computation and reset of the command, which come before the observations of a step.
    So the policy, the rewards and the arrow of the command see it, also in an env that was sampled to stand still or to
    follow a heading.

    Args:
        term: Isaac Lab's ``UniformVelocityCommand``, or a class that is derived from it.
        ranges: Range of each component.
    """

    def __init__(self, term: Any, ranges: Ranges) -> None:
        self.ranges = ranges
        """Range from which the task samples each component."""
        self._term = term
        self._held: torch.Tensor | None = None
        term.compute, term.reset = self._then_held(term.compute), self._then_held(term.reset)

    def _then_held(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a method of the term that is followed by writing the held value."""

        @functools.wraps(function)
        def wrapped(*args: Any, **options: Any) -> Any:
            result = function(*args, **options)
            if self._held is not None:
                self._term.vel_command_b[:] = self._held
                self._term.is_standing_env[:] = False
                self._term.is_heading_env[:] = False
            return result

        return wrapped

    def hold(self, value: Sequence[float] | None) -> None:
        """Hold a value; None lets the task sample the command in its next step."""
        import torch

        if value is None and self._held is not None:
            self._term.time_left[:] = 0.0
        self._held = None if value is None else torch.tensor(value, device=self._term.device)


def _terms(env: Any) -> Iterator[tuple[str, Any]]:
    """Yield the name of each command and its term. Only a manager-based env has commands."""
    if (manager := getattr(env, "command_manager", None)) is not None:
        yield from ((name, manager.get_term(name)) for name in manager.active_terms)


def ranges_of(term: Any) -> Ranges | None:
    """Return the range from which a velocity command samples each component; None for another kind of command.

    A normal distribution has no range: three standard deviations beyond its mean take its place.
    """
    from isaaclab.envs import mdp

    if not isinstance(term, mdp.UniformVelocityCommand):
        return None
    ranges = term.cfg.ranges
    if isinstance(term, mdp.NormalVelocityCommand):  # each sign is as likely
        tops = [abs(mean) + 3 * std for mean, std in zip(ranges.mean_vel, ranges.std_vel, strict=True)]
        return {name: (-top, top) for name, top in zip(COMPONENTS, tops, strict=True)}
    if not all(hasattr(ranges, name) for name in COMPONENTS):  # of a class of the user's own
        return None
    return {name: (float(low), float(high)) for name in COMPONENTS for low, high in [getattr(ranges, name)]}


def _check(subject: str, values: Sequence[float], lengths: tuple[int, ...], fix: str) -> None:
    """Refuse values of a user that are too many, too few, not finite or too large."""
    if len(values) not in lengths:
        raise RlnbError(f"{subject} has {len(values)} values. {fix}")
    for value in values:
        if not abs(value) <= LIMIT:  # nan is refused too
            raise RlnbError(f"{subject} is {value:g}, which is not between {-LIMIT:g} and {LIMIT:g}.")


def viser_server(env: Any) -> Any:
    """Return the web server of an env's 3D view, see :func:`rlnb.worker.isaac.isaaclab.viser_visualizer`."""
    feature = "a 3D view"
    visualizers = isaaclab.task_env(env).sim.visualizers
    visualizer = next(one for one in visualizers if one.cfg.visualizer_type == "viser")
    return release.required(release.required(visualizer, "_viewer", feature), "_server", feature)
