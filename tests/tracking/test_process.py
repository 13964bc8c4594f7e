"""The process of a tracker ends with a warning if the tracker fails, and reports how the run ended."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

import rlnb
from rlnb.tracking import outcome

TRACKER = """
import atexit, os, signal, rlnb.tracking
atexit.register(lambda: os.write(1, b'exit handler'))
def track(run):
    os.kill(os.getpid(), signal.SIGTERM)
    print(run.id)
    {code}
rlnb.tracking.main('Mine', track)
"""


def main(run: str | Path, code: str = "") -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-c", TRACKER.format(code=code), str(run)]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


def test_the_process_follows_the_run_and_no_signal_or_exit_handler_disturbs_the_end(run: rlnb.Run) -> None:
    done = main(run.path)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{run.id}\n", "")


def test_a_failure_is_a_warning_and_an_exit_status(run: rlnb.Run, tmp_path: Path) -> None:
    done = main(run.path, "raise OSError('the disk is full')")
    assert done.returncode == 1
    assert done.stderr == "Mine no longer follows this run: OSError: the disk is full\n"
    assert "Mine no longer follows this run: NotFoundError" in main(tmp_path / "nothing").stderr


def test_the_outcome_is_that_of_the_result(run: rlnb.Run) -> None:
    assert outcome(run) == "completed"


@pytest.mark.parametrize(("is_cancelled", "end"), [(True, "cancelled"), (False, "failed")])
def test_a_killed_job_has_no_result_and_is_cancelled_or_failed(run: rlnb.Run, is_cancelled: bool, end: str) -> None:
    job = run.jobs[-1]
    with contextlib.suppress(psutil.NoSuchProcess):  # its host would write a result if there were none
        psutil.Process((job.handle or {})["pid"]).wait(30)
    folder = job.folder
    folder.result.unlink()
    if is_cancelled:
        folder.cancel.write_text("{}")
    assert outcome(rlnb.get_run(run.id)) == end
