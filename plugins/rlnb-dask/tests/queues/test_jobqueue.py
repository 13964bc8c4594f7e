"""The import of dask-jobqueue leaves the handlers of signals alone, and works in any thread."""

from __future__ import annotations

import subprocess
import sys

import pytest

CODE = """
import signal, threading
import rlnb
def script():
    print(rlnb.slurm(walltime="01:00:00").job_script().splitlines()[0])
{call}
print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)
"""


@pytest.mark.parametrize("call", ["script()", "one = threading.Thread(target=script); one.start(); one.join()"])
def test_a_job_script_is_made_in_any_thread_and_interrupts_stay_those_of_python(call: str) -> None:
    done = subprocess.run([sys.executable, "-c", CODE.format(call=call)], capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["#!/usr/bin/env", "bash", "True"], done.stderr
