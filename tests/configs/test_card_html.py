"""A task and its card in a cell."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

import rlnb
from rlnb.configs.card import AgentCard, Asset, AssetRoot, CameraCard, ConfigField, Selectors, TaskCard, card_html
from rlnb.contracts.libraries import Space
from rlnb.errors import RlnbError
from rlnb.spec import Task
from rlnb.tasks import card_cache

CARD = TaskCard(
    task="Puck <1>",
    gym_id="Puck-v0",
    workflow="manager-based",
    num_envs=4096,
    fields={
        "decimation": ConfigField(type="int", value=2),
        "episode_length_s": ConfigField(type="float", value=5.0),
        "sim.dt": ConfigField(type="float", value=0.005),
        "rewards.alive.weight": ConfigField(type="float", value=1.5),
        "rewards.alive.params.scale": ConfigField(type="float", value=7.0),
        "actions.force.scale": ConfigField(type="float", value=100.0),
        "observations.policy.enable_corruption": ConfigField(type="bool", value=False),
        "observations.policy.position.scale": ConfigField(type="float", value=1.0),
        "observations.policy.position.history_length": ConfigField(type="int", value=0),
        "observations.policy.speed.scale": ConfigField(type="float", value=1.0),
        "terminations.time_out.time_out": ConfigField(type="bool", value=True),
        "events.reset_pole.mode": ConfigField(type="str", value="reset"),
    },
    observations={"policy": Space(kind="box", shape=(4,))},
    actions=Space(kind="box", shape=(1,)),
    presets=Selectors(physics=("newton_mjwarp", "physx")),
    cameras={"wrist": CameraCard(data_types=("rgb", "depth"), width=64, height=48)},
    agents={
        "rsl_rl": AgentCard(source="rsl_rl_cfg_entry_point of the task"),
        "skrl": AgentCard(missing=("skrl>=2",)),
        "sb3": AgentCard(error="no such class"),
    },
    assets={"hand.usd": Asset(path="/pack/hand.usd", exists=False, fix="rlnb assets build")},
    asset_root=AssetRoot(path="/pack"),
    versions={"isaaclab": "3.0.0"},
)


def rows(page: str) -> dict[str, str]:
    """Return the rows above the config values."""
    cells = re.findall(r"<tr><td[^>]*>(.*?)</td><td[^>]*>(.*?)</td></tr>", page.partition("<details>")[0])
    return dict(cells)


def test_a_card_of_a_cell_is_not_said_to_be_in_the_registry() -> None:
    card = dataclasses.replace(CARD, gym_id="rlnb-My-Pole-a091e7d3ac10")
    assert rows(card_html(card))["defined in"] == "your own code"


def test_a_card_shows_what_a_task_is() -> None:
    page = card_html(CARD)
    assert "<b>Puck &lt;1&gt;</b>" in page
    assert rows(page) == {
        "defined in": "Isaac Lab&#x27;s registry, as Puck-v0",
        "workflow": "manager-based",
        "envs": "4096",
        "episode": "5 s, 500 steps of 10 ms",
        "observation terms of &#x27;policy&#x27;": "position, speed",
        "action terms": "force",
        "sizes of terms": "known after the first preview, or rlnb.check(task, deep=True)",
        "reward terms": "alive 1.5",
        "terminations": "time_out",
        "events": "reset_pole",
        "observation &#x27;policy&#x27;": str(Space(kind="box", shape=(4,))),
        "action": str(Space(kind="box", shape=(1,))),
        "camera wrist": "rgb, depth, 64 x 48",
        "library rsl_rl (default)": "rsl_rl_cfg_entry_point of the task",
        "library skrl": "needs skrl&gt;=2 in the worker&#x27;s interpreter",
        "library sb3": "does not load: no such class",
        "physics=": "newton_mjwarp, physx",
        "assets": "1 file of /pack",
        "missing asset": "hand.usd. rlnb assets build",
        "Isaac Lab": "3.0.0",
    }
    assert "<summary>12 config values</summary>" in page
    assert page.count("rewards.alive.params.scale") == 1


def test_a_card_shows_the_sizes_of_terms_that_an_env_has_told() -> None:
    sizes = {"observations.policy": {"position": "3 x 64 x 64"}, "actions": {"force": "1"}}
    shown = rows(card_html(dataclasses.replace(CARD, term_sizes=sizes)))
    assert shown["observation terms of &#x27;policy&#x27;"] == "position 3 x 64 x 64, speed"
    assert shown["action terms"] == "force 1"
    assert "sizes of terms" not in shown


def test_a_card_is_a_few_lines_of_text_in_a_terminal() -> None:
    lines = repr(dataclasses.replace(CARD, success="x" * 5000)).splitlines()
    assert lines[0] == "Puck <1>"
    assert "  observation terms of 'policy': position, speed" in lines
    assert len(lines) < 25
    assert max(map(len, lines)) < 200


def test_the_changes_of_the_user_stand_beside_the_own_values() -> None:
    task = rlnb.Task(id="Puck", num_envs=64, physics="physx", overrides={"sim.dt": 0.01, "sim.dtt": 3})
    shown = rows(card_html(CARD, task))
    assert shown["envs"] == "64 (default: 4096)"
    assert shown["selected"] == "physics physx"
    assert shown["overrides"] == "sim.dt = 0.01 (default: 0.005), sim.dtt = 3 (the config has no such value)"
    assert shown["episode"] == "5 s, 250 steps of 20 ms"


def test_a_task_alone_in_a_cell_shows_its_card_or_why_it_has_none(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(card_cache, "card_of", lambda root, task, *_: dataclasses.replace(CARD, task=task.id))
    assert "<b>Puck-v0</b>" in rlnb.task("Puck-v0")._repr_html_()
    assert CARD._repr_html_() == card_html(CARD)

    def fails(root: object, task: Task, *_: object) -> TaskCard:
        raise RlnbError(f"No task named '{task.id}' <b>.")

    monkeypatch.setattr(card_cache, "card_of", fails)
    assert "No task named &#x27;Puck-v0&#x27; &lt;b&gt;." in rlnb.task("Puck-v0")._repr_html_()
    assert "without a simulator" in rlnb.task("Echo")._repr_html_()
