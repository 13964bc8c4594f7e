"""A training of Isaac Lab in another account: pictures, a film and an exported policy come back."""

from __future__ import annotations

import importlib.util
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import rlnb

sys.path.append(str(Path(__file__).parents[1] / "site"))

pytestmark = [
    pytest.mark.slow,
    pytest.mark.isaaclab,
    pytest.mark.timeout(900),
    pytest.mark.skipif(importlib.util.find_spec("isaaclab") is None, reason="isaaclab is not installed here"),
]


def test_the_cameras_of_a_training_are_shown_here_and_its_film_arrives(far: Any, root: Path) -> None:
    gpu = rlnb.ssh(far.place, python=far.python, root=str(far.runs), options=far.options)
    run = rlnb.train("Isaac-Cartpole-Camera-Direct", num_envs=8, max_iterations=10_000, launcher=gpu, device="cpu")
    deadline = time.monotonic() + 400
    while run.state in ("queued", "starting") and time.monotonic() < deadline:
        time.sleep(0.5)
    feed = run.camera_feed(num_envs=3, share=0.5)
    shown: list[Any] = []
    while len(shown) < 3 and run.state == "running" and time.monotonic() < deadline:
        feed.still_looking()
        found = feed.newest()
        shown += [found] if found else []
        time.sleep(0.1)
    assert len(shown) == 3, run.logs()
    first, last = (each.pictures[0] for each in (shown[0], shown[-1]))
    assert first.tobytes() != last.tobytes(), "the robots move"
    run.cancel()
    run.wait()
    assert run.state == "cancelled"
    assert not run.checkpoints.last.exists()  # type: ignore[union-attr]
    assert run.play(2).path.stat().st_size > 1000
    assert {path.is_file() for path in run.export().values()} == {True}


@pytest.mark.parametrize("page", ["docs/ssh.md", "plugins/rlnb-ssh/README.md"])
def test_the_snippets_of_the_guide_run(far: Any, root: Path, tmp_path: Path, page: str) -> None:
    from test_snippets import SIZES, blocks, execute_page, smaller

    machine = f"rlnb.ssh({far.place!r}, python={far.python!r}, root={str(far.runs)!r}, options={far.options!r})"
    changes = {
        r'rlnb\.ssh\("anna@gpu7".*\)': machine.replace("\\", r"\\"),
        r"rlnb\.slurm\([^)]*\)": machine,  # the queue has tests of its own
        r"gpu\.install\(.*\)": "",  # and so has the installation
        r"launcher=(gpu|cluster)\)": r'launcher=\1, device="cpu", max_iterations=3)',
        r"run\.watch\(\)": "run.wait()",
    }
    assert all("anna@" not in smaller(block, changes) for block in blocks(Path(__file__).parents[2] / page))
    execute_page(page, tmp_path, {**SIZES, **changes})
    assert {run.state for run in rlnb.runs()} == {"completed"}
