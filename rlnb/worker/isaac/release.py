"""The installed release of Isaac Lab: whether rlnb can use it, and the private APIs that another release may lack."""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
import logging
import sys
from collections.abc import Callable
from typing import Any

from rlnb.errors import RlnbError
from rlnb.version import ISAACLAB_MAJOR, ISAACLAB_REQUIREMENT, belongs_to, untested

logger = logging.getLogger(__name__)

PACKAGES = frozenset(
    "isaaclab" + part
    for part in ("", "_assets", "_contrib", "_experimental", "_mimic", "_newton", "_ov", "_physx", "_ppisp", "_rl")
) | {"isaaclab_tasks", "isaaclab_tasks_experimental", "isaaclab_teleop", "isaaclab_visualizers"}
"""Packages of Isaac Lab."""
FORMER = (
    "isaaclab_tasks.manager_based",
    "isaaclab_tasks.direct",
    "AdditiveUniformNoiseCfg",
    "AdditiveGaussianNoiseCfg",
)
"""Modules and names of Isaac Lab 2.x that 3.0 does not have."""
OF_SCENES = ("clone_environments", "env_ns", "env_regex_ns")
"""Names of the scene of Isaac Lab 2.x, in which a direct env makes its robot itself."""
IN_SCENE = "Put robots into the scene's config: robot = ROBOT_CFG.replace(prim_path='{ENV_REGEX_NS}/Robot')."
OF_ISAAC_SIM = frozenset(("isaacsim", "omni", "carb"))
"""Packages of Isaac Sim, which every task for Isaac Lab 2.x could import."""
SCRIPT = "Code for Isaac Lab 2.x trains with its own script and interpreter: rlnb.train(script=..., python=...)."
FIX = f"Use `pip install '{ISAACLAB_REQUIREMENT}'`"


def installed() -> str:
    """Return the version of Isaac Lab in this interpreter; an empty string without it."""
    try:
        return importlib.metadata.version("isaaclab")
    except importlib.metadata.PackageNotFoundError:
        return ""


def check() -> None:
    """Refuse an Isaac Lab that rlnb cannot use, and log a warning about one that rlnb was not tested with.

    Raises:
        RlnbError: Isaac Lab is missing, or has another major version.
    """
    version = installed()
    if not version:
        raise RlnbError(f"isaaclab is not installed in {sys.executable}. {FIX}.")
    if not belongs_to(version, ISAACLAB_MAJOR):
        raise RlnbError(
            f"isaaclab {version} is installed in {sys.executable}, but rlnb needs {ISAACLAB_MAJOR}.x (Python 3.12). "
            f"{FIX}, or start a training script of that version with rlnb.train(script=...)."
        )
    if warning := untested(version):
        logger.warning("%s", warning)


def required(owner: Any, name: str, feature: str) -> Any:
    """Return a private API of Isaac Lab.

    Args:
        owner: The object that has the API as an attribute, or the name of its module.
        name: Name of the API.
        feature: The part of rlnb that needs it, a noun for the error.

    Raises:
        RlnbError: This release of Isaac Lab does not have the API.
    """
    label = f"{owner if isinstance(owner, str) else type(owner).__name__}.{name}"
    if isinstance(owner, str):
        owner = _module(owner)
    if not hasattr(owner, name):
        raise RlnbError(f"{label} is not in isaaclab {installed()}, and {feature} needs it. {FIX}.")
    return getattr(owner, name)


def require_argument(function: Callable[..., Any], name: str, feature: str) -> None:
    """Refuse a release of Isaac Lab in which a function does not have an argument that rlnb passes.

    Raises:
        RlnbError: The function does not have it. The arguments are those of :func:`required`.
    """
    if name not in inspect.signature(function).parameters:
        label = f"{function.__name__}({name}=)"
        raise RlnbError(f"{label} is not in isaaclab {installed()}, and {feature} needs it. {FIX}.")


def _module(name: str) -> Any:
    """Return a module; None if this release of Isaac Lab does not have it."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as exc:
        if exc.name is None or not belongs_to(name, exc.name):  # a package that the module imports is missing
            raise
        return None


def annotate(exc: BaseException) -> None:
    """Note on an error its likely cause, with the fix, if that is the release of Isaac Lab or a missing package."""
    if not isinstance(exc, AttributeError | ImportError | TypeError):
        return
    name = exc.name or "" if isinstance(exc, ModuleNotFoundError) else ""
    top = name.partition(".")[0]
    if isinstance(exc, ImportError) and "relative import" in str(exc):
        exc.add_note(
            "A cell is a module without a package. Import by the full name: `from my_package.tasks import mdp`."
        )
    elif former := next((part for part in FORMER if part in str(exc)), ""):
        exc.add_note(f"isaaclab {installed()} does not have {former}, a part of Isaac Lab 2.x. {SCRIPT}")
    elif isinstance(exc, AttributeError) and exc.name in OF_SCENES and type(exc.obj).__name__ == "InteractiveScene":
        exc.add_note(f"Isaac Lab 2.x had it. {IN_SCENE}")
    elif top in OF_ISAAC_SIM:
        exc.add_note(f"{name} is a part of Isaac Sim, which {sys.executable} does not have. {SCRIPT}")
    elif top and top not in PACKAGES:
        exc.add_note(
            f"The worker's Python, {sys.executable}, has no package {top!r}. Use pip to install it there, or add its "
            "folder to PYTHONPATH. Then call rlnb.simulator().restart()."
        )
    if warning := untested(installed()):
        exc.add_note(warning)
