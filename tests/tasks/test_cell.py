"""The module of a ``%%task`` cell: its path and its owner."""

from __future__ import annotations

from pathlib import Path

import pytest

import rlnb
from rlnb import options
from rlnb.tasks import source

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
