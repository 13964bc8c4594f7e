"""The agent configs of a task: those of its registration and of its module, and the generic ones of plugins."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from rlnb.configs.agent import SUFFIX, libraries_of
from rlnb.configs.card import DEFAULT_LIBRARY, GENERIC
from rlnb.contracts.libraries import Library
from rlnb.errors import unknown
from rlnb.hooks import plugins
from rlnb.spec import Task
from rlnb.worker.isaac.isaaclab import Registered, selectors
from rlnb.worker.isaac.spaces import UNKNOWN_SPACES, TaskSpaces


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentOrigin:
    """The place that an agent config comes from."""

    kind: Literal["registered", "module", "generic"]
    """Whether the task's registration names the config, the task's module defines it, or the library's plugin does."""
    name: str
    """Entry point in the registration, key in the module's ``AGENTS``, or reference of the plugin's config."""
    fitted: Callable[[Any], Any] | None = field(default=None, compare=False)
    """Fits the plugin's config to the spaces of the task; None if the config is for any spaces."""
    pictures: tuple[str, ...] = field(default=(), compare=False)
    """Observations that are pictures, with their shapes, to which the plugin's config is fitted."""

    def __str__(self) -> str:
        """Return a description for people, which fits after "agent config:"."""
        texts = {
            "registered": f"{self.name} of the task",
            "module": f"AGENTS[{self.name!r}] of the task's module",
            "generic": f"the generic config of the library's plugin, {self.name}",
        }
        return texts[self.kind] + (f", fitted to {' and '.join(self.pictures)}" if self.pictures else "")


def origin_of(
    registered: Registered, library: Library, name: str | None = None, spaces: TaskSpaces = UNKNOWN_SPACES
) -> AgentOrigin | None:
    """Return the place that a library's agent config for a task comes from; None if there is no config.

    Args:
        registered: The task.
        library: The library.
        name: Name of the config, as in :attr:`rlnb.plugin.Manifest.agent_name`.
        spaces: Spaces of the task, for which a generic config may be made.
    """
    if name != GENERIC:
        key = name or library.agent_key
        if key in _keys(registered):
            return AgentOrigin(kind="registered", name=key)
        # Libraries with the same agent key, such as skrl and skrl_jax, share their agent configs.
        others = plugins.libraries().values() if library.agent_key else ()
        alike = [other.name for other in others if other.agent_key == library.agent_key]
        for candidate in (name,) if name else (library.agent_key, library.name, *alike):
            if candidate in registered.agents:
                return AgentOrigin(kind="module", name=candidate)
    if name in (None, GENERIC) and library.default_agent:
        fits = library.fitted_agent and spaces != UNKNOWN_SPACES
        fitted = functools.partial(plugins.fitted_agent, library, spaces) if fits else None
        pictures = [f"{name!r}, {space}" for name, space in spaces[0].items() if fits and space.is_picture]
        return AgentOrigin(kind="generic", name=library.default_agent, fitted=fitted, pictures=tuple(pictures))
    return None


def resolve(
    task: Task, registered: Registered, library: Library, name: str | None = None, spaces: TaskSpaces = UNKNOWN_SPACES
) -> Any:
    """Return a library's agent config for a task, with presets resolved; None if the library has none for it.

    Args:
        task: The task, for its presets.
        registered: As in :func:`origin_of`, like the other arguments.
        library: The library.
        name: Name of the config.
        spaces: Spaces of the task.

    Raises:
        NotFoundError: The task has no agent config with this name.
    """
    origin = origin_of(registered, library, name, spaces)
    if origin is None:
        if name:
            raise unknown("agent config", name, named_choices(registered), has=f"{task.id} has")
        return None
    return load(task, registered, origin)


def load(task: Task, registered: Registered, origin: AgentOrigin) -> Any:
    """Return the agent config at a place, with presets resolved."""
    if origin.kind == "registered":
        from isaaclab_tasks.utils import resolve_task_config

        return resolve_task_config(registered.gym_id, origin.name, overrides=selectors(task))[1]
    if origin.kind == "module":
        own = registered.agents[origin.name]
        return own() if callable(own) else copy.deepcopy(own)  # a run changes it, and a process has several
    config = plugins.agent_config(origin.name)
    return config if origin.fitted is None else origin.fitted(config)


def all_names(registered: Registered) -> list[str]:
    """Return the names of all agent configs that a task's registration or module brings."""
    return sorted({*_keys(registered), *registered.agents})


def named_choices(registered: Registered) -> Iterator[str]:
    """Yield the name of each agent config that ``agent=`` can choose, beside the usual ones of the libraries."""
    usual = {library.agent_key for library in plugins.libraries().values()} | plugins.libraries().keys()
    for key in all_names(registered):
        if key not in usual and libraries_of(key, plugins.libraries()):
            yield key


def needs_choice(registered: Registered, library: Library, origin: AgentOrigin) -> bool:
    """Return whether a user has to choose a config by name, as in :attr:`rlnb.configs.card.AgentCard.needs_choice`.

    A library that no registered task has a config for has only its plugin's config, which needs no choice.
    """
    import gymnasium

    if origin.kind != "generic" or not all_names(registered):
        return False
    return any(library.agent_key in (spec.kwargs or {}) for spec in gymnasium.registry.values())


def default_library(registered: Registered) -> str:
    """Return the installed library that the task's registration names as its default; RSL-RL if it names none."""
    import gymnasium

    name = gymnasium.spec(registered.gym_id).kwargs.get("default_agent")
    return name if name in plugins.libraries() else DEFAULT_LIBRARY


def _keys(registered: Registered) -> list[str]:
    """Return the keys of the agent configs in a task's registration, sorted."""
    import gymnasium

    kwargs = gymnasium.spec(registered.gym_id).kwargs
    return sorted(key for key in kwargs if key.endswith(SUFFIX) and key != f"env{SUFFIX}")
