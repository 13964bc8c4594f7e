"""The packages to compare come from the installed plugins."""

from __future__ import annotations

from importlib import metadata

import pytest
from rlnb_dask import packages

import rlnb


def test_plugins_and_the_requirements_of_their_libraries_are_compared() -> None:
    names = packages.packages()
    assert names[: len(packages.SIMULATION)] == packages.SIMULATION
    assert "rlnb-dask" in names
    for entry in metadata.entry_points(group="rlnb"):
        for library in getattr(entry.load(), "rlnb_libraries", list)():
            assert all(text.split("=")[0].strip("<>=!~") in names for text in library.requires)
    assert len(names) == len(set(names))


def test_third_party_plugins_are_compared_and_a_broken_one_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    class Dist:
        def __init__(self, name: str) -> None:
            self.name = name

    class Plugin:
        def rlnb_libraries(self) -> list[rlnb.Library]:
            return [rlnb.Library(name="mine", backend="mine:B", requires=("mine-rl[gpu]>=2", "numpy"))]

    def broken() -> None:
        raise ImportError("no module named gone")

    class Entry:
        def __init__(self, name: str, load: object) -> None:
            self.name, self.load, self.dist = name, load, Dist(f"rlnb-{name}")

        def __lt__(self, other: Entry) -> bool:
            return self.name < other.name

    entries = [Entry("mine", Plugin), Entry("broken", broken)]
    monkeypatch.setattr(packages.metadata, "entry_points", lambda group: entries)
    assert packages.packages()[len(packages.SIMULATION) :] == ("rlnb-broken", "rlnb-mine", "mine-rl", "numpy")
