"""Plugins that are installed for one test: a module and its entry point in a folder of ``sys.path``."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rlnb.hooks.registry import registry

Install = Callable[..., None]


def write_plugin(site: Path, name: str, code: str, entry: str = "") -> None:
    """Write the distribution rlnb-NAME 1.0 with its module into a folder, as pip would install it."""
    info = site / f"rlnb_{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: rlnb-{name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[rlnb]\n{entry or name} = rlnb_{name}\n")
    (site / f"rlnb_{name}.py").write_text(code)


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """A function that installs a plugin for this process, which then loads all plugins anew."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(site)
    known = {*sys.modules}

    def install(name: str, code: str, entry: str = "") -> None:
        write_plugin(site, name, code, entry)
        importlib.invalidate_caches()
        registry.cache_clear()

    yield install
    registry.cache_clear()
    for name in {name for name in sys.modules if name.startswith("rlnb_")} - known:
        del sys.modules[name]
