"""``%rlnb``: common commands for runs, without Python syntax."""

import socket
import sys
from pathlib import Path

import rlnb
from rlnb.protocol import requests
from rlnb.simulation import far, simulator


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
    assert "no living simulator" in capsys.readouterr().out
    sys.path.insert(0, str(Path(__file__).parents[1] / "rig"))
    from far_node import Node, interpreter

    python = interpreter(tmp_path)
    far.living(Node(), python, None).request(requests.Ping())
    near = simulator.living_process(python)
    near.request(requests.Ping())
    capsys.readouterr()
    shell.run_cell("%rlnb simulator")
    here, there = capsys.readouterr().out.splitlines()
    assert here.startswith(f"Simulator(idle, pid {near.pid}, ")
    assert there.startswith(f"Simulator(idle, local on {socket.gethostname()}, pid ")
    assert "takes no run" in str(shell.run_cell("%rlnb simulator now").error_in_exec)
    shell.run_cell("%rlnb simulator close")
    assert "no living simulator" in capsys.readouterr().out
    assert not rlnb.Catalog([root]).simulators()
    simulator.shut_down()


def test_options_and_filters_are_refused_with_the_call_that_takes_them(shell, root):
    assert "rlnb.report(...)" in str(shell.run_cell("%rlnb report --pdf").error_in_exec)
    assert "rlnb.runs(task='Echo')" in str(shell.run_cell("%rlnb runs Echo").error_in_exec)


def test_a_run_is_cancelled_by_a_part_of_its_id(shell, root):
    run = rlnb.train("Echo", library="echo", agent={"iteration_s": 0.2}, max_iterations=300)
    cancelled = shell.run_cell(f"%rlnb cancel {run.id[-6:]}").result
    assert [one.id for one in cancelled] == [run.id]
    assert isinstance(shell.run_cell("%rlnb show no-such-run").error_in_exec, rlnb.NotFoundError)
