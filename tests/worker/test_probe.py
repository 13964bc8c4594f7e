"""Facts about an interpreter for the doctor: read with the standard library alone, printed as JSON."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rlnb.doctor.interpreter import Worker
from rlnb.machine import cuda
from rlnb.worker import probe
from rlnb.worker.probe import Facts


def facts_of(*argv: str, **env: str) -> dict[str, Any]:
    """Run a probe as the doctor does, with the text of rlnb/machine/cuda.py as its argument."""
    text = Path(cuda.__file__).read_text(encoding="utf-8")
    done = subprocess.run([sys.executable, *argv, text], capture_output=True, text=True, check=True, env=env or None)
    return cuda.read(done.stdout)


def install_torch(folder: Path, version: str) -> None:
    (folder / "torch").mkdir()
    (folder / "torch" / "__init__.py").write_text("raise RuntimeError('the probe imported torch')")
    (folder / "torch" / "version.py").write_text(version)


def test_it_needs_only_the_standard_library() -> None:
    facts = facts_of("-I", "-S", probe.__file__)  # -S: no site-packages, so no rlnb
    assert facts["versions"] == {}
    assert facts["asset_pack"] == ""


def test_it_also_runs_as_text_where_the_file_cannot_be_read() -> None:
    text = Path(probe.__file__).read_text(encoding="utf-8")
    assert facts_of("-I", "-S", "-c", text)["python"] == sys.version.split()[0]


def test_the_doctor_has_the_same_facts_with_the_same_defaults() -> None:
    defaults = {field.name: field.default for field in dataclasses.fields(Worker)}
    for field in dataclasses.fields(Facts):
        assert field.name in defaults
        if field.name not in ("python", "versions"):
            assert field.default == defaults[field.name], field.name
    assert defaults.keys() - {field.name for field in dataclasses.fields(Facts)} == {"command", "error"}


def test_the_gpus_are_those_of_the_driver_library(machine: Callable[..., None]) -> None:
    machine("0a,1bm")
    facts = facts_of("-I", "-S", probe.__file__)
    assert (facts["driver_cuda"], facts["devices"]) == ("13.0", ["NVIDIA Fake", "NVIDIA Fake MIG 1g.5gb"])


@pytest.mark.parametrize(
    ("text", "version", "build"),
    [
        ("__version__ = '2.11.0+cu130'\ncuda: Optional[str] = '13.0'\n", "2.11.0+cu130", "13.0"),
        ("__version__ = '2.11.0+cpu'\ncuda: Optional[str] = None\n", "2.11.0+cpu", None),
    ],
)
def test_the_cuda_of_torch_is_read_without_importing_it(
    tmp_path: Path, text: str, version: str, build: str | None
) -> None:
    install_torch(tmp_path, text)
    facts = facts_of("-S", probe.__file__, PYTHONPATH=str(tmp_path))
    assert (facts["versions"]["torch"], facts["torch_cuda"]) == (version, build)


def test_modules_that_every_start_compiles_again_are_reported(tmp_path: Path) -> None:
    install_torch(tmp_path, "__version__ = '2.11.0+cpu'\n")
    assert facts_of("-S", probe.__file__, PYTHONPATH=str(tmp_path))["bytecode"]
    assert not facts_of("-S", probe.__file__, PYTHONPATH=str(tmp_path), PYTHONDONTWRITEBYTECODE="1")["bytecode"]
