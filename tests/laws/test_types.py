"""The public names, as a type checker sees them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import rlnb

REPO = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(sys.version_info[:2] != (3, 12), reason="mypy's cache is that of `make lint`")


def checked(tmp_path: Path, code: str) -> str:
    """Return the output of mypy for a module."""
    module = tmp_path / "snippet.py"
    module.write_text(f"import rlnb\n{code}\n")
    argv = [sys.executable, "-m", "mypy", "--config-file", "pyproject.toml", "--no-error-summary", str(module)]
    env = {**os.environ, "MYPYPATH": str(REPO), "NO_COLOR": "1"}
    return subprocess.run(argv, cwd=REPO, env=env, capture_output=True, text=True, check=False).stdout


def test_a_wrong_argument_is_reported_where_it_is_given(tmp_path: Path) -> None:
    output = checked(
        tmp_path,
        """rlnb.train("Isaac-Ant", max_iteration=5)
rlnb.train("Isaac-Ant", seed="42")
run = rlnb.train("Isaac-Ant")
run.evaluate(episode=3)
run.evaluate(episodes="many")
rlnb.plugin.Library(name="x", backend="m:B", checkpoints="*.pt")
rlnb.local(max_runing=2)""",
    )
    for line, message in {
        2: 'Unexpected keyword argument "max_iteration" for "train"',
        3: 'Argument "seed" to "train" has incompatible type "str"',
        5: 'Unexpected keyword argument "episode" for "evaluate"',
        6: 'Argument "episodes" to "evaluate" of "Run" has incompatible type "str"',
        7: 'Unexpected keyword argument "checkpoints" for "Library"',
        8: 'Unexpected keyword argument "max_runing" for "LocalLauncher"',
    }.items():
        assert any(f":{line}: error: {message}" in row for row in output.splitlines()), f"line {line}\n{output}"


def test_every_public_name_has_a_type(tmp_path: Path) -> None:
    output = checked(tmp_path, "\n".join(f"reveal_type(rlnb.{name})" for name in rlnb.__all__))
    rows = [row.partition("Revealed type is ")[2] for row in output.splitlines() if "Revealed type is" in row]
    assert len(rows) == len(rlnb.__all__), output
    untyped = {'"Any"', '"builtins.object"'}
    assert not [name for name, row in zip(rlnb.__all__, rows, strict=True) if row in untyped]
