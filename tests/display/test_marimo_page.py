"""marimo without a page: an export waits and shows pictures. tests/browser has its pages."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

NOTEBOOK = """
import marimo

app = marimo.App()


@app.cell
def _():
    import rlnb
    from rlnb.display import front_end

    run = rlnb.train("Echo", library="echo", max_iterations=5)
    print("notebook", front_end.in_notebook(), "live", front_end.is_live(), "cell", bool(front_end.cell()[0]))
    run.watch()
    return


if __name__ == "__main__":
    app.run()
"""


@pytest.fixture
def notebook(root: Path, tmp_path: Path) -> Path:
    pytest.importorskip("marimo")
    path = tmp_path / "notebook.py"
    path.write_text(NOTEBOOK)
    return path


def run(*argv: str, home: Path) -> str:
    own = {"HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config"), "XDG_CACHE_HOME": str(home / ".cache")}
    return subprocess.run(
        [sys.executable, *argv], check=True, env={**os.environ, **own}, text=True, capture_output=True
    ).stdout


def test_an_export_has_the_curves_as_a_picture(notebook: Path, tmp_path: Path) -> None:
    page = tmp_path / "notebook.html"
    run("-m", "marimo", "-y", "export", "html", str(notebook), "-o", str(page), home=tmp_path)
    text = page.read_text()
    assert "notebook True live False cell True" in text
    assert text.count("data:image/png;base64,iVBOR") == 1


def test_a_script_is_no_notebook(notebook: Path, tmp_path: Path) -> None:
    assert "notebook False live False" in run(str(notebook), home=tmp_path)


def test_the_detection_does_not_import_marimo() -> None:
    code = "import sys\nfrom rlnb.display import front_end\nprint(front_end.in_notebook(), 'marimo' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "False False"
