"""Two checkouts of one version."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from rlnb_dask import node, preflight, sources
from rlnb_dask.node import NodeFacts
from rlnb_dask.packages import modules


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Another checkout of a plugin, on the path of other interpreters."""
    here = Path(sources.__file__).parent
    copy = tmp_path / "checkout" / "rlnb_dask"
    shutil.copytree(here, copy)
    return copy


def look(tmp_path: Path, checkout: Path, monkeypatch: pytest.MonkeyPatch) -> NodeFacts:
    monkeypatch.setenv("PYTHONPATH", str(checkout.parent))
    return node.look(str(tmp_path), "node0", ("rlnb",), None, sys.executable, modules=["rlnb_dask", "nowhere"])


def test_another_checkout_with_the_same_version_is_named_with_both_folders(
    tmp_path: Path, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = sources.sources_of(["rlnb_dask", "nowhere"])
    assert [*ours] == ["rlnb_dask"]
    (checkout / "__pycache__").mkdir(exist_ok=True)
    (checkout / "__pycache__" / "more.py").write_text("")
    same = look(tmp_path, checkout, monkeypatch)
    assert preflight.other_sources([same], ours) == [], "an equal copy elsewhere"
    with open(checkout / "host.py", "a") as file:
        file.write("\n# a change\n")
    other = look(tmp_path, checkout, monkeypatch)
    (line,) = preflight.other_sources([same, other, other], ours)
    assert line.startswith(f"node 1 ({other.host}) and 1 more: the sources of rlnb_dask in {checkout} are not those of")
    assert f"the notebook in {Path(sources.__file__).parent}, though the version is the same" in line
    (checkout / "host.py").rename(checkout / "hosts.py")
    assert preflight.other_sources([look(tmp_path, checkout, monkeypatch)], ours)


def test_the_sources_of_the_agents_interpreter_are_looked_at_too(tmp_path: Path) -> None:
    (own,) = node.look(str(tmp_path), "node0", (), None, modules=["rlnb_dask"]).sources
    assert own == sources.sources_of(["rlnb_dask"])
    assert len(node.look(str(tmp_path), "node0", (), None, sys.executable, modules=["rlnb_dask"]).sources) == 2


def test_the_plugins_of_others_are_compared_by_their_versions_only() -> None:
    assert {"rlnb", "rlnb_dask", "rlnb_echo"} <= {*modules()}
    assert all(name.startswith("rlnb") for name in modules())
