"""The folders of the extension's pages: which folder may import which, read from the TypeScript source."""

from __future__ import annotations

import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

EXTENSION = Path(__file__).parents[2] / "extensions" / "rlnb-jupyterlab"
PAGES = EXTENSION / "ts"
TESTS = "tests"

LAYERS: tuple[tuple[str, ...], ...] = (
    ("server",),
    ("model",),
    ("parts",),
    ("list", "run", "form", "cluster"),
    ("lab",),
    ("index.ts",),
)
"""Layers, lowest first. A module may import its own folder and lower layers, but no other folder of its layer."""
LEVEL = {folder: level for level, folders in enumerate(LAYERS) for folder in folders}

IMPORTED = re.compile(r"""\b(?:from|import|require|mock)\s*\(?\s*['"](\.[^'"]*)['"]""")
"""The relative path in each form of an import: types, re-exports, ``import()`` and ``jest.mock()`` included."""


def modules(pages: Path) -> list[Path]:
    """Return all modules, including tests but without type declarations, which import nothing."""
    found = [path for path in sorted(pages.rglob("*")) if path.suffix in {".ts", ".tsx"}]
    return [path for path in found if not path.name.endswith(".d.ts")]


def imports(path: Path, pages: Path) -> Iterator[tuple[int, Path]]:
    """Yield line and path, without its ending, of each module below ``pages`` that a module imports."""
    text = path.read_text(encoding="utf-8")
    for match in IMPORTED.finditer(text):
        target = Path(path.parent, match[1]).resolve()
        if target.is_relative_to(pages.resolve()):
            yield text.count("\n", 0, match.start(1)) + 1, target.relative_to(pages.resolve())


def folder_of(module: Path) -> str:
    """Return the folder of a module, given its path below the pages. A test belongs to the folder that it mirrors."""
    parts = module.parts[1:] if module.parts[:1] == (TESTS,) else module.parts
    return parts[0] if parts and parts[0] in LEVEL else "index.ts"


def violations(pages: Path) -> list[str]:
    """Return each import that goes upward, to another folder of the same layer, or from a page to a test."""
    found = []
    for path in modules(pages):
        module = path.relative_to(pages)
        is_test = module.parts[0] == TESTS
        for line, target in imports(path, pages):
            if target.parts[:1] == (TESTS,):
                broken = not is_test
            else:
                here, there = folder_of(module), folder_of(target)
                broken = here != there and LEVEL[there] >= LEVEL[here]
            if broken:
                found.append(f"{module}:{line} imports {target}")
    return found


def test_no_module_imports_a_higher_layer_or_another_folder_of_its_layer() -> None:
    assert not violations(PAGES), "\n".join(violations(PAGES))


def test_there_are_no_import_cycles() -> None:
    graph = {
        path.relative_to(PAGES).with_suffix(""): {target for _, target in imports(path, PAGES)}
        for path in modules(PAGES)
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as exc:
        pytest.fail(" imports ".join(str(module) for module in reversed(exc.args[1])))


def test_each_folder_has_a_layer_and_a_line_in_the_readme() -> None:
    folders = {f"{path.name}/" if path.is_dir() else path.name for path in PAGES.iterdir()} - {f"{TESTS}/"}
    assert folders == {name if name.endswith(".ts") else f"{name}/" for name in LEVEL}
    readme = (EXTENSION / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `([^`]+)` \|", readme, re.MULTILINE)) == folders


def test_each_test_mirrors_its_module() -> None:
    strays = []
    for path in PAGES.joinpath(TESTS).rglob("*.test.ts"):
        name, folder = path.name.split(".")[0], path.relative_to(PAGES / TESTS).parent
        ours, of_cells = PAGES.joinpath(folder).glob(f"{name}.ts*"), EXTENSION.parents[1].joinpath("rlnb", folder)
        if not [*ours, *of_cells.glob(f"{name}.js")]:
            strays.append(path.relative_to(PAGES))
    assert not strays


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("server/stream.ts", "import { Hub } from '../model/hub';"),
        ("model/hub.ts", "import type { View } from '../parts/view';"),
        ("parts/view.tsx", "export * from '../run/run';"),
        ("list/list.tsx", "const run = await import('../run/run');"),
        ("form/form.tsx", "import {\n  Cluster\n} from '../cluster/cluster';"),
        ("lab/commands.ts", "import plugin from '..';"),
        ("lab/commands.ts", "import plugin from '../index';"),
        ("run/run.tsx", "import { row } from '../tests/rows';"),
        ("tests/model/hub.test.ts", "jest.mock('../../lab/commands');"),
    ],
)
def test_an_import_against_the_layers_is_found(tmp_path: Path, module: str, line: str) -> None:
    path = tmp_path / module
    path.parent.mkdir(parents=True)
    path.write_text(f"import {{ Server }} from '../server/server';\n{line}\n")
    assert [found.split(" imports ")[0] for found in violations(tmp_path)] == [f"{module}:{line.count(chr(10)) + 2}"]
