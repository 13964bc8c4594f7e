import hashlib

import pytest

import rlnb

BODY = "raise SystemExit('a task cell is never executed')\n"
NOTEBOOK = "lift.ipynb"
BROKEN = "x = 1\ny = (\nz = 2 2\n"


def test_a_cell_is_saved_under_its_name_and_not_executed(shell, root):
    result = shell.run_cell(f"%%task Lift-Cube\n{BODY}")
    assert result.success
    saved = (root / "tasks" / "lift_cube.py").read_text()
    assert saved.partition("\n")[2] == BODY
    assert NOTEBOOK in saved.partition("\n")[0]


def test_the_line_shows_path_and_hash_and_is_escaped(shell, root, capsys, monkeypatch):
    shown = []
    monkeypatch.setattr("rlnb.display.front_end.show_bundle", shown.append)
    shell.run_cell(f"%%task <script>alert(1)</script>\n{BODY}")
    path = root / "tasks" / "script_alert_1_script.py"
    page = shown[0]["text/html"]
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert str(path) in page
    assert hashlib.sha256(BODY.encode()).hexdigest()[:12] in page


def test_a_syntax_error_names_the_line_of_the_cell_and_nothing_is_written(shell, root, capsys):
    error = shell.run_cell(f"%%task Lift\n{BROKEN}").error_in_exec
    assert isinstance(error, rlnb.RlnbError)
    number = next(n for n, line in enumerate(f"%%task Lift\n{BROKEN}".splitlines(), 1) if line in str(error) and n > 1)
    out = capsys.readouterr().out
    assert out.startswith(f"RlnbError: %%task Lift, line {number}: SyntaxError: "), "nothing stands above it"
    assert not (root / "tasks").exists()
    with pytest.raises(rlnb.RlnbError, match=rf"'Lift' was not saved: .* \(line {number} of the cell\)"):
        rlnb.task("Lift")
    shell.run_cell("%%task Lift\nnew = 1\n")
    assert rlnb.task("Lift").source


def test_an_error_of_rlnb_is_shown_without_the_frames_of_rlnb(shell, root, capsys):
    shell.run_cell("import rlnb\nrlnb.train('Echo', library='echo', max_iterations=0)\n")
    out = capsys.readouterr().out
    assert out.startswith("CheckError: Echo with echo: 1 problem")
    assert "max_iterations=0 is not a positive whole number" in out
    assert "Traceback" not in out
    shell.run_cell("raise rlnb.WorkerError('/puck.py, line 3, in step: ValueError: no joint')")
    assert capsys.readouterr().out.startswith("/puck.py, line 3, in step: ValueError: no joint")


def test_the_line_of_an_error_is_not_taken_from_the_older_module(shell, capsys):
    shell.run_cell("%%task Lift\nold = 1\nold = 2\nold = 3\n")
    shell.run_cell("%%task Lift\nnew = 1\nnew = = 2\n")
    out = capsys.readouterr().out
    assert "new = = 2" in out
    assert "old" not in out


@pytest.mark.parametrize(
    ("line", "said"), [("", "has no name"), ("Lift Cube", "Did you mean 'Lift-Cube'"), ("--", "letter or digit")]
)
def test_an_invalid_name_is_refused(shell, root, line, said):
    error = shell.run_cell(f"%%task {line}\nx = 1\n").error_in_exec
    assert isinstance(error, rlnb.RlnbError)
    assert said in str(error)
    assert not (root / "tasks").exists()
