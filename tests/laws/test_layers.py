"""The layers in pyproject.toml: which folder may import which, also in functions, for types, and by a string.

A string that names a module of rlnb, or ``"module:attr"``, is an import of that module, which happens later. A module
that is a program is left out: who starts a process does not import it.
"""

from __future__ import annotations

import ast
import copy
import functools
import graphlib
import itertools
import re
import tomllib
from collections.abc import Iterator
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
ROOTS = (REPO, REPO / "benchmarks", REPO / "tests" / "rig", *REPO.glob("plugins/*/src"), *REPO.glob("extensions/*/src"))
"""Folders with top-level modules."""
NAMES_A_MODULE = re.compile(r"(\w+(?:\.\w+)+)(?::\w+)?")
ONE_EXCEPTION = ("rlnb.hooks.hookspecs", "rlnb")
"""An annotation of the hook specifications with :class:`rlnb.Run`."""
TYPES = {"layers": LayersContract, "protected": ProtectedContract, "acyclic_siblings": AcyclicSiblingsContract}
CONTRACTS = {options["id"]: options for options in OPTIONS}
MOST_MODULES = 10
"""Largest number of modules in rlnb/ itself."""


@functools.cache
def sources() -> dict[str, ast.Module]:
    """Return the source of each module of the repository by its name."""
    found = {}
    for root in ROOTS:
        for path in (root / "rlnb").rglob("*.py") if root == REPO else root.rglob("*.py"):
            parts = path.relative_to(root).with_suffix("").parts
            if "templates" not in parts:
                name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
                found[name] = ast.parse(path.read_text(encoding="utf-8"))
    return found


def is_program(name: str) -> bool:
    """Return whether ``python -m`` runs a module."""
    tests = (ast.unparse(node.test) for node in sources()[name].body if isinstance(node, ast.If))
    return f"{name}.__main__" in sources() or "__name__ == '__main__'" in tests


def module_of(name: str) -> str:
    """Return the module that a dotted name lies in; empty if it is none of the repository."""
    while name and name not in sources():
        name = name.rpartition(".")[0]
    return name


def strings_in(tree: ast.Module) -> Iterator[str]:
    """Yield the modules that strings name, but for those of docstrings."""
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            match = NAMES_A_MODULE.fullmatch(node.value)
            if match and match[1] in sources() and not is_program(match[1]):
                yield match[1]


def imports_in(tree: ast.Module) -> Iterator[str]:
    """Yield the modules of the repository that a module imports anywhere in its source."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (module_of(alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (module_of(f"{node.module}.{alias.name}") for alias in node.names)


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    """The imports between the modules of rlnb, those by strings among them."""
    configure()
    graph = grimp.build_graph("rlnb", cache_dir=None)
    for name, tree in sources().items():
        if name.startswith("rlnb."):
            for other in strings_in(tree):
                if other.startswith("rlnb.") and other != name:
                    graph.add_import(importer=name, imported=other)
    return graph


def circle(*planted: tuple[str, str]) -> list[str]:
    """Return modules that import each other in a circle; none if there is no circle."""
    above: dict[str, set[str]] = {}
    for name, tree in sources().items():
        above[name] = {*imports_in(tree), *strings_in(tree)} - {name, ""}
    above[ONE_EXCEPTION[0]].discard(ONE_EXCEPTION[1])
    for importer, imported in planted:
        above[importer].add(imported)
    try:
        graphlib.TopologicalSorter(above).prepare()
    except graphlib.CycleError as exc:
        return list(exc.args[1])
    return []


def test_no_modules_of_the_repository_import_each_other_in_a_circle() -> None:
    assert circle() == []
    assert circle(("rlnb.records.layout", "rlnb.records.record"))


def test_a_string_that_names_a_module_is_an_import() -> None:
    tree = ast.parse('NAMES = ("rlnb.training.start:start", "rlnb.worker", "rlnb.spec", "flight.json")')
    assert [*strings_in(tree)] == ["rlnb.training.start", "rlnb.spec"], "rlnb.worker is a program"
    assert not [*strings_in(ast.parse('"""See rlnb.spec."""'))]


def test_the_contract_has_twelve_layers_and_one_exception() -> None:
    assert len(layers("layers")) == 12
    exceptions = {exception for options in OPTIONS for exception in options.get("ignore_imports", ())}
    assert exceptions == {" -> ".join(ONE_EXCEPTION)}


def contract(id: str) -> Contract:
    options: dict[str, Any] = {key: value for key, value in CONTRACTS[id].items() if key not in ("id", "name", "type")}
    options = {key: str(value) if isinstance(value, bool) else value for key, value in options.items()}
    return TYPES[CONTRACTS[id]["type"]](CONTRACTS[id]["name"], {"root_packages": ["rlnb"]}, options)


def kept(id: str, graph: grimp.ImportGraph, *planted: tuple[str, str]) -> bool:
    """Return whether a contract holds after adding further imports."""
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
