"""The module of a ``%%task`` cell, its path and its owner, and the version that a call uses."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

import pytest

import rlnb
from rlnb import options
from rlnb.tasks import source
from rlnb.tasks.source import pinned, version_in_use
from rlnb.tasks.task import as_task

BODY = "import helpers_of_mine\n\nTASK = 1\n"
NOTEBOOK, OTHER_NOTEBOOK = "lift.ipynb", "it's another's.ipynb"


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
    assert source.module_path(options.folders, name) == root / "tasks" / file


def test_a_cell_becomes_a_module_that_is_not_executed(root: Path) -> None:
    body = "raise SystemExit('executed')\n"
    path = source.write_module(options.folders, "Lift-Cube", body, NOTEBOOK)
    header, _, rest = path.read_text().partition("\n")
    assert rest == body
    assert header == "# rlnb task 'Lift-Cube' of 'lift.ipynb'"
    assert [child.name for child in path.parent.iterdir()] == ["lift_cube.py"]


def test_a_cell_with_a_syntax_error_writes_nothing(root: Path) -> None:
    with pytest.raises(SyntaxError) as caught:
        source.write_module(options.folders, "Lift-Cube", "x = 1\ndef broken(:\n", NOTEBOOK)
    assert caught.value.lineno == 2
    assert caught.value.filename.endswith("lift_cube.py")
    assert not root.exists()


def test_a_syntax_error_keeps_the_previous_module(root: Path) -> None:
    path = source.write_module(options.folders, "Lift-Cube", BODY, NOTEBOOK)
    with pytest.raises(SyntaxError):
        source.write_module(options.folders, "Lift-Cube", "def broken(:", NOTEBOOK)
    assert path.read_text().endswith(BODY)


def test_the_same_notebook_may_change_its_task(root: Path) -> None:
    source.write_module(options.folders, "Lift-Cube", BODY, NOTEBOOK)
    path = source.write_module(options.folders, "Lift-Cube", "TASK = 2\n", NOTEBOOK)
    assert path.read_text().endswith("TASK = 2\n")


@pytest.mark.parametrize(("holder", "other"), [(NOTEBOOK, OTHER_NOTEBOOK), (OTHER_NOTEBOOK, NOTEBOOK)])
def test_the_newest_version_wins_and_that_of_another_notebook_is_kept(root: Path, holder: str, other: str) -> None:
    notices: list[str] = []
    source.write_module(options.folders, "Lift-Cube", BODY, holder, notices.append)
    path = source.write_module(options.folders, "Lift-Cube", "TASK = 2\n", other, notices.append)
    assert path.read_text().endswith("TASK = 2\n")
    (kept,) = (root / "tasks" / "history").glob("*/*.py")
    assert notices == [f"It replaces the version of {holder}, which is kept as {kept}."]
    assert kept.read_text().endswith(BODY)


def test_a_task_whose_cell_was_not_saved_is_refused_until_it_is(root: Path) -> None:
    source.write_module(options.folders, "Lift-Cube", BODY, NOTEBOOK)
    source.fail_cell(options.folders, "Lift-Cube", "invalid syntax (line 3 of the cell)")
    with pytest.raises(rlnb.RlnbError, match=r"'Lift-Cube' was not saved: invalid syntax \(line 3"):
        rlnb.task("Lift-Cube")
    assert rlnb.task("Other").id == "Other"
    source.write_module(options.folders, "Lift-Cube", BODY, NOTEBOOK)
    assert rlnb.task("Lift-Cube").source


def test_another_notebook_with_the_same_body_is_accepted(root: Path) -> None:
    source.write_module(options.folders, "Lift-Cube", BODY, NOTEBOOK)
    assert source.write_module(options.folders, "Lift-Cube", BODY, OTHER_NOTEBOOK).read_text().endswith(BODY)


def test_two_names_that_share_a_module_are_refused(root: Path) -> None:
    source.write_module(options.folders, "Lift-Cube", BODY, NOTEBOOK)
    with pytest.raises(rlnb.RlnbError, match="holds another task"):
        source.write_module(options.folders, "lift cube", "TASK = 2\n", NOTEBOOK)


# -- pinned ----------------------------------------------------------------------------------------------------------


MINE, THEIRS = "mine.ipynb", "theirs.ipynb"


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def run_cell(body: str, *, notebook: str = MINE, name: str = "Echo") -> Path:
    return source.write_module(options.folders, name, body, notebook)


def run_elsewhere(body: str, *, notebook: str = THEIRS, name: str = "Echo") -> None:
    """Save a module as another kernel does that runs a cell."""
    path = source.module_path(options.folders, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"# rlnb task {name!r} of {notebook!r}\n{body}")


def source_of(task: rlnb.Task) -> str:
    """Return the body of the module that a task names."""
    return Path(str(task.source)).read_text().partition("\n")[2]


def assert_records_what_ran(run: rlnb.Run, body: str) -> None:
    (copy,) = run.record.folder.source.glob("*.py")
    assert copy.read_text().partition("\n")[2] == body
    assert run.manifest.task.source_sha256 == sha256(body)
    assert run.config["source"] == sha256(body)[:7]


def test_an_edited_cell_is_trained_and_recorded_although_the_task_is_older(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_cell("x = 1\n")
    task = rlnb.task("Echo")
    first = rlnb.train(task, library="echo", max_iterations=1).wait()
    assert "has changed" not in capsys.readouterr().out
    run_cell("x = 2\n")
    second = rlnb.train(task, library="echo", max_iterations=1).wait()
    new = sha256("x = 2\n")[:7]
    told = f"Echo: the cell has changed since rlnb.task(...). The new version, {new}, is used.\n"
    assert capsys.readouterr().out.count(told) == 1
    assert_records_what_ran(first, "x = 1\n")
    assert_records_what_ran(second, "x = 2\n")
    assert rlnb.Runs([first, second]).diff().loc["source"].tolist() == [sha256("x = 1\n")[:7], new]
    again = rlnb.train(first.manifest.task, library="echo", max_iterations=1).wait()
    assert_records_what_ran(again, "x = 1\n")


def test_a_file_that_changes_after_the_check_is_not_the_one_that_is_copied(root: Path) -> None:
    path = run_cell("import helpers_of_mine\nx = 1\n")
    (path.parent / "helpers_of_mine.py").write_text("y = 1\n")
    task = as_task("Echo")
    path.write_text("x = 2\n")
    (path.parent / "helpers_of_mine.py").write_text("y = 2\n")
    run = rlnb.train(task, library="echo", max_iterations=1).wait()
    assert {copy.name: copy.read_text().partition("\n")[2] for copy in run.record.folder.source.iterdir()} == {
        "echo.py": "import helpers_of_mine\nx = 1\n",
        "helpers_of_mine.py": "",  # it has one line
    }
    assert (run.record.folder.source / "helpers_of_mine.py").read_text() == "y = 1\n"
    assert run.manifest.task.files == {"helpers_of_mine.py": sha256("y = 1\n")}
    assert run.config["source.helpers_of_mine.py"] == sha256("y = 1\n")[:7]


def test_a_kernel_uses_its_own_cell_and_says_that_another_notebook_has_replaced_it(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_cell("x = 1\n")
    run_elsewhere("x = 2\n")
    told = f"{THEIRS} has replaced {root / 'tasks' / 'echo.py'} since this kernel ran the task's cell"
    run = rlnb.train("Echo", library="echo", max_iterations=1).wait()
    assert capsys.readouterr().out.count(told) == 1
    assert_records_what_ran(run, "x = 1\n")
    assert source_of(as_task(rlnb.task("Echo"))) == "x = 1\n"
    assert told not in capsys.readouterr().out, "it is said once"
    run_elsewhere("x = 3\n")
    assert source_of(as_task("Echo")) == "x = 1\n"
    assert told in capsys.readouterr().out


def assert_a_private_copy_is_used(root: Path) -> None:
    run_elsewhere("x = 2\n")
    task = as_task("Echo")
    assert source_of(task) == "x = 1\n", "the printed line says that this kernel's version is used"
    folder = Path(str(task.source)).parent.parent
    assert not folder.is_relative_to(root)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert_records_what_ran(rlnb.train("Echo", library="echo", max_iterations=1).wait(), "x = 1\n")


def test_a_kernel_that_cannot_write_the_history_uses_a_copy_of_its_own(root: Path) -> None:
    run_cell("x = 1\n")
    (root / "tasks" / "history").touch()
    task = rlnb.task("Echo")
    assert_a_private_copy_is_used(root)
    assert as_task(task).source == as_task("Echo").source


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
def test_a_version_that_another_user_has_kept_is_copied_for_this_kernel(root: Path) -> None:
    path = run_cell("x = 1\n")
    theirs = source.keep_version(version_in_use(path, "Echo"))
    assert theirs is not None
    os.chown(theirs.parent, 65_534, 65_534)
    assert_a_private_copy_is_used(root)


def test_a_cell_that_a_cell_imports_is_this_kernels_own_too(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_cell("y = 1\n", name="Base")
    run_cell("import base\n")
    run_elsewhere("y = 2\n", name="Base")
    task = as_task("Echo")
    assert (Path(str(task.source)).parent / "base.py").read_text().partition("\n")[2] == "y = 1\n"
    assert task.files == {"base.py": sha256("y = 1\n")}
    assert f"{THEIRS} has replaced" in capsys.readouterr().out


def test_a_kernel_that_has_not_run_the_cell_keeps_the_version_that_it_has_named(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_elsewhere("x = 1\n", notebook=MINE)
    task = rlnb.task("Echo", num_envs=4)
    run_elsewhere("x = 2\n", notebook=THEIRS)
    assert source_of(as_task(task)) == "x = 1\n"
    assert f"{THEIRS} has replaced" in capsys.readouterr().out
    assert source_of(as_task("Echo")) == "x = 2\n"
    run_elsewhere("x = 3\n", notebook=THEIRS)
    of_theirs = rlnb.task("Echo")
    run_elsewhere("x = 4\n", notebook=THEIRS)
    assert source_of(as_task(of_theirs)) == "x = 4\n", "the same notebook has edited its cell"
    assert f"The new version, {sha256('x = 4' + chr(10))[:7]}, is used" in capsys.readouterr().out


def test_the_same_cell_has_the_same_hash_in_every_notebook(root: Path) -> None:
    run_elsewhere("x = 1\n", notebook=THEIRS)
    theirs = as_task("Echo")
    run_cell("x = 1")
    mine = as_task("Echo")
    assert mine.source_sha256 == theirs.source_sha256 == sha256("x = 1\n")
    assert mine.source != theirs.source, "each copy names its own notebook"


def test_the_copy_of_a_run_is_used_if_it_is_the_recorded_one(root: Path) -> None:
    run_cell("x = 1\n")
    run = rlnb.train("Echo", library="echo", max_iterations=1).wait()
    copy = run.record.folder.source / "echo.py"
    of_run = rlnb.Task(id="Echo", source=str(copy), source_sha256=run.manifest.task.source_sha256)
    of_old_run = rlnb.Task(id="Echo", source=str(copy), source_sha256=sha256(copy.read_text()))
    run_cell("x = 2\n")
    assert pinned(of_run) == of_run
    assert pinned(of_old_run) == of_run, "older versions hashed the header too"
    assert_records_what_ran(rlnb.train(of_run, library="echo", max_iterations=1).wait(), "x = 1\n")
    copy.write_text("x = 3\n")
    with pytest.raises(rlnb.RlnbError, match=rf"{copy} is not the recorded version: its sha256 is "):
        pinned(of_run)
    copy.unlink()
    with pytest.raises(rlnb.RlnbError, match=f"{copy}, which the task needs, cannot be read"):
        pinned(of_run)


def test_an_older_task_of_a_cell_that_could_not_be_saved_is_refused(root: Path) -> None:
    run_cell("x = 1\n")
    task = rlnb.task("Echo")
    source.fail_cell(options.folders, "Echo", "invalid syntax")
    with pytest.raises(rlnb.RlnbError, match="was not saved"):
        as_task(task)
