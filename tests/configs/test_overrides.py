"""Selectors, config values and assets of a task against its card."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import rlnb
from rlnb.configs.card import Asset, AssetRoot, ConfigField, Selectors, TaskCard
from rlnb.configs.checks import check_overrides, check_values
from rlnb.plugin import Problem

FIELDS = {
    "sim.dt": ConfigField(type="float", value=0.005),
    "sim.device": ConfigField(type="str", value="cpu"),
    "decimation": ConfigField(type="int", value=2),
    "scene.replicate": ConfigField(type="bool", value=True),
    "viewer.eye": ConfigField(type="list", value=[1.0, 2.0]),
    "episode": ConfigField(type="any"),
    "interval": ConfigField(type="str", value="auto"),
}
CARD = TaskCard(
    task="Demo",
    fields=FIELDS,
    presets=Selectors(physics=("newton_mjwarp", "physx"), presets=("newton_mjwarp", "physx")),
    assets={
        "Robots/there.usd": Asset(path="/pack/Robots/there.usd", exists=True),
        "Robots/remote.usd": Asset(path="https://host/Robots/remote.usd", exists=None),
    },
    asset_root=AssetRoot(path="/pack", reason="set for this run"),
)


def whats(problems: list[Problem]) -> list[str]:
    return [problem.what for problem in problems]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("sim.dt", 0.01),
        ("sim.dt", 1),
        ("decimation", 4),
        ("scene.replicate", False),
        ("sim.device", "cuda"),
        ("viewer.eye", [1]),
        ("viewer.eye", (1, 2)),
        ("episode", object()),
        ("episode", True),
        ("interval", 80),
        ("interval", 0.1),
        ("interval", "auto"),
        ("sim.dt", None),
    ],
)
def test_a_value_that_fits_is_no_problem(path: str, value: Any) -> None:
    assert check_values({path: value}, FIELDS, "override") == []


@pytest.mark.parametrize(
    ("path", "value", "kind"),
    [
        ("sim.dt", "abc", "float"),
        ("sim.dt", True, "float"),
        ("sim.dt", float("nan"), "float"),
        ("decimation", 2.5, "int"),
        ("decimation", True, "int"),
        ("scene.replicate", 1, "bool"),
        ("sim.device", 0, "str"),
        ("viewer.eye", "1,2", "list"),
    ],
)
def test_the_problem_of_a_wrong_type_names_the_right_one(path: str, value: Any, kind: str) -> None:
    (problem,) = check_values({path: value}, FIELDS, "override of Demo")
    now = FIELDS[path].value
    assert problem.what == f"override of Demo: {path} takes {kind} (now {now!r}), not {value!r}."
    assert problem.fix == f"Pass {'an' if kind == 'int' else 'a'} {kind}."


def test_the_problem_of_an_unknown_path_names_the_closest() -> None:
    (problem,) = check_values({"sim.dtt": 0.1}, FIELDS, "override of Demo")
    assert problem.what == "override of Demo: no config value 'sim.dtt'. Did you mean 'sim.dt'?"


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("params.config.seq_lenght", "params.config.seq_length"),
        ("param.config.seq_length", "params.config.seq_length"),
        ("params.config.use_diagnostics", None),
        ("agent.experiment.wandb", None),
        ("agent.experiments.directory", "agent.experiment.directory"),
        ("agent.directory", None),
    ],
)
def test_a_path_is_suggested_only_if_it_is_likely(path: str, meant: str | None) -> None:
    names = ("params.config.seq_length", "params.config.device", "agent.experiment.directory")
    fields = {name: ConfigField(type="str", value="") for name in names}
    (problem,) = check_values({path: 1}, fields, "agent config", takes_more=["agent.experiment"])
    assert problem.what == f"agent config: no config value {path!r}." + (f" Did you mean {meant!r}?" if meant else "")
    assert (problem.fix == f"Correct the path, or add it: '+{path}'.") == path.startswith("agent.experiment.")


def test_a_value_without_a_default_may_become_a_group() -> None:
    rnd = {
        "weight": ConfigField(type="float", value=0.0),
        "schedule.mode": ConfigField(type="str", value="constant"),
        "function": ConfigField(type="any", required=True),
    }
    fields = {"algorithm.rnd_cfg": ConfigField(type="any"), **FIELDS}
    openings = {"algorithm.rnd_cfg": rnd, "groups": {}}

    def found(**values: Any) -> list[str]:
        paths = {name.replace("__", "."): value for name, value in values.items()}
        problems = check_values(paths, fields, "agent config", openings=openings)
        return [f"{problem.what} {problem.fix}" for problem in problems]

    assert found(algorithm__rnd_cfg=None, groups__actor=["policy"], groups__critic=["policy"]) == []
    assert found(algorithm__rnd_cfg__weight=1, algorithm__rnd_cfg__function="m:f") == []
    assert found(algorithm__rnd_cfg__weight="x", algorithm__rnd_cfg__schedule__mod="step") == [
        "agent config, algorithm.rnd_cfg: weight takes float (now 0.0), not 'x'. Pass a float.",
        "agent config, algorithm.rnd_cfg: no config value 'schedule.mod'. Did you mean 'schedule.mode'? "
        "Correct the path.",
        "agent config, algorithm.rnd_cfg: function has no default. Pass algorithm.rnd_cfg.function too.",
    ]


def test_a_plus_adds_a_value_that_the_config_lacks() -> None:
    def found(path: str, takes_more: Sequence[str] = ("", "sim")) -> list[str]:
        problems = check_values({path: "new"}, FIELDS, "agent config", takes_more=takes_more)
        return [f"{problem.what} {problem.fix}" for problem in problems]

    assert found("+gamma") == found("+sim.gamma") == found("+sim.device") == []
    assert found("gamma") == ["agent config: no config value 'gamma'. Correct the path, or add it: '+gamma'."]
    assert "this config is a class, to which nothing can be added" in found("+gamma", ["sim"])[0]
    assert "sim is a class, to which nothing can be added" in found("+sim.gamma", [""])[0]
    assert found("+sim.empty.gamma", ["sim.empty"]) == []
    assert found("sim.dtt") == [
        "agent config: no config value 'sim.dtt'. Did you mean 'sim.dt'? Correct the path, or add it: '+sim.dtt'."
    ]
    for nameless in ("", "+", "+sim.", "+.gamma"):
        assert found(nameless)[0].endswith("Correct the path."), nameless
    assert found("+sim.dt") == ["agent config: sim.dt takes float (now 0.005), not 'new'. Pass a float."], "it exists"
    assert "no config value 'sim.dt.of'. Did you mean 'sim.dt'?" in found("+sim.dt.of")[0]
    assert "It is a group" in found("+sim")[0]


def test_the_problem_of_a_group_lists_its_values() -> None:
    (problem,) = check_values({"sim": 1}, FIELDS, "override of Demo")
    assert "It is a group: sim.dt, sim.device" in problem.what


def test_the_problem_of_an_unknown_selector_lists_the_valid_ones() -> None:
    task = rlnb.Task(id="Demo", physics="newton_mjwrap", renderer="rtx", presets=("physx", "phisx"))
    assert whats(check_overrides(task, CARD)) == [
        "physics='newton_mjwrap': Demo has newton_mjwarp, physx. Did you mean 'newton_mjwarp'?",
        "renderer='rtx': Demo has none.",
        "presets='phisx': Demo has newton_mjwarp, physx. Did you mean 'physx'?",
    ]


def test_selectors_and_overrides_that_fit_are_no_problem() -> None:
    task = rlnb.Task(id="Demo", physics="physx", presets=("newton_mjwarp",), overrides={"decimation": 4})
    assert check_overrides(task, CARD) == []


def test_an_asset_that_is_missing_is_named_with_its_path_and_the_fix() -> None:
    missing = {"Robots/gone.usd": Asset(path="/pack/Robots/gone.usd", exists=False, fix="Make it.")}
    card = dataclasses.replace(CARD, assets={**CARD.assets, **missing})
    (problem,) = check_overrides(rlnb.Task(id="Demo"), card)
    assert problem.what == "asset Robots/gone.usd is missing: /pack/Robots/gone.usd"
    assert problem.fix == "Make it. (The root was chosen because: set for this run.)"


def test_launcher_arguments_of_a_task_made_by_hand_are_checked() -> None:
    task = rlnb.Task(id="Demo", launcher_args={"device": "cpu", "livestream": 2})
    (problem,) = check_overrides(task, CARD)
    assert problem.fix == "Use rlnb.train(device=...)."


def test_selectors_that_cannot_be_checked_are_refused_with_the_reason_and_other_tasks_are_not() -> None:
    reason = "isaaclab 3.1.0 has no presets.enumerate_presets, which the check needs."
    card = dataclasses.replace(CARD, presets=Selectors(error=reason))
    problems = check_overrides(rlnb.Task(id="Demo", physics="physx", presets=("fast",)), card)
    assert whats(problems) == [f"physics='physx': {reason}", f"presets='fast': {reason}"]
    assert problems[0].fix == "Leave physics out."
    assert check_overrides(rlnb.Task(id="Demo", overrides={"sim.dt": 0.01}), card) == []


def test_a_file_that_overrides_replace_is_not_checked_and_the_new_one_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = "scene.robot.spawn.usd_path"
    own = {place: Asset(path="/nowhere/robot.usd", exists=False, fix="Correct the path.", places=(place,))}
    below = {"robot.usd": Asset(path="/pack/robot.usd", exists=False, places=(place, "scene.other.spawn.usd_path"))}
    fields = {place: ConfigField(type="str"), "scene.other.spawn.usd_path": ConfigField(type="str")}
    (tmp_path / "robot.usd").touch()

    def found(card: TaskCard, *values: str) -> list[str]:
        task = rlnb.Task(id="Demo", overrides=dict(zip(fields, values, strict=False)))
        return whats(check_overrides(task, dataclasses.replace(card, fields=fields)))

    here, gone = str(tmp_path / "robot.usd"), str(tmp_path / "gone.usd")
    missing = f"Demo: {place} is '/nowhere/robot.usd': there is no such file."
    with_own, with_below = dataclasses.replace(CARD, own_assets=own), dataclasses.replace(CARD, assets=below)
    assert found(with_own) == [missing]
    assert found(with_own, here) == found(with_own, "https://host/robot.usd") == []
    assert found(with_own, gone) == [f"override of Demo: {place} is {gone!r}: there is no such file."]
    added = rlnb.Task(id="Demo", overrides={f"+{place}": gone})
    assert f"override of Demo: {place} is {gone!r}: there is no such file." in whats(check_overrides(added, with_own))
    with monkeypatch.context() as patch:
        patch.setattr(rlnb.options, "simulator", rlnb.local())
        assert found(with_own, gone) == [], "the files are those of another machine"
    assert found(with_below, here, here) == []
    assert found(with_below, here) == ["asset robot.usd is missing: /pack/robot.usd"], "another place still names it"
