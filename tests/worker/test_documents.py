"""The notebooks run as written, with small sizes, on real Isaac Lab."""

from __future__ import annotations

import importlib.util
import tempfile
from pathlib import Path
from typing import Any

import pytest

from rlnb.cli import demo
from rlnb.worker.assets.packs import build

pytestmark = [
    pytest.mark.isaaclab,
    pytest.mark.timeout(900),
    pytest.mark.skipif(importlib.util.find_spec("isaaclab") is None, reason="isaaclab is not installed here"),
]

REPO = Path(__file__).parents[2]
SMALL = {"num_envs": 16, "max_iterations": 3, "episodes": 8}


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to run a notebook in."""
    monkeypatch.setenv("RLNB_ROOT", str(tmp_path / "rlnb-runs"))
    monkeypatch.setenv("RLNB_QUEUE", str(tmp_path / "queue"))
    monkeypatch.setenv("ISAACSIM_ASSET_ROOT", str(build().folder))
    return tmp_path


def outputs(notebook: Any, mimetype: str) -> list[object]:
    return [
        output["data"][mimetype]
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if mimetype in output.get("data", {})
    ]


def executed(name: str, workplace: Path, parameters: dict[str, object]) -> Any:
    """Execute one of the notebooks with papermill and return the executed notebook."""
    import papermill

    with tempfile.TemporaryDirectory() as sockets:
        return papermill.execute_notebook(
            REPO / "notebooks" / name,
            workplace / "done.ipynb",
            parameters,
            cwd=workplace,
            progress_bar=False,
            config=demo.kernel_over(Path(sockets)),
        )


def test_the_quickstart_runs_under_papermill_and_leaves_pictures_and_a_report(workplace: Path) -> None:
    done = executed("01_quickstart.ipynb", workplace, {**SMALL, "report": str(workplace / "quickstart.html")})
    assert len(outputs(done, "image/png")) >= 2  # the camera's picture, and the curves
    assert "widgets" not in done.metadata
    html = (workplace / "quickstart.html").read_text()
    assert len(html) < 1_500_000
    assert "<script src" not in html
    assert "Cartpole-Upright" in html
    assert (workplace / "done.ipynb").stat().st_size < 1_000_000


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_notebook_of_libraries_compares_them(workplace: Path) -> None:
    done = executed("04_libraries.ipynb", workplace, {"num_envs": 32, "frames": 3000, "seeds": 2, "episodes": 8})
    texts = " ".join(str(text) for text in outputs(done, "text/html"))
    assert "Equal frames" in texts
    assert "the ranks learn as one" in texts


@pytest.mark.slow
def test_the_notebook_of_tasks_defines_one(workplace: Path) -> None:
    done = executed("02_define_a_task.ipynb", workplace, {"num_envs": 16, "max_iterations": 3})
    printed = "".join(output["text"] for cell in done.cells for output in cell.get("outputs", []) if "text" in output)
    assert "sim.dtt" in printed, "all problems are reported at once"
    assert "decimation" in printed
    assert "off_centre" in " ".join(str(text) for text in outputs(done, "text/html"))


@pytest.mark.slow
def test_the_notebook_of_sweeps_searches_compares_and_reports(workplace: Path) -> None:
    done = executed(
        "06_sweeps_and_reports.ipynb", workplace, {"num_envs": 16, "max_iterations": 3, "n_trials": 2, "episodes": 8}
    )
    assert len(outputs(done, "application/vnd.plotly.v1+json")) == 2  # parallel coordinates, the comparison
    assert (workplace / "best.html").exists()
    assert "widgets" not in done.metadata


def test_the_notebook_for_jobs_takes_parameters_from_papermill(workplace: Path) -> None:
    done = executed("train.ipynb", workplace, {"num_envs": 16, "max_iterations": 2, "episodes": 8, "device": "cpu"})
    assert (workplace / "report.html").exists()
    assert len(outputs(done, "image/png")) == 1


@pytest.mark.slow
def test_the_notebook_of_cameras_shows_them(workplace: Path) -> None:
    done = executed("03_cameras.ipynb", workplace, {"num_envs": 2})
    assert len(outputs(done, "image/png")) >= 4  # two previews, the training, its policy
    texts = " ".join(str(text) for text in outputs(done, "text/html"))
    assert "rewards swapped" in texts
