"""The runtimes of physics and renderers that a task needs, and whether the worker's interpreter has them."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator

from rlnb.errors import Problem
from rlnb.machine.packages import install_line
from rlnb.settings import options
from rlnb.spec import Task
from rlnb.storage import files
from rlnb.tasks.card import TaskCard

NEWTON = "from isaaclab_newton.physics import NewtonCfg"
WARP = "from isaaclab_newton.renderers import NewtonWarpRendererCfg"


def problems(task: Task, card: TaskCard, python: str | None = None) -> list[Problem]:
    """Return a problem for each runtime that the task needs and the interpreter does not have.

    Args:
        task: The task.
        card: Its card.
        python: Command of the worker's interpreter; None is that of ``rlnb.options``, or this one.
    """
    python = python or options.python
    found = [*_of_isaac_sim(task, card, python or sys.executable), *_of_ovphysx(task, card, python)]
    return [*found, *_of_soft_bodies(task, card, python or sys.executable)]


def tell_chosen(card: TaskCard) -> None:
    """Say once in a line which settings rlnb has made in place of Isaac Sim's."""
    if card.chosen:
        left = "its physics" if any("physics" in setting for setting in card.chosen) else "its renderer"
        chosen = " and ".join(card.chosen)
        files.warn_once(f"{card.task} leaves {left} to Isaac Sim, which is not installed. It runs with {chosen}.")


def _of_isaac_sim(task: Task, card: TaskCard, python: str) -> Iterator[Problem]:
    if not card.isaac_sim:
        return
    fixes, imports = [], []
    if any("physics" in part or "default" in part for part in card.isaac_sim):
        others = sorted((name for name in card.presets.physics if "physx" not in name), reverse=True)
        fixes.append(f"physics={others[0]!r}" if others else "sim.physics=NewtonCfg() in the task's config")
        imports += [] if others else [NEWTON]
    if any("renderer" in part for part in card.isaac_sim):
        others = [name for name in card.presets.renderer if "rtx" not in name]
        fixes.append(f"renderer={others[0]!r}" if others else "renderer_cfg=NewtonWarpRendererCfg() in its cameras")
        imports += [] if others else [WARP]
    fix = " and ".join(fixes) or f"fewer launcher_args than {', '.join(task.launcher_args)}"
    fix += f", with {'; '.join(imports)}" if imports else ""
    yield Problem(
        what=f"{task.id} needs Isaac Sim, which {python} does not have: it uses {', '.join(card.isaac_sim)}.",
        fix=f"{fix}, or python= with an interpreter that has Isaac Sim.",
    )


def _of_ovphysx(task: Task, card: TaskCard, python: str | None) -> Iterator[Problem]:
    if not card.missing:
        return
    isaacsim = "isaacsim" in card.versions
    preferred = ("isaacsim_physx", "newton_mjwarp") if isaacsim else ("newton_mjwarp",)
    other = next((name for name in preferred if name in card.presets.physics), None)
    fix = install_line("rlnb[physx]", python=python, isaacsim=isaacsim)
    yield Problem(
        what=f"{task.id} uses OvPhysX, which needs {' and '.join(card.missing)} in {python or sys.executable}.",
        fix=f"physics={other!r}, or {fix}" if other else fix,
    )


def _of_soft_bodies(task: Task, card: TaskCard, python: str) -> Iterator[Problem]:
    if card.requires:
        packages = " ".join(shlex.quote(requirement) for requirement in card.requires)
        yield Problem(
            what=f"{task.id} has a soft body that is cut into tetrahedra, which {python} has no package for.",
            fix=f"{python} -m pip install {packages}",
        )
