"""The layers in pyproject.toml: which folder may import which, also in functions and under TYPE_CHECKING."""

from __future__ import annotations

import itertools
import tomllib
from pathlib import Path
from typing import Any

import grimp
import pytest
from importlinter.configuration import configure
from importlinter.contracts.acyclic_siblings import AcyclicSiblingsContract
from importlinter.contracts.layers import LayersContract
from importlinter.contracts.protected import ProtectedContract
from importlinter.domain.contract import Contract

import rlnb

REPO = Path(__file__).parents[2]
PACKAGE = REPO / "rlnb"
OPTIONS = tomllib.loads((REPO / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
TYPES = {"layers": LayersContract, "protected": ProtectedContract, "acyclic_siblings": AcyclicSiblingsContract}
CONTRACTS = {options["id"]: options for options in OPTIONS}
MOST_MODULES = 10
"""Largest number of modules in rlnb/ itself."""


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    configure()
    return grimp.build_graph("rlnb", cache_dir=None)


def contract(id: str) -> Contract:
    options: dict[str, Any] = {key: value for key, value in CONTRACTS[id].items() if key not in ("id", "name", "type")}
    options = {key: str(value) if isinstance(value, bool) else value for key, value in options.items()}
    return TYPES[CONTRACTS[id]["type"]](CONTRACTS[id]["name"], {"root_packages": ["rlnb"]}, options)


def kept(id: str, graph: grimp.ImportGraph, *planted: tuple[str, str]) -> bool:
    """Return whether a contract holds after adding further imports."""
    import copy

    graph = copy.deepcopy(graph)
    for importer, imported in planted:
        graph.add_import(importer=importer, imported=imported)
    return contract(id).check(graph, verbose=False).kept


def layers(id: str) -> list[list[str]]:
    """Return the modules of each layer, the highest first."""
    (container,) = CONTRACTS[id]["containers"]
    return [[f"{container}.{name}" for name in layer.split(" | ")] for layer in CONTRACTS[id]["layers"]]


@pytest.mark.parametrize("id", CONTRACTS)
def test_the_contract_holds(graph: grimp.ImportGraph, id: str) -> None:
    assert kept(id, graph), f"{CONTRACTS[id]['name']} is broken. Run lint-imports for the list."


def upward() -> list[tuple[str, str, str]]:
    """Return an import from each layer into the layer above, and between two folders of each layer."""
    found = []
    for id in ("layers", "worker-layers"):
        for above, below in itertools.pairwise(layers(id)):
            found.append((id, below[0], above[-1]))
        found += [(id, layer[0], layer[1]) for layer in layers(id) if len(layer) > 1]
    return found


@pytest.mark.parametrize(("id", "importer", "imported"), upward(), ids=lambda part: part.removeprefix("rlnb."))
def test_an_upward_import_breaks_the_contract(graph: grimp.ImportGraph, id: str, importer: str, imported: str) -> None:
    assert not kept(id, graph, (importer, imported))


def test_an_import_of_the_worker_breaks_the_contract(graph: grimp.ImportGraph) -> None:
    assert not kept("worker", graph, ("rlnb.doctor.interpreter", "rlnb.worker.probe"))


def test_an_import_cycle_in_a_folder_breaks_the_contract(graph: grimp.ImportGraph) -> None:
    assert not kept("acyclic", graph, ("rlnb.records.layout", "rlnb.records.record"))


def test_a_folder_without_a_layer_breaks_the_contract(graph: grimp.ImportGraph) -> None:
    import copy

    graph = copy.deepcopy(graph)
    graph.add_module("rlnb.newcomer")
    assert not contract("layers").check(graph, verbose=False).kept


def test_few_modules_are_outside_the_folders() -> None:
    assert len(list(PACKAGE.glob("*.py"))) <= MOST_MODULES


def test_no_folder_and_no_module_has_a_public_name() -> None:
    """``import rlnb.train`` would replace the function by the module."""
    assert not set(rlnb.__all__) & {path.stem for path in PACKAGE.iterdir()}


def test_no_launcher_has_the_name_of_a_module() -> None:
    from rlnb.hooks import plugins

    assert not {path.stem for path in PACKAGE.iterdir()} & {*plugins.launchers()}


def test_every_folder_has_a_short_description() -> None:
    folders = [path.parent for path in PACKAGE.rglob("__init__.py") if path.parent != PACKAGE]
    assert folders
    for folder in folders:
        lines = (folder / "__init__.py").read_text(encoding="utf-8").splitlines()
        assert 3 <= len(lines) <= 16, f"{folder.relative_to(REPO)} describes itself in {len(lines)} lines"
