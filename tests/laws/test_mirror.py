"""The tests mirror the package: ``tests/a/test_b.py`` tests ``rlnb/a/b.py``."""

from __future__ import annotations

from pathlib import Path

import pytest

REPO = Path(__file__).parents[2]
PACKAGE = REPO / "rlnb"
TESTED_ELSEWHERE = {
    "testing/policies.py": "plugins/rlnb-rsl-rl/tests/test_conformance.py: it loads policies of Isaac Lab",
    "testing/trackers.py": "plugins/rlnb-wandb/tests/test_plugin.py: it consists of tests that trackers run",
}
"""Modules without a test file of their own, to the location of their tests and the reason."""
MOST_ELSEWHERE = 10
MODULES = sorted(
    path.relative_to(PACKAGE)
    for path in PACKAGE.rglob("*.py")
    if path.name not in ("__init__.py", "__main__.py") and "templates" not in path.parts
)


@pytest.mark.parametrize("module", [module for module in MODULES if str(module) not in TESTED_ELSEWHERE], ids=str)
def test_a_module_has_a_test_file_of_its_name(module: Path) -> None:
    test = REPO / "tests" / module.parent / f"test_{module.name}"
    assert test.is_file(), f"rlnb/{module} has no {test.relative_to(REPO)}"
    assert "\ndef test_" in test.read_text(encoding="utf-8") or "    def test_" in test.read_text(encoding="utf-8")


def test_the_modules_that_are_tested_elsewhere_are_few_and_exist() -> None:
    assert len(TESTED_ELSEWHERE) <= MOST_ELSEWHERE
    assert not {*TESTED_ELSEWHERE} - {str(module) for module in MODULES}


@pytest.mark.parametrize("reason", TESTED_ELSEWHERE.values())
def test_the_file_that_a_reason_names_exists(reason: str) -> None:
    file = reason.partition(":")[0]
    assert (REPO / file).is_file(), f"{file} does not exist"
