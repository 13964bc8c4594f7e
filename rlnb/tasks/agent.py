"""``task.agent()``: an agent config of a task for an RL library, before any value of the user."""

from __future__ import annotations

import dataclasses
import html
from collections.abc import Mapping
from dataclasses import dataclass

from rlnb.configs.agent import libraries_of
from rlnb.configs.card import DEFAULT_LIBRARY, GENERIC, AgentCard, TaskCard
from rlnb.display.table import table
from rlnb.errors import RlnbError, unknown
from rlnb.hooks import plugins
from rlnb.settings import options
from rlnb.spec import Json, Task
from rlnb.tasks.card_cache import card_of


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentConfig:
    """The agent config of a task for an RL library, with presets resolved. Shown as a table in a cell."""

    task: str
    """Id of the task."""
    library: str
    """Name of the library."""
    source: str
    """Origin of the config as text, e.g. ``"rsl_rl_cfg_entry_point of the task"``."""
    values: Mapping[str, Json]
    """Values by dotted path, as ``rlnb.train(agent=...)`` takes them."""
    others: tuple[str, ...] = ()
    """Names of the task's other agent configs for the library, as ``rlnb.train(agent=...)`` takes them."""

    def __str__(self) -> str:
        width = max(map(len, self.values), default=0)
        lines = [f"  {path:{width}}  {value!r}" for path, value in self.values.items()]
        return "\n".join([f"{self._title}:", *lines, *self._hint])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = [[path, repr(value)] for path, value in self.values.items()]
        hint = "".join(f"<p>{html.escape(line)}</p>" for line in self._hint)
        return table(["path", "value"], rows, caption=self._title) + hint

    @property
    def _title(self) -> str:
        return f"Agent config of {self.task} for {self.library}: {self.source}"

    @property
    def _hint(self) -> list[str]:
        return [f"Other agent configs of the task for {self.library}: {', '.join(self.others)}."] if self.others else []


def agent_config(
    task: Task, library: str | None, name: str | None, python: str | None, asset_root: str | None
) -> AgentConfig:
    """Return the agent config of a task, as :meth:`rlnb.Task.agent` does."""
    if library and not plugins.library(library).simulator:
        raise RlnbError(
            f"{library} is not a library for Isaac Lab, so {task.id} has no agent config for it. "
            f"Use another library, such as library={DEFAULT_LIBRARY!r}."
        )
    card = card_of(options.folders, task, python or options.python, asset_root or options.asset_root)
    library = library or card.default_library
    names = names_for(card, library)
    config = agent_of(card, library, name)
    if config is None or (name in card.named_agents and name not in names):
        raise unknown("agent config", name or library, names, has=f"{card.task} has for {library}")
    if config.error:
        raise RlnbError(f"The agent config of {library} ({config.source}) does not load: {config.error}")
    values = {path: field.value for path, field in config.fields.items()}
    others = tuple(other for other in names if agent_of(card, library, other) != config)
    return AgentConfig(task=card.task, library=library, source=config.source, values=values, others=others)


def agent_of(card: TaskCard, library: str, name: str | None) -> AgentCard | None:
    """Return an agent config of a task; None if the task has no such config for the library.

    Args:
        card: Card of the task.
        library: Name of the library.
        name: Name of the config, as in :attr:`rlnb.plugin.Manifest.agent_name`.
    """
    usual, spec = card.agents.get(library), plugins.libraries().get(library)
    if name is None or (name == GENERIC and usual is not None and usual.generic):
        return usual
    if spec is not None and name == spec.agent_key and name in card.registered_agents:
        return usual
    other = card.generic_agents.get(library) if name == GENERIC else card.named_agents.get(name)
    # A named config can be for several libraries, such as skrl and skrl_jax, whose requirements differ.
    return other if other is None or usual is None else dataclasses.replace(other, missing=usual.missing)


def names_for(card: TaskCard, library: str) -> list[str]:
    """Return the names by which ``agent=`` chooses an agent config of a task for a library."""
    libraries = plugins.libraries()
    key = libraries[library].agent_key if library in libraries else ""
    usual = [key] if key in card.registered_agents else []
    named = [name for name in card.named_agents if library in libraries_of(name, libraries)]
    return [*usual, *named, *([GENERIC] if agent_of(card, library, GENERIC) else [])]
