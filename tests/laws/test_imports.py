"""Which packages each folder may import, read from the source, and the cost of ``import rlnb``."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import rlnb
import rlnb.backend
import rlnb.tracking
from rlnb.hooks import hookspecs

REPO = Path(__file__).parents[2]
PACKAGE = REPO / "rlnb"

IMPORT_BOUND = 0.7
"""Share of the CPU time of ``import asyncio``, which is 40 ms on a fast machine. A bound in seconds says as much about
the machine as about rlnb."""
FRESH_PROCESSES = 5

SIMULATOR = {"torch", "isaaclab", "isaaclab_tasks", "isaaclab_rl", "isaaclab_newton", "isaaclab_assets", "warp", "pxr"}
"""Packages that only the worker may import."""
HEAVY = {
    "torch",
    "isaaclab",
    "plotly",
    "ipywidgets",
    "IPython",
    "dask",
    "distributed",
    "papermill",
    "nbconvert",
    "pandas",
    "matplotlib",
    "tensorboard",
    "PIL",
    "scipy",
    "copier",
    "optuna",
    "ruamel",
}
"""Packages that may be imported inside functions only, because each takes tenths of a second."""
NEVER_AFTER_IMPORT = {"torch", "isaaclab", "plotly", "dask", "papermill", "pandas", "copier"}

SIMULATED = ("worker", "testing")
"""Folders whose modules may import the simulator. ``testing`` runs in a worker's interpreter."""
THIRD_PARTY: dict[str, set[str]] = {
    "version": set(),
    "errors": set(),
    "machine": {"packaging", "pynvml"},
    "spec": set(),
    "storage": {"psutil", "ruamel"},
    "settings": set(),
    "contracts": set(),
    "hooks": {"pluggy"},
    "metrics": {"pandas", "tensorboard", "numpy", "tsdownsample"},
    "records": {"IPython", "PIL", "av", "numpy", "ruamel", "scipy"},
    "launch": {"psutil"},
    "node": {"psutil", "tensorboard"},
}
"""Third-party packages that a folder or module may import. For others, only SIMULATOR and HEAVY apply."""
AGENT_MAY = (
    "rlnb.node",
    "rlnb.launch.command",
    "rlnb.launch.slots",
    "rlnb.machine",
    "rlnb.protocol.tls",
    "rlnb.protocol.wire",
    "rlnb.storage",
    "rlnb.spec",
    "rlnb.errors",
    "rlnb.version",
    "rlnb.records.layout",
    "rlnb.records.incidents",
    "rlnb.records.deadline",
)
"""Modules of rlnb that the node agent may import. The agent starts on every node and must start quickly."""
ALERTS_MAY = ("rlnb.diagnosis.rules", "rlnb.records.facts")
"""Modules that it may also import inside functions, for a run with alerts."""


class Import(NamedTuple):
    module: str
    line: int
    inside_function: bool

    @property
    def package(self) -> str:
        return self.module.split(".")[0]


def place_of(path: Path) -> str:
    """Return the folder of a module below rlnb/; the module's name if it is in rlnb/ itself."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@functools.cache
def imports_of(path: Path) -> list[Import]:
    return list(_walk(ast.parse(path.read_text(encoding="utf-8")), inside=False))


def _walk(node: ast.AST, inside: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            for other in child.orelse:
                yield from _walk(other, inside)
            continue
        if isinstance(child, ast.Import):
            yield from (Import(alias.name, child.lineno, inside) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, f"line {child.lineno}: a relative import hides its target folder"
            yield from (Import(_resolved(child.module or "", a.name), child.lineno, inside) for a in child.names)
        yield from _walk(child, inside or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda))


def _resolved(module: str, name: str) -> str:
    """Return the module that ``from module import name`` loads: ``rlnb.spec`` for ``from rlnb import spec``."""
    below = REPO.joinpath(*module.split("."), name)
    return f"{module}.{name}" if below.is_dir() or below.with_suffix(".py").is_file() else module


def within(module: str, places: tuple[str, ...]) -> bool:
    return any(module == place or module.startswith(f"{place}.") for place in places)


MODULES = sorted(PACKAGE.rglob("*.py"))


def test_a_module_imports_only_the_packages_that_its_folder_may() -> None:
    broken = []
    for path in MODULES:
        place = place_of(path)
        allowed = THIRD_PARTY.get(place)
        broken += [
            f"{path.relative_to(REPO)}:{found.line}: {place} imports {found.module}"
            for found in imports_of(path)
            if found.package not in {"rlnb", *sys.stdlib_module_names}
            and (
                (found.package in SIMULATOR and place not in SIMULATED)
                or (allowed is not None and found.package not in allowed)
            )
        ]
    assert not broken, "\n".join(broken)


def test_the_node_agent_imports_little_of_rlnb() -> None:
    assert not [
        f"{path.name}:{found.line}: {found.module}"
        for path in sorted((PACKAGE / "node").glob("*.py"))
        for found in imports_of(path)
        if found.package == "rlnb"
        and not within(found.module, AGENT_MAY)
        and not (found.inside_function and within(found.module, ALERTS_MAY))
    ]


def test_the_node_agent_loads_no_plugins() -> None:
    code = "import sys, rlnb.node.__main__; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"rlnb.hooks", "rlnb.contracts", "pluggy", "packaging", "numpy"} & {*loaded}, "they take 0.1 s to load"


def test_heavy_packages_are_imported_inside_functions() -> None:
    assert not [
        f"{path.relative_to(REPO)}:{found.line}: {found.module}"
        for path in MODULES
        for found in imports_of(path)
        if found.package in HEAVY and not found.inside_function
    ]


FACES = (rlnb, rlnb.backend, rlnb.launchers, rlnb.plugin, rlnb.results, rlnb.studies, rlnb.tracking)
PUBLIC = {module.__name__: module.__all__ for module in FACES}


def plugin_modules() -> list[Path]:
    return sorted([*REPO.glob("plugins/*/src/**/*.py"), *REPO.glob("extensions/*/src/**/*.py")])


def test_a_plugin_imports_only_public_names() -> None:
    private = {str(path.relative_to(REPO)): private_names_in(path) for path in plugin_modules()}
    assert not {path: names for path, names in private.items() if names}, "these names of rlnb are private"


def private_names_in(path: Path) -> list[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    private = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "rlnb":
            names = PUBLIC.get(node.module or "", [])
            public = all(alias.name in names for alias in node.names)
            if not public:
                private.append(f"line {node.lineno}: {ast.unparse(node)}")
        elif isinstance(node, ast.Import):
            private += [f"line {node.lineno}: import {a.name}" for a in node.names if a.name.startswith("rlnb.")]
        elif isinstance(node, ast.Attribute):
            name, names = ast.unparse(node), PUBLIC.get(ast.unparse(node.value), [node.attr])
            private += [] if node.attr in names or name in PUBLIC else [f"line {node.lineno}: {name}"]
    return private


def import_s(module: str) -> tuple[float, list[str]]:
    """Return the CPU seconds of an import in a fresh process, and the heavy packages that it loads."""
    code = (
        f"import time; begun = time.process_time(); import {module}; seconds = time.process_time() - begun\n"
        f"import sys; print(seconds, *sorted({NEVER_AFTER_IMPORT} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    seconds, *heavy = done.stdout.split()
    return float(seconds), heavy


def test_importing_rlnb_is_quick_and_loads_nothing_heavy() -> None:
    ours, reference = [], []
    for _ in range(FRESH_PROCESSES):
        seconds, heavy = import_s("rlnb")
        assert not heavy
        ours.append(seconds)
        reference.append(import_s("asyncio")[0])
    assert min(ours) < IMPORT_BOUND * min(reference)  # the others are those of a busy machine


def test_listing_libraries_and_tasks_loads_nothing_heavy() -> None:
    code = (
        "from rlnb.hooks import plugins\n"
        "plugins.libraries(); plugins.tasks(); plugins.launchers(); plugins.asset_packs()\n"
        f"import sys; print(*sorted({NEVER_AFTER_IMPORT} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_only_one_folder_calls_the_hooks_of_plugins() -> None:
    pattern = re.compile(r"\.hook\b|\.get_hookimpls\(")
    modules = {path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py") if pattern.search(path.read_text())}
    assert modules == {Path("hooks/registry.py"), Path("testing/trackers.py")}, "use rlnb.hooks.registry"


def test_a_plugin_calls_no_hook() -> None:
    names = "|".join(name for name in vars(hookspecs) if name.startswith("rlnb_"))
    pattern = re.compile(rf"\.hook\b|\.get_hookimpls\(|[.\"']({names})\b(?!\.)")
    calls = {path: pattern.search(path.read_text(encoding="utf-8")) for path in plugin_modules()}
    assert not {str(path): call[0] for path, call in calls.items() if call}, "use the public look-ups of rlnb"


def test_torch_is_declared_where_it_is_imported() -> None:
    packages = [REPO, *sorted((REPO / "plugins").iterdir())]
    sources = {folder: folder / ("rlnb" if folder == REPO else "src") for folder in packages}
    importing = {
        folder.name if folder != REPO else "rlnb"
        for folder, source in sources.items()
        if any(re.search(r"^ *(import|from) torch\b", path.read_text(), re.M) for path in source.rglob("*.py"))
    }
    declaring = {
        folder.name if folder != REPO else "rlnb"
        for folder in packages
        if (folder / "pyproject.toml").is_file() and '"torch>=' in (folder / "pyproject.toml").read_text()
    }
    assert importing - {"rlnb-tasks"} == declaring, "rlnb-tasks has only types of torch"
    assert {"rlnb", "rlnb-rsl-rl"} <= declaring
