"""Paths that a cell shows with links."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path

import pytest
from IPython.core.formatters import DisplayFormatter

from rlnb.display import front_end
from rlnb.display.links import FILES, LinkedPath, LinkedPaths


@pytest.fixture
def page(tmp_path: Path) -> LinkedPath:
    """A file with a path that shows links."""
    (tmp_path / "report.html").write_text("")
    return LinkedPath(tmp_path / "report.html")


def test_a_linked_path_is_a_path_like_any_other(page: LinkedPath, tmp_path: Path) -> None:
    plain = tmp_path / "report.html"
    assert (page, repr(page), hash(page), os.fspath(page)) == (plain, repr(plain), hash(plain), str(plain))
    assert {plain: 1}[page] == 1
    assert pickle.loads(pickle.dumps(page)) == plain
    assert page.with_suffix(".pdf") == plain.with_suffix(".pdf")
    assert page.parent / "x" == tmp_path / "x"


def test_a_cell_shows_its_text_and_names_its_file(page: LinkedPath) -> None:
    data, _ = DisplayFormatter().format(page)
    assert data["text/plain"] == str(page)
    assert json.loads(json.dumps(data[FILES])) == {"files": [{"path": str(page), "name": "report.html"}]}


def test_the_path_of_the_link_is_absolute(page: LinkedPath, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(page.parent)
    data = LinkedPath("report.html")._repr_mimebundle_()
    assert data == {"text/plain": "report.html", FILES: {"files": [{"path": str(page), "name": "report.html"}]}}


def test_what_is_no_file_is_text_alone(page: LinkedPath) -> None:
    for path in (page.parent, page / "none", page.with_suffix(".pdf")):
        assert path._repr_mimebundle_() == {"text/plain": str(path)}


def test_marimo_gets_the_text_alone(page: LinkedPath, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(front_end, "in_marimo", lambda: True)
    assert page._repr_mimebundle_() == {"text/plain": str(page)}


def test_paths_by_name_are_a_dict_with_a_link_for_each(page: LinkedPath, tmp_path: Path) -> None:
    paths = {"onnx": tmp_path / "policy.onnx", "torchscript": Path(page)}
    linked = LinkedPaths(paths)
    assert (linked, repr(linked)) == (paths, repr(paths))
    assert pickle.loads(pickle.dumps(linked)) == paths
    assert FILES in DisplayFormatter().format(linked["torchscript"])[0]
    data, _ = DisplayFormatter().format(linked)
    assert f">{tmp_path}/policy.onnx</td>" in data["text/html"]
    assert data[FILES] == {"files": [{"path": str(page), "name": "torchscript"}]}
    assert FILES not in LinkedPaths({})._repr_mimebundle_()
