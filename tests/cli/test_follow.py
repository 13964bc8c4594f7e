"""Following the log of a run."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from typer.testing import Result

import rlnb
from rlnb.cli import runs
from rlnb.storage import files
from rlnb.storage.serial import to_json

ITERATIONS = 5
SLOW = "--agent=iteration_s=0.3"
TIMEOUT_S = 60.0

Invoke = Callable[..., Result]
Start = Callable[..., str]


def test_logs_follow_ends_when_the_run_ends(invoke: Invoke, start: Start) -> None:
    id = start(SLOW)
    start_s = time.monotonic()
    result = invoke("logs", id, "--follow")
    assert result.exit_code == 0
    assert time.monotonic() - start_s < TIMEOUT_S
    assert rlnb.get_run(id).state == "completed"
    lines = [line for line in result.stdout.splitlines() if line.startswith("iteration ")]
    assert [int(line.split()[1]) for line in lines] == list(range(ITERATIONS)), "each line appears once"


def test_following_never_prints_part_of_a_line_or_of_a_character(tmp_path: Path) -> None:
    log = tmp_path / "node0.log"
    log.write_bytes(b"one\n" + "zwölf".encode()[:3])
    text, end = runs.appended(log, 0, whole_lines=True)
    assert text == "one\n"
    log.write_bytes(b"one\n" + "zwölf".encode())
    assert runs.appended(log, end, whole_lines=False)[0] == "zwölf"


def test_a_run_without_a_job_has_no_log_to_follow(invoke: Invoke, tmp_path: Path) -> None:
    manifest = rlnb.Manifest(run_id="empty", created=files.now(), task=rlnb.Task(id="Echo"), library="echo")
    folder = tmp_path / "runs" / "empty"
    folder.mkdir(parents=True)
    files.write_once(folder / "manifest.json", to_json(manifest))
    result = invoke("logs", "empty", "--follow")
    assert result.exit_code == 2
    assert "empty has no job yet" in result.stderr
