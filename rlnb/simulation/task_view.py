"""A task as a cell shows it: its card, with the changes of the user."""

from __future__ import annotations

import html
from collections.abc import Iterator

from rlnb.configs.card import AgentCard, TaskCard
from rlnb.display.table import cell, table
from rlnb.errors import RlnbError
from rlnb.hooks import plugins
from rlnb.spec import Json, Task
from rlnb.tasks.card_cache import task_card


def html_of(task: Task) -> str:
    """Return the card of a task as HTML. It takes some seconds if the card is not cached and no simulator lives.

    A task that does not resolve, and one without Isaac Lab, is shown with the reason.
    """
    own = plugins.tasks().get(task.id)
    if own is not None and own.success is None:  # a plugin trains it without Isaac Lab
        return table(("", ""), [("task of", "a library without a simulator")], caption=task.id)
    try:
        card = task_card(task)
    except RlnbError as exc:
        return f"<b>{html.escape(task.id)}</b><pre>{html.escape(str(exc))}</pre>"
    return card_html(card, task)


def card_html(card: TaskCard, task: Task | None = None) -> str:
    """Return a task card as HTML.

    Args:
        card: The card.
        task: The task with the user's changes; None shows the card alone.
    """
    task = task or Task(id=card.task)
    rows = [*_definition(card, task), *_episode(card, task), *_contents(card), *_needs(card)]
    values = [(path, repr(field.value), field.type) for path, field in card.fields.items()]
    count = f"{len(values)} config values"
    return (
        table(("", ""), [row for row in rows if row[1]], caption=card.task)
        + f"<details><summary>{count}</summary>{table(('path', 'value', 'type'), values)}</details>"
    )


def _definition(card: TaskCard, task: Task) -> Iterator[tuple[str, str]]:
    yield "defined in", task.source or (f"Isaac Lab's registry, as {card.gym_id}" if card.gym_id else "")
    yield "workflow", card.workflow
    yield "envs", f"{task.num_envs} (own: {card.num_envs})" if task.num_envs else str(card.num_envs)
    selected = {"presets": ", ".join(task.presets), "physics": task.physics, "renderer": task.renderer}
    yield "selected", ", ".join(f"{name} {value}" for name, value in selected.items() if value)
    yield "overrides", ", ".join(_override(card, path, value) for path, value in task.overrides.items())


def _override(card: TaskCard, path: str, value: Json) -> str:
    field = card.fields.get(path)
    return f"{path} = {cell(value)} ({f'own: {cell(field.value)}' if field else 'the config has no such value'})"


def _episode(card: TaskCard, task: Task) -> Iterator[tuple[str, str]]:
    values = {path: field.value for path, field in card.fields.items()} | dict(task.overrides)
    length_s, dt_s, decimation = (values.get(path) for path in ("episode_length_s", "sim.dt", "decimation"))
    if isinstance(length_s, int | float) and isinstance(dt_s, int | float) and isinstance(decimation, int | float):
        step_s = dt_s * decimation
        yield (
            "episode",
            f"{length_s:g} s, {length_s / step_s:.0f} steps of {step_s * 1000:.3g} ms" if step_s > 0 else "",
        )
    weights = {path.split(".")[1]: value for path, value in values.items() if _is_weight(path)}
    yield "reward terms", ", ".join(f"{name} {cell(value)}" for name, value in weights.items())
    yield "success", card.success


def _is_weight(path: str) -> bool:
    return path.startswith("rewards.") and path.endswith(".weight") and path.count(".") == 2


def _contents(card: TaskCard) -> Iterator[tuple[str, str]]:
    for name, camera in card.cameras.items():
        yield f"camera {name}", f"{', '.join(camera.data_types)}, {camera.width} x {camera.height}"
    for name, agent in card.agents.items():
        default = " (default)" if name == card.default_library else ""
        yield f"library {name}{default}", _agent(agent)
    yield "physics=", ", ".join(card.presets.physics)
    yield "renderer=", ", ".join(card.presets.renderer)
    yield "presets=", ", ".join(card.presets.presets)


def _agent(agent: AgentCard) -> str:
    if agent.missing:
        return f"needs {', '.join(agent.missing)} in the worker's interpreter"
    return f"does not load: {agent.error}" if agent.error else agent.source


def _needs(card: TaskCard) -> Iterator[tuple[str, str]]:
    missing = {path: asset for path, asset in card.assets.items() if asset.exists is False}
    count = len(card.assets)
    yield "assets", f"{count} {'file' if count == 1 else 'files'} of {card.asset_root.path}" if count else ""
    for path, asset in missing.items():
        yield "missing asset", f"{path}. {asset.fix}"
    for place, asset in card.own_assets.items():
        if asset.fix:
            yield "missing asset", f"{asset.path} ({place}): {asset.fault or 'there is no such file'}. {asset.fix}"
    yield "needs Isaac Sim for", ", ".join(card.isaac_sim)
    yield "needs", ", ".join(card.missing)
    yield "Isaac Lab", card.versions.get("isaaclab", "")
    yield "warning", card.warning
