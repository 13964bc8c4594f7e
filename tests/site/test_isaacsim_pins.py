"""Installing rlnb beside Isaac Sim changes no package that Isaac Sim or Isaac Lab brings."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from packaging.requirements import Requirement

REPO = Path(__file__).parents[2]
OURS_ONLY = {"dev", "docs"}
"""Extras that no user installs."""


@pytest.fixture(scope="module")
def rig(load_rig: Callable[[str], ModuleType]) -> ModuleType:
    return load_rig("pins")


def requirements(folder: Path) -> list[Requirement]:
    """Return all requirements of a package, those of its extras included."""
    project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {name: lines for name, lines in project.get("optional-dependencies", {}).items() if name not in OURS_ONLY}
    lines = [line for group in (project.get("dependencies", ()), *extras.values()) for line in group]
    return [Requirement(line) for line in lines]


def test_every_requirement_admits_the_version_of_isaac_sim(rig: ModuleType) -> None:
    pins = rig.names(rig.PINS.read_text())
    refused = [
        f"{name}: {requirement}, but Isaac Sim has {pins[requirement.name]}"
        for name, folder in rig.packages().items()
        for requirement in requirements(folder)
        if requirement.name in pins and not requirement.specifier.contains(pins[requirement.name])
    ]
    assert refused == []


def test_the_constraints_for_isaac_sim_leave_its_packages_alone(rig: ModuleType) -> None:
    pins = rig.names(rig.PINS.read_text())
    assert {"numpy", "click", "psutil", "pillow", "watchdog", "torch"} <= {*pins}
    assert rig.CONSTRAINTS.read_text() == rig.constraints(pins), "Run tests/rig/pins.py after a change of versions."
    assert not {*rig.names(rig.CONSTRAINTS.read_text())} & {*pins}


def test_the_overrides_keep_the_numpy_of_isaac_sim(rig: ModuleType) -> None:
    pins = rig.names(rig.PINS.read_text())
    lines = [line for line in rig.OVERRIDES.read_text().splitlines() if not line.startswith("#")]
    for requirement in map(Requirement, lines):
        assert requirement.specifier.contains(pins[requirement.name]), requirement
    assert pins["numpy"] == "2.3.1"


@pytest.mark.slow
def test_the_resolver_picks_the_same_versions_with_and_without_rlnb(rig: ModuleType) -> None:
    alone = rig.resolve([rig.WITH_VISER])
    together = rig.resolve([rig.ISAACSIM, *rig.everything()])
    assert {name: together.get(name) for name in alone} == alone
    constrained = rig.names(rig.CONSTRAINTS.read_text())
    assert not {*rig.resolve([rig.ISAACSIM])} & {*constrained}
