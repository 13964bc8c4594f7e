"""What a task's registration, or a ``"module:attr"`` string of the user, names: found, or refused with the fix."""

from __future__ import annotations

import importlib
import inspect
import sys
from types import ModuleType
from typing import Any

from rlnb.errors import RlnbError, did_you_mean
from rlnb.hooks import plugins
from rlnb.worker.isaac import working_folder

CONFIG = "env_cfg_entry_point"
"""Key of a registration with the task's env config."""
INSTALL = (
    "Use pip to install your project there (pip install --editable .), or add its folder to PYTHONPATH. Then call "
    "rlnb.simulator().restart()."
)
"""The fix for a module of the user that the worker does not find."""


def check(gym_id: str) -> None:
    """Refuse a task whose registration names an env config that does not exist.

    Raises:
        RlnbError: The module or the class does not exist. An error inside the module is raised as it is.
    """
    import gymnasium

    reference = gymnasium.spec(gym_id).kwargs[CONFIG]
    if not isinstance(reference, str) or ":" not in reference or reference.endswith((".yaml", ".yml")):
        return
    name, _, attribute = reference.partition(":")
    where = f"The registration of {gym_id} has {CONFIG}={reference!r}"
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as exc:
        if not is_part(exc.name, name):
            raise  # a module that it imports is missing
        raise RlnbError(f"{where}, but there is no module {exc.name!r}. Correct the registration.") from exc
    if not hasattr(module, attribute):
        hint = _similar_class(attribute, module)
        raise RlnbError(f"{where}, but {name} has no {attribute!r}.{hint} Correct the registration.")


def load(reference: str) -> Any:
    """Return the object that a ``"module:attr"`` string of the user names.

    Raises:
        RlnbError: The module or the attribute does not exist.
    """
    name, _, attribute = reference.partition(":")
    try:
        return plugins.load(reference)
    except RlnbError as exc:
        cause, fix = exc.__cause__, working_folder.why_not(name)
        if isinstance(cause, ModuleNotFoundError) and is_part(cause.name, name):
            fix = f"{fix} {INSTALL}"
        elif isinstance(cause, AttributeError) and name in sys.modules:
            fix = f"{fix}{_similar_class(attribute, sys.modules[name])}"
        text = str(exc)
        raise RlnbError(f"{text}{'' if text.endswith('.') or not fix else '.'}{fix}") from exc


def env_of(reference: str, cfg: Any) -> Any:
    """Return the env with which a package has registered a config, which need not be in the config's module.

    Args:
        reference: The config as ``"module:class"``.
        cfg: The config itself.

    Returns:
        The entry point of the env; None if no registration has the config.
    """
    import gymnasium

    specs = gymnasium.registry.values()
    same = (spec for spec in specs if (spec.kwargs or {}).get(CONFIG) in (reference, cfg))
    return next((spec.entry_point for spec in same), None)


def is_part(part: str | None, name: str) -> bool:
    """Return whether a module is another one or a package around it."""
    return part is not None and f"{name}.".startswith(f"{part}.")


def _similar_class(name: str, module: ModuleType) -> str:
    return did_you_mean(name, [key for key, value in vars(module).items() if inspect.isclass(value)])
