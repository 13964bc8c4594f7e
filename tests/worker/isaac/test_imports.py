"""Tasks of a user's own package, without an entry point, in real Isaac Lab on a CPU."""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

import rlnb
from rlnb import options
from rlnb.cli import app
from rlnb.records.arguments import resolved_configs
from rlnb.records.layout import RunDir
from rlnb.records.repetition import differences
from rlnb.simulation.pool import pool
from rlnb.storage.files import source_hash

pytestmark = [
    pytest.mark.isaaclab,
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(importlib.util.find_spec("isaaclab") is None, reason="isaaclab is not installed here"),
]
TASKS = """
import gymnasium
from isaaclab.utils import configclass
from isaaclab_tasks.core.cartpole.cartpole_direct_env_cfg import CartpoleEnvCfg

@configclass
class PuckCfg(CartpoleEnvCfg):
    episode_length_s = {length_s}

gymnasium.register(
    id="Puck-v0",
    entry_point="isaaclab_tasks.core.cartpole.cartpole_direct_env:CartpoleEnv",
    disable_env_checker=True,
    kwargs={{"env_cfg_entry_point": PuckCfg}},
)
"""


@pytest.fixture
def package(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Module ``tasks`` of a package that the worker can import and that has no entry point."""
    folder = tmp_path / "project" / "puck_project"
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "tasks.py").write_text(TASKS.format(length_s=1.0))
    (folder / "broken.py").write_text("import no_such_helper\n")
    monkeypatch.setenv("PYTHONPATH", f"{folder.parent}:{os.environ.get('PYTHONPATH', '')}")
    monkeypatch.setattr(options, "warm", True)
    yield folder / "tasks.py"
    pool.shut_down()


def test_a_package_without_an_entry_point_is_found_and_its_edits_are_used_at_once(package: Path) -> None:
    with pytest.raises(rlnb.RlnbError, match=r"No task named 'Puck-v0'.*need imports=\"my_project\.tasks\""):
        rlnb.task("Puck-v0").card()
    listed = CliRunner().invoke(app.app, ["tasks", "puck"])
    assert isinstance(listed.exception, SystemExit)
    for fix in ("--import my_project.tasks", 'rlnb.task("my_project.module:EnvCfg")'):
        assert fix in " ".join(listed.stderr.split())
    missing = "imports='no_such_project' is not a module of the worker's Python, .*: there is no 'no_such_project'"
    with pytest.raises(rlnb.RlnbError, match=missing):
        rlnb.task("Puck-v0", imports="no_such_project").card()
    with pytest.raises(rlnb.WorkerError, match=re.escape(f"{package.with_name('broken.py')}, line 1")):
        rlnb.task("Puck-v0", imports="puck_project.broken").card()
    task = rlnb.task("Puck-v0", imports="puck_project.tasks", num_envs=4)
    assert task.card().fields["episode_length_s"].value == 1.0
    with pytest.raises(rlnb.NotFoundError, match=r"imports='puck_project\.tasks' registered Puck-v0\."):
        rlnb.task("Puk-v0", imports="puck_project.tasks").card()
    pid = rlnb.simulator().pid
    package.write_text(TASKS.format(length_s=2.0))
    run = rlnb.train(task, max_iterations=1, device="cpu").wait(300)
    assert run.state == "completed"
    assert run.manifest.task.imports == ("puck_project.tasks",)
    assert resolved_configs(RunDir(run.path))["env.episode_length_s"] == 2.0
    assert run.started is not None
    assert run.started.sources["puck_project.tasks"] == source_hash(package.read_bytes())
    assert run.config["source.puck_project.tasks"] == source_hash(package.read_bytes())[:7]
    package.write_text(TASKS.format(length_s=3.0))
    assert task.card().fields["episode_length_s"].value == 3.0
    assert rlnb.simulator().pid != pid


def test_a_project_in_the_working_folder_need_not_be_installed(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONPATH")
    monkeypatch.chdir(package.parents[1])
    mark = Path("executed").absolute()
    for name in ("json", "prettytable", "torch"):  # which a library imports
        Path(f"{name}.py").write_text(f"open({str(mark)!r}, 'w')\n")
    named = rlnb.task("puck_project.tasks:PuckCfg", num_envs=4)
    assert rlnb.task("Puck-v0", imports="puck_project.tasks").card().fields["episode_length_s"].value == 1.0
    assert not mark.exists()
    pool.shut_down()
    Path.cwd().chmod(0o1777)
    missing = re.escape(f"The working folder {Path.cwd()} has it, but is not searched, because of all users, who can")
    with pytest.raises(rlnb.RlnbError, match=missing):
        named.card()


CELL_WITH_A_PACKAGE = """
from isaaclab_tasks.core.cartpole.cartpole_direct_env import CartpoleEnv
from prettytable.parts import OfCellCfg

TASK, ENV = OfCellCfg, CartpoleEnv
"""


def test_a_package_beside_a_cell_is_the_cells_alone(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options, "warm", False)
    package = root / "tasks" / "prettytable"  # which Isaac Lab imports too, with other contents
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    parts = TASKS.format(length_s=1.0).replace("PuckCfg", "OfCellCfg").partition("gymnasium.register")[0]
    (package / "parts.py").write_text(parts)
    task = rlnb.define("Own-Package", CELL_WITH_A_PACKAGE)
    run = rlnb.train(task, num_envs=4, max_iterations=1, device="cpu").wait(300)
    assert run.state == "completed"
    assert resolved_configs(RunDir(run.path))["env.episode_length_s"] == 1.0
    assert {*run.manifest.task.files} == {"prettytable/__init__.py", "prettytable/parts.py"}


def test_another_users_lock_keeps_no_one_from_training_with_several_ranks(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = tmp_path / "tmp"
    shared.mkdir()
    shared.chmod(0o1777)
    (shared / "isaaclab_usd_spawn.lock").mkdir()  # so that root, as whom the tests run, cannot open it either
    monkeypatch.setenv("TMPDIR", str(shared))
    run = rlnb.train("Isaac-Cartpole-Direct", num_envs=4, max_iterations=1, device="cpu", nproc_per_node=2, warm=False)
    assert run.wait(300).state == "completed"
    assert (shared / f"rlnb-{os.getuid()}-tmp" / "isaaclab_usd_spawn.lock").is_file()


CELL = """
from isaaclab.utils import configclass
from isaaclab_tasks.core.cartpole.cartpole_direct_env import CartpoleEnv
from isaaclab_tasks.core.cartpole.cartpole_direct_env_cfg import CartpoleEnvCfg
from puck_project.terms import LENGTH_S

@configclass
class OfCellCfg(CartpoleEnvCfg):
    episode_length_s = LENGTH_S

TASK, ENV = OfCellCfg, CartpoleEnv
"""


def test_an_edit_of_a_package_that_a_cell_imports_is_a_difference(package: Path) -> None:
    terms = package.with_name("terms.py")
    terms.write_text("LENGTH_S = 1.0\n")
    task = rlnb.define("Puck-Cell", CELL)
    first = rlnb.train(task, num_envs=4, max_iterations=1, device="cpu", warm=False).wait(300)
    assert first.started is not None
    assert first.started.sources == {
        "puck_project": source_hash(b""),
        "puck_project.terms": source_hash(b"LENGTH_S = 1.0\n"),
    }
    terms.write_text("LENGTH_S = 1.0  # the same number, so the configs are equal\n")
    again = first.rerun().wait(300)
    assert "source.puck_project.terms" in rlnb.Runs([first, again]).diff().index
    assert "Other versions of the files puck_project.terms." in differences(again.record)
