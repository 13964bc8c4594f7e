"""The demo: its notebook, its kernel and its report."""

from __future__ import annotations

import json
import os
import textwrap
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
from typer.testing import Result

from rlnb.cli import demo

Invoke = Callable[..., Result]


@pytest.mark.slow
def test_demo_executes_a_notebook_and_prints_its_report(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = """
        import json, pathlib
        from ipykernel.connect import get_connection_info
        pathlib.Path("my.html").write_text(json.loads(get_connection_info())["transport"])
    """
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(textwrap.dedent(source))])
    path = tmp_path / "quick.ipynb"
    nbformat.write(notebook, path)
    monkeypatch.setattr(demo, "quickstart", lambda: path)
    monkeypatch.setenv("RLNB_ROOT", str(tmp_path))
    out = tmp_path / "out"
    result = invoke("demo", "--out", out)
    assert result.exit_code == 0, result.output
    assert result.stdout.strip() == str(out / "my.html")
    assert "Executing the quickstart notebook" in result.stderr, "a log shows the status"
    assert (out / demo.NOTEBOOK).is_file()
    assert (out / "my.html").read_text() == "ipc", "other users cannot open the kernel's sockets"


def test_the_quickstart_notebook_comes_from_the_checkout() -> None:
    path = demo.quickstart()
    assert path == Path(demo.__file__).parents[2] / "notebooks" / demo.NOTEBOOK
    assert json.loads(path.read_text())["cells"]


def test_the_kernel_uses_ports_if_the_path_is_too_long_for_a_socket() -> None:
    assert demo.kernel_over(Path("/run/x")).KernelManager.ip == "/run/x/kernel"
    assert not demo.kernel_over(Path("/run", "x" * demo.SOCKET_PATH)).KernelManager


def test_a_report_of_an_earlier_demo_is_ignored(tmp_path: Path) -> None:
    (older := tmp_path / "older.html").touch()
    os.utime(older, (1000.0, 1000.0))
    assert demo._newest_html([tmp_path], 2000.0) is None
    (newer := tmp_path / "deep" / "newer.html").parent.mkdir()
    newer.touch()
    assert demo._newest_html([tmp_path], 2000.0) == newer


def test_a_notebook_without_a_report_becomes_html(tmp_path: Path) -> None:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# A *heading*")])
    nbformat.write(notebook, tmp_path / "quick.ipynb")
    page = demo._as_html(tmp_path / "quick.ipynb")
    assert page == tmp_path / "quick.html"
    assert "<em>heading</em>" in page.read_text()
