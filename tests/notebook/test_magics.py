"""``%rlnb``: common commands for runs, without Python syntax."""

from __future__ import annotations

import hashlib
import socket
import sys
from pathlib import Path

import pytest

import rlnb
from rlnb.launchers import RunIndex
from rlnb.protocol import requests
from rlnb.simulation.pool import pool


def test_verbs_act_on_the_newest_run_or_on_named_runs(shell, root, capsys):
    runs = [rlnb.train("Echo", library="echo", max_iterations=3, seed=seed).wait() for seed in range(2)]
    assert len(shell.run_cell("%rlnb runs").result) == 2
    assert shell.run_cell("%rlnb show").result.id == runs[1].id
    assert [run.id for run in shell.run_cell(f"%rlnb show {runs[0].id} {runs[1].id}").result] == [r.id for r in runs]
    capsys.readouterr()
    shell.run_cell(f"%rlnb logs {runs[0].id}")
    assert "iteration 2 of 3" in capsys.readouterr().out


def test_wrong_verbs_are_refused_with_the_valid_ones(shell, root, capsys):
    assert isinstance(shell.run_cell("%rlnb wach").error_in_exec, rlnb.NotFoundError)
    assert "Did you mean 'watch'" in str(shell.run_cell("%rlnb wach").error_in_exec)
    assert "no runs yet" in str(shell.run_cell("%rlnb watch").error_in_exec)
    shell.run_cell("%rlnb")
    assert "tensorboard" in capsys.readouterr().out


def test_the_simulators_of_the_kernel_say_where_they_are(shell, root, tmp_path, capsys):
    shell.run_cell("%rlnb simulator")
    assert "no warm simulator" in capsys.readouterr().out
    sys.path.insert(0, str(Path(__file__).parents[1] / "rig"))
    from far_node import Node, interpreter

    python = interpreter(tmp_path)
    pool.running(python, None, Node()).request(requests.Ping())
    near = pool.running(python)
    near.request(requests.Ping())
    capsys.readouterr()
    shell.run_cell("%rlnb simulator")
    here, there = capsys.readouterr().out.splitlines()
    assert here.startswith(f"Simulator(idle, pid {near.pid}, ")
    assert there.startswith(f"Simulator(idle, local on {socket.gethostname()}, pid ")
    assert "takes no run" in str(shell.run_cell("%rlnb simulator now").error_in_exec)
    shell.run_cell("%rlnb simulator close")
    assert "no warm simulator" in capsys.readouterr().out
    assert not RunIndex([root]).simulators()
    pool.shut_down()


def test_options_and_filters_are_refused_with_the_call_that_takes_them(shell, root):
    assert "rlnb.report(...)" in str(shell.run_cell("%rlnb report --pdf").error_in_exec)
    assert "rlnb.runs(task='Echo')" in str(shell.run_cell("%rlnb runs Echo").error_in_exec)


def test_a_run_is_cancelled_by_a_part_of_its_id(shell, root):
    run = rlnb.train("Echo", library="echo", agent={"iteration_s": 0.2}, max_iterations=300)
    cancelled = shell.run_cell(f"%rlnb cancel {run.id[-6:]}").result
    assert [one.id for one in cancelled] == [run.id]
    assert isinstance(shell.run_cell("%rlnb show no-such-run").error_in_exec, rlnb.NotFoundError)


# -- task magic ------------------------------------------------------------------------------------------------------


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
