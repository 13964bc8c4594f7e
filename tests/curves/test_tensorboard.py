"""TensorBoard next to the kernel, for the event files of chosen runs."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request

import psutil
import pytest

import rlnb

FAST = {"library": "echo", "agent": {"iteration_s": 0.01}, "max_iterations": 3}


def asked(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return json.load(answer)


def test_it_shows_the_chosen_runs_by_their_ids_and_ends_when_closed(root):
    runs = [rlnb.train("Echo", **FAST, seed=seed).wait() for seed in range(2)]
    rlnb.train("Echo", **FAST, seed=2).wait()
    board = rlnb.Runs(runs).tensorboard(reload_s=1)
    deadline = time.monotonic() + 30
    while not (shown := asked(f"{board.url}data/runs")) and time.monotonic() < deadline:
        time.sleep(0.5)
    assert sorted(shown) == sorted(run.id for run in runs)
    tags = asked(f"{board.url}data/plugin/scalars/tags")
    assert "Train/mean_reward" in tags[runs[0].id]
    board.close()
    assert not board.alive
    assert "ended" in repr(board)


def test_it_listens_on_loopback_only_and_ends_with_its_kernel(root):
    code = """
import rlnb, time
run = rlnb.train('Echo', library='echo', agent={'iteration_s': 0.01}, max_iterations=3).wait()
board = run.tensorboard()
print(board.port, board._process.pid, flush=True)
time.sleep(600)
"""
    kernel = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=dict(os.environ))
    port, agent = map(int, kernel.stdout.readline().split())
    family = [psutil.Process(agent), *psutil.Process(agent).children(recursive=True)]
    pids = {process.pid for process in family}
    listening = [c for c in psutil.net_connections("tcp") if c.pid in pids and c.status == "LISTEN"]
    assert {c.laddr.ip for c in listening} <= {"127.0.0.1", "::1"}
    assert {c.laddr.port for c in listening} == {port}, "there is no second server, which any user could ask"
    kernel.send_signal(signal.SIGKILL)
    _, left = psutil.wait_procs(family, timeout=10)
    assert not left
    kernel.wait()


def test_in_a_report_it_is_a_line_of_text(root):
    run = rlnb.train("Echo", **FAST).wait()
    board = run.tensorboard()
    shown = board._repr_mimebundle_()
    assert shown["text/plain"] == f"TensorBoard of {run.id} ({board.url})"
    assert not [mime for mime in shown if "widget" in mime]
    board.close()


def test_no_run_and_a_wrong_interval_are_refused(root):
    with pytest.raises(rlnb.RlnbError, match=r"rlnb\.train"):
        rlnb.Runs([]).tensorboard()
    run = rlnb.train("Echo", **FAST).wait()
    with pytest.raises(rlnb.RlnbError, match="reload_s=0 is not a positive number"):
        run.tensorboard(reload_s=0)
    with pytest.raises(rlnb.RlnbError, match="reload_s=-1 is not a positive number"):
        rlnb.Runs([run]).tensorboard(reload_s=-1)
