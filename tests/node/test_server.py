"""A server that runs alongside a kernel ends with the kernel."""

from __future__ import annotations

import subprocess
import sys

import psutil

WAIT_S = 20.0
SIDECAR = [sys.executable, "-m", "rlnb.node", "--sidecar"]


def test_the_server_and_its_children_end_with_the_kernel() -> None:
    code = "import subprocess, time; print(subprocess.Popen(['sleep', '60']).pid, flush=True); time.sleep(60)"
    argv = [*SIDECAR, sys.executable, "-c", code]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as agent:
        assert agent.stdin is not None
        assert agent.stdout is not None
        grandchild = psutil.Process(int(agent.stdout.readline()))
        server = psutil.Process(agent.pid).children()[0]
        agent.stdin.close()
        _, living = psutil.wait_procs([server, grandchild], timeout=WAIT_S)
        assert not living
        agent.wait(WAIT_S)


def test_input_from_the_kernel_does_not_end_the_server_and_its_exit_status_is_returned() -> None:
    code = "import sys, time; print('up', flush=True); time.sleep(0.3); sys.exit(5)"
    argv = [*SIDECAR, sys.executable, "-c", code]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as agent:
        assert agent.stdin is not None
        assert agent.stdout is not None
        assert agent.stdout.readline() == "up\n"
        agent.stdin.write("typed by the kernel\n")
        agent.stdin.flush()
        assert agent.wait(WAIT_S) == 5
