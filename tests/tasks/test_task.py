"""A task to the kernel: its name, its module on disk, and its card."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import rlnb
from rlnb import options
from rlnb.simulation import card as cards
from rlnb.storage import files
from rlnb.tasks import cell, overrides

BODY = "import helpers_of_mine\n\nTASK = 1\n"
NOTEBOOK, OTHER_NOTEBOOK = "lift.ipynb", "it's another's.ipynb"
CARD: dict[str, Any] = {
    "task": "Demo",
    "fields": {
        "sim.dt": {"type": "float", "value": 0.005},
        "sim.device": {"type": "str", "value": "cpu"},
        "decimation": {"type": "int", "value": 2},
        "scene.replicate": {"type": "bool", "value": True},
        "viewer.eye": {"type": "list", "value": [1.0, 2.0]},
        "episode": {"type": "any", "value": None},
    },
    "presets": {"physics": ["newton_mjwarp", "physx"], "renderer": [], "presets": ["newton_mjwarp", "physx"]},
    "cameras": {},
    "agents": {},
    "assets": {
        "Robots/there.usd": {"path": "/pack/Robots/there.usd", "there": True},
        "Robots/remote.usd": {"path": "https://host/Robots/remote.usd", "there": None},
    },
    "asset_root": {"path": "/pack", "reason": "set for this run"},
    "versions": {},
}


def whats(problems: list[rlnb.Problem]) -> list[str]:
    return [problem.what for problem in problems]


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("Lift-Cube-RGB", "lift_cube_rgb.py"),
        ("lift cube", "lift_cube.py"),
        ("../../etc/passwd", "etc_passwd.py"),
        ("Lift.Cube:v2", "lift_cube_v2.py"),
    ],
)
def test_the_name_of_a_task_gives_the_name_of_its_module(root: Path, name: str, file: str) -> None:
    assert cell.module_path(options.folders, name) == root / "tasks" / file


def test_a_cell_becomes_a_module_that_is_not_executed(root: Path) -> None:
    body = "raise SystemExit('executed')\n"
    path = cell.write_module(options.folders, "Lift-Cube", body, NOTEBOOK)
    header, _, rest = path.read_text().partition("\n")
    assert rest == body
    assert header == "# rlnb task 'Lift-Cube' of 'lift.ipynb'"
    assert [child.name for child in path.parent.iterdir()] == ["lift_cube.py"]


def test_a_cell_that_is_no_python_writes_nothing(root: Path) -> None:
    with pytest.raises(SyntaxError) as caught:
        cell.write_module(options.folders, "Lift-Cube", "x = 1\ndef broken(:\n", NOTEBOOK)
    assert caught.value.lineno == 2
    assert caught.value.filename.endswith("lift_cube.py")
    assert not root.exists()


def test_a_syntax_error_leaves_the_module_of_before(root: Path) -> None:
    path = cell.write_module(options.folders, "Lift-Cube", BODY, NOTEBOOK)
    with pytest.raises(SyntaxError):
        cell.write_module(options.folders, "Lift-Cube", "def broken(:", NOTEBOOK)
    assert path.read_text().endswith(BODY)


def test_the_same_notebook_may_change_its_task(root: Path) -> None:
    cell.write_module(options.folders, "Lift-Cube", BODY, NOTEBOOK)
    path = cell.write_module(options.folders, "Lift-Cube", "TASK = 2\n", NOTEBOOK)
    assert path.read_text().endswith("TASK = 2\n")


@pytest.mark.parametrize(("holder", "other"), [(NOTEBOOK, OTHER_NOTEBOOK), (OTHER_NOTEBOOK, NOTEBOOK)])
def test_another_notebook_with_another_body_is_refused_and_told_who_holds_it(
    root: Path, holder: str, other: str
) -> None:
    path = cell.write_module(options.folders, "Lift-Cube", BODY, holder)
    with pytest.raises(rlnb.RlnbError, match="'Lift-Cube' is held by ") as caught:
        cell.write_module(options.folders, "Lift-Cube", "TASK = 2\n", other)
    assert holder in str(caught.value)
    assert str(path) in str(caught.value)
    assert path.read_text().endswith(BODY)


def test_another_notebook_with_the_same_body_is_welcome(root: Path) -> None:
    cell.write_module(options.folders, "Lift-Cube", BODY, NOTEBOOK)
    assert cell.write_module(options.folders, "Lift-Cube", BODY, OTHER_NOTEBOOK).read_text().endswith(BODY)


def test_two_names_that_share_a_module_are_refused(root: Path) -> None:
    cell.write_module(options.folders, "Lift-Cube", BODY, NOTEBOOK)
    with pytest.raises(rlnb.RlnbError, match="holds another task"):
        cell.write_module(options.folders, "lift cube", "TASK = 2\n", NOTEBOOK)


def test_a_task_of_a_cell_carries_its_module_and_hash(root: Path) -> None:
    path = cell.write_module(options.folders, "Lift-Cube", BODY, NOTEBOOK)
    task = rlnb.task("Lift-Cube", num_envs=8, overrides={"sim.dt": 0.01}, presets="physx")
    assert (task.source, task.source_sha256) == (str(path), sha256(path.read_text()))
    assert (task.num_envs, task.presets, task.overrides) == (8, ("physx",), {"sim.dt": 0.01})


def test_a_registered_task_has_no_module(root: Path) -> None:
    assert rlnb.task("Isaac-Cartpole-Direct") == rlnb.Task(id="Isaac-Cartpole-Direct")


def test_local_files_that_a_module_imports_or_names_are_found_and_hashed(root: Path) -> None:
    folder = root / "tasks"
    (folder / "meshes").mkdir(parents=True)
    texts = {
        "helpers_of_mine.py": "from second_of_mine import table\n",
        "second_of_mine.py": "import json\ntable = 'table.usda'\n",
        "table.usda": "#usda 1.0",
        "meshes/cube.obj": "v 0 0 0",
        "not_named.py": "",
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    body = "import json, torch\nimport helpers_of_mine\nCUBE = 'meshes/cube.obj'\nFAR = '/abs/cube.usd', '../up.usd'\n"
    cell.write_module(options.folders, "Lift-Cube", body, NOTEBOOK)
    named = ["helpers_of_mine.py", "meshes/cube.obj", "second_of_mine.py", "table.usda"]
    assert rlnb.task("Lift-Cube").files == {name: sha256(texts[name]) for name in named}


def test_modules_that_import_each_other_are_found_once(root: Path) -> None:
    (root / "tasks").mkdir(parents=True)
    (root / "tasks" / "helpers_of_mine.py").write_text("import lift_cube, helpers_of_mine\n")
    cell.write_module(options.folders, "Lift-Cube", BODY, NOTEBOOK)
    assert list(rlnb.task("Lift-Cube").files) == ["helpers_of_mine.py"]


@pytest.mark.parametrize("num_envs", [0, -1, 2.5, "8", True])
def test_a_number_of_envs_that_is_none_is_refused_with_every_other_problem(root: Path, num_envs: Any) -> None:
    with pytest.raises(rlnb.CheckError) as caught:
        rlnb.task("Echo", num_envs=num_envs, overrides={"sim.dt": object(), "fine": 1})
    assert whats(list(caught.value.problems))[0] == f"num_envs={num_envs!r} is not a positive whole number."
    assert "override 'sim.dt'" in caught.value.problems[1].what
    assert len(caught.value.problems) == 2


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
        ("sim.dt", None),
    ],
)
def test_a_value_that_fits_is_no_problem(path: str, value: Any) -> None:
    assert overrides.check_values({path: value}, CARD["fields"], "override") == []


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
def test_a_value_of_the_wrong_type_is_told_the_right_one(path: str, value: Any, kind: str) -> None:
    (problem,) = overrides.check_values({path: value}, CARD["fields"], "override of Demo")
    now = CARD["fields"][path]["value"]
    assert problem.what == f"override of Demo: {path} takes {kind} (now {now!r}), not {value!r}."
    assert problem.fix == f"Pass {'an' if kind == 'int' else 'a'} {kind}."


def test_a_path_that_does_not_exist_is_told_the_closest() -> None:
    (problem,) = overrides.check_values({"sim.dtt": 0.1}, CARD["fields"], "override of Demo")
    assert problem.what == "override of Demo: no config value 'sim.dtt'. Did you mean 'sim.dt'?"


def test_a_plus_adds_what_a_yaml_leaves_out() -> None:
    def found(path: str, takes_more: Sequence[str] = ("", "sim")) -> list[str]:
        problems = overrides.check_values({path: "new"}, CARD["fields"], "agent config", takes_more=takes_more)
        return [f"{problem.what} {problem.fix}" for problem in problems]

    assert found("+gamma") == found("+sim.gamma") == found("+sim.device") == []
    assert found("gamma") == ["agent config: no config value 'gamma'. Correct the path, or add it: '+gamma'."]
    assert "this config is a class, to which nothing can be added" in found("+gamma", ["sim"])[0]
    assert "sim is a class, to which nothing can be added" in found("+sim.gamma", [""])[0]
    assert found("+sim.empty.gamma", ["sim.empty"]) == []
    assert found("sim.dtt") == ["agent config: no config value 'sim.dtt'. Did you mean 'sim.dt'? Correct the path."]
    for nameless in ("", "+", "+sim.", "+.gamma"):
        assert found(nameless)[0].endswith("Correct the path."), nameless
    assert found("+sim.dt") == ["agent config: sim.dt takes float (now 0.005), not 'new'. Pass a float."], "it is there"
    assert "no config value 'sim.dt.of'. Did you mean 'sim.dt'?" in found("+sim.dt.of")[0]
    assert "It is a group" in found("+sim")[0]


def test_a_path_that_is_a_group_is_told_what_is_in_it() -> None:
    (problem,) = overrides.check_values({"sim": 1}, CARD["fields"], "override of Demo")
    assert "It is a group: sim.dt, sim.device" in problem.what


def test_selectors_that_the_task_does_not_have_are_told_those_it_has() -> None:
    task = rlnb.Task(id="Demo", physics="newton_mjwrap", renderer="rtx", presets=("physx", "phisx"))
    assert whats(overrides.check(task, CARD)) == [
        "physics='newton_mjwrap': Demo has newton_mjwarp, physx. Did you mean 'newton_mjwarp'?",
        "renderer='rtx': Demo has none.",
        "presets='phisx': Demo has newton_mjwarp, physx. Did you mean 'physx'?",
    ]


def test_selectors_and_overrides_that_fit_are_no_problem() -> None:
    task = rlnb.Task(id="Demo", physics="physx", presets=("newton_mjwarp",), overrides={"decimation": 4})
    assert overrides.check(task, CARD) == []


def test_an_asset_that_is_missing_is_named_with_its_path_and_the_fix() -> None:
    gone = {"Robots/gone.usd": {"path": "/pack/Robots/gone.usd", "there": False, "fix": "Make it."}}
    (problem,) = overrides.check(rlnb.Task(id="Demo"), {**CARD, "assets": {**CARD["assets"], **gone}})
    assert problem.what == "asset Robots/gone.usd is missing: /pack/Robots/gone.usd"
    assert problem.fix == "Make it. (The root was chosen because: set for this run.)"


def cache(task: rlnb.Task, card: dict[str, Any]) -> Path:
    path = cards.card_path(options.folders, task, None, None)
    assert path is not None
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write_once(path, card)
    return path


def test_a_cached_card_serves_the_same_source_only(root: Path, tmp_path: Path) -> None:
    asset = tmp_path / "there.usd"
    asset.touch()
    card = {**CARD, "assets": {"there.usd": {"path": str(asset), "there": True}}}
    cell.write_module(options.folders, "Demo", "TASK = 1\n", NOTEBOOK)
    task = rlnb.task("Demo")
    cache(task, card)
    assert cards.cached_card(options.folders, task, None, None) == card
    assert rlnb.task_card(rlnb.task("Demo", num_envs=7, overrides={"sim.dt": 1.0})) == card, "neither changes the card"
    assert cards.cached_card(options.folders, rlnb.task("Demo", physics="physx"), None, None) is None
    assert cards.cached_card(options.folders, task, None, "/elsewhere") is None
    assert cards.cached_card(options.folders, task, "/another/python", None) is None
    cell.write_module(options.folders, "Demo", "TASK = 2\n", NOTEBOOK)
    assert cards.cached_card(options.folders, rlnb.task("Demo"), None, None) is None
    asset.unlink()
    assert cards.cached_card(options.folders, task, None, None) is None, "an asset of it is gone"


def test_a_damaged_card_is_as_good_as_none(root: Path) -> None:
    task = rlnb.Task(id="Demo")
    path = cache(task, CARD)
    path.write_text(json.dumps(CARD)[:50])
    assert cards.cached_card(options.folders, task, None, None) is None


def test_a_card_of_another_version_of_rlnb_is_not_read(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = rlnb.task("Demo")
    before = cards.card_path(options.folders, task, None, None)
    monkeypatch.setattr(cards, "CARD_SCHEMA", cards.CARD_SCHEMA + 1)
    assert cards.card_path(options.folders, task, None, None) != before
