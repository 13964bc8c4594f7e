"""On each Python that rlnb supports, its modules can be imported, and the standard library has all that they use."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import subprocess
import sys
from pathlib import Path

REPO = Path(__file__).parents[2]
SOURCES = sorted([*REPO.glob("rlnb/**/*.py"), *REPO.glob("plugins/*/src/**/*.py")])
IMPORTS = """
import importlib, pkgutil, rlnb
for module in pkgutil.walk_packages(rlnb.__path__, "rlnb."):
    if not module.name.startswith(("rlnb.worker", "rlnb.testing")) and not module.name.endswith("__main__"):
        importlib.import_module(module.name)
"""


def lacks(module: str, name: str) -> bool:
    """Return whether a module of the standard library has no such attribute and no such submodule."""
    if hasattr(importlib.import_module(module), name):
        return False
    try:
        return importlib.util.find_spec(f"{module}.{name}") is None
    except ModuleNotFoundError:
        return True


def uses(tree: ast.AST) -> set[tuple[str, str]]:
    """Return the names that a module takes from modules of the standard library, as (module, name)."""
    found, modules = set(), {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {alias.asname or alias.name: alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {(node.module, alias.name) for alias in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and (module := modules.get(ast.unparse(node.value))):
            found.add((module, node.attr))
    return {
        (module, name) for module, name in found if module.split(".")[0] in sys.stdlib_module_names - {"__future__"}
    }


def test_the_standard_library_has_every_name_that_a_module_uses() -> None:
    used = {path: uses(ast.parse(path.read_text(encoding="utf-8"))) for path in SOURCES}
    absent = {(module, name) for module, name in set[tuple[str, str]]().union(*used.values()) if lacks(module, name)}
    assert not {str(path.relative_to(REPO)): absent & names for path, names in used.items() if absent & names}


def test_every_module_of_the_kernel_can_be_imported() -> None:
    subprocess.run([sys.executable, "-c", IMPORTS], check=True, timeout=100)
