"""The cluster notebook runs unchanged in papermill, with real Isaac Lab on two nodes of a real Slurm."""

from __future__ import annotations

import importlib.util
import tempfile
from pathlib import Path
from typing import Any

import pytest

import rlnb
from rlnb.cli import demo
from rlnb.worker.assets.packs import build

pytestmark = [
    pytest.mark.slow,
    pytest.mark.isaaclab,
    pytest.mark.timeout(900),
    pytest.mark.skipif(importlib.util.find_spec("isaaclab") is None, reason="isaaclab is not installed here"),
]

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "05_clusters.ipynb"


def test_the_cluster_notebook_trains_on_two_nodes(
    slurm: Any, clean: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import papermill

    monkeypatch.setenv("ISAACSIM_ASSET_ROOT", str(build().folder))
    with tempfile.TemporaryDirectory() as sockets:
        done = papermill.execute_notebook(
            NOTEBOOK,
            tmp_path / "done.ipynb",
            {"num_envs": 16, "max_iterations": 4, "report": str(tmp_path / "cluster.html")},
            cwd=tmp_path,
            progress_bar=False,
            config=demo.kernel_over(Path(sockets)),
        )
    printed = "".join(
        output["text"] for cell in done.cells for output in cell.get("outputs", []) if output.get("name") == "stdout"
    )
    assert "#SBATCH --nodes=2" in printed
    assert "invalid partition specified: nowhere" in printed
    assert "63 envs cannot be shared by 4 ranks" in printed
    assert "ranks: 4 | envs: 16" in printed
    assert "Simulator(idle, slurm job" in printed
    assert "parameters in step: True | observations differ: True" in printed
    pages = [output.get("data", {}).get("text/html", "") for cell in done.cells for output in cell.get("outputs", [])]
    assert any("useful" in page and "waiting" in page for page in pages), "the cost of the run"
    (run,) = rlnb.runs()
    assert run.state == "completed"
    assert len(run.metrics["fps"].values) == 4
    assert (tmp_path / "cluster.html").exists()
