"""The packages to compare come from the installed plugins."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from rlnb_dask import packages

import rlnb
from rlnb.hooks.registry import registry

PLUGINS = {
    "mine": "import rlnb\n\nprint('hello')\n\n\n@rlnb.plugin.hookimpl\ndef rlnb_libraries():\n"
    "    requires = ('mine-rl[gpu]>=2', 'numpy')\n"
    "    return [rlnb.plugin.Library(name='mine', backend='mine:B', requires=requires)]\n",
    "broken": "import gone\n",
}
"""The modules of plugins."""


@pytest.fixture
def third_party(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The plugins, as pip would install them."""
    for name, code in PLUGINS.items():
        info = tmp_path / f"rlnb_{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: rlnb-{name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[rlnb]\n{name} = rlnb_{name}_of_test\n")
        (tmp_path / f"rlnb_{name}_of_test.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    registry.cache_clear()
    yield
    registry.cache_clear()


def test_plugins_and_the_requirements_of_their_libraries_are_compared() -> None:
    names = packages.packages()
    assert names[: len(packages.SIMULATION)] == packages.SIMULATION
    assert "rlnb-dask" in names
    for library in rlnb.libraries().values():
        assert all(text.split("=")[0].strip("<>=!~") in names for text in library.requires)
    assert len(names) == len(set(names))


def test_third_party_plugins_are_compared_and_the_faults_of_one_are_skipped(
    third_party: None, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.warns(UserWarning, match=r"The plugin 'broken' \(rlnb-broken 1\.0\) is left out"):
        names = packages.packages()
    assert {"rlnb-broken", "rlnb-mine", "mine-rl", "numpy"} <= {*names}
    assert "hello" not in capsys.readouterr().out
