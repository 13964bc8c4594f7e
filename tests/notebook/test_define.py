"""``rlnb.define``: what ``%%task`` does, in places without magics."""

import subprocess
import sys
from pathlib import Path

import pytest

import rlnb
from rlnb.notebook import define

BODY = "raise SystemExit('a task is never executed here')\n"


def test_a_source_is_saved_as_a_task_like_a_cell(shell, root):
    task = rlnb.define("Lift-Cube", BODY)
    assert task == rlnb.task("Lift-Cube")
    of_define = (root / "tasks" / "lift_cube.py").read_text()
    shell.run_cell(f"%%task Lift-Cube\n{BODY}")
    assert (root / "tasks" / "lift_cube.py").read_text() == of_define
    assert task.source_sha256 == rlnb.task("Lift-Cube").source_sha256


def test_the_indentation_of_a_function_is_removed_and_a_file_is_read_as_it_is(root, tmp_path):
    rlnb.define(
        "Indented",
        """
        class Puck:
            mass_kg = 1.0
        """,
    )
    assert "\nclass Puck:\n    mass_kg = 1.0\n" in (root / "tasks" / "indented.py").read_text()
    file = tmp_path / "puck.py"
    file.write_text(BODY)
    rlnb.define("Of-A-File", file)
    assert (root / "tasks" / "of_a_file.py").read_text().endswith(BODY)


@pytest.mark.parametrize("name", ["manager-based", "direct", "direct-camera"])
def test_a_template_is_the_cell_that_the_documentation_prints(shell, root, name):
    """tests/site executes the page."""
    assert not shell.run_cell(f"%%task My-Task --template {name}").error_in_exec
    head, body = shell.rl_next_input.split("\n", 1)
    assert head == "%%task My-Task"
    page = (Path(__file__).parents[2] / "docs" / "scratch.md").read_text()
    assert f"\n{body}```" in page
    assert not (root / "tasks" / "my_task.py").exists()
    shell.run_cell(shell.rl_next_input)
    assert rlnb.define("My-Task", template=name) == rlnb.task("My-Task")
    assert (root / "tasks" / "my_task.py").read_text().endswith(body)


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("%%task", "has no name"),
        ("%%task Lift", "no source. %%task Name --template direct"),
        ("%%task --template direct", "has no name"),
        ("%%task Lift --template dirct", "Did you mean 'direct'"),
        ("%%task Lift --template direct\nx = 1", "would replace this cell"),
    ],
)
def test_a_cell_without_a_source_or_a_template_without_a_place_is_refused(shell, root, cell, said):
    assert said in str(shell.run_cell(cell).error_in_exec)
    assert not list((root / "tasks").glob("*.py"))


def test_a_magic_of_another_package_stays_a_cell_magic(shell):
    assert "run_cell_magic('tasks'" in shell.transform_cell("%%tasks x")
    assert "run_line_magic('task'" in shell.transform_cell("%%task x")


def test_a_definition_has_a_source_or_a_template(root):
    for arguments in ({}, {"source": BODY, "template": "direct"}):
        with pytest.raises(rlnb.RlnbError, match=r"a source or template="):
            rlnb.define("Lift", **arguments)


def test_a_syntax_error_names_the_line_of_the_source_and_the_older_version_is_refused(root):
    rlnb.define("Lift", "x = 1\n")
    with pytest.raises(rlnb.RlnbError, match=r"rlnb\.define Lift, line 2: SyntaxError"):
        rlnb.define("Lift", "x = 1\ny = = 2\n")
    with pytest.raises(rlnb.RlnbError, match=r"'Lift' was not saved: .* \(line 2 of the source\)"):
        rlnb.task("Lift")


@pytest.mark.parametrize(
    ("name", "source", "said"),
    [
        ("", BODY, r"has no name. Use rlnb.define\("),
        ("Lift Cube", BODY, "Did you mean 'Lift-Cube'"),
        ("--", BODY, "letter or digit"),
        ("Lift", "puck.py", r"Use Path\('puck.py'\)"),
        ("Lift", Path("no-such.py"), "cannot be read"),
        ("Lift", 3, "neither text nor a path"),
    ],
)
def test_wrong_arguments_are_refused(root, name, source, said):
    with pytest.raises(rlnb.RlnbError, match=said):
        rlnb.define(name, source)
    assert not (root / "tasks").exists()


def test_a_script_is_the_owner_of_its_tasks_and_prints_nothing(root, tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import rlnb\nrlnb.define('Puck', 'TASK = 1')\n")
    assert subprocess.run([sys.executable, script], capture_output=True, text=True, check=True).stdout == ""
    assert (root / "tasks" / "puck.py").read_text() == f"# rlnb task 'Puck' of {str(script)!r}\nTASK = 1\n"


def test_the_owner_is_the_notebook_that_the_front_end_names(monkeypatch, tmp_path):
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    monkeypatch.chdir(tmp_path)
    assert define.owner({}) == f"notebook in {tmp_path}"
    assert define.owner({"PAPERMILL_INPUT_PATH": "in.ipynb"}) == "in.ipynb"
    monkeypatch.setenv("JPY_SESSION_NAME", "lab.ipynb")
    assert define.owner({}) == "lab.ipynb"
    assert define.owner({"__vsc_ipynb_file__": "/home/me/code.ipynb"}) == "/home/me/code.ipynb"
