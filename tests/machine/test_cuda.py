"""The driver and its library, asked by the file itself, against a stand-in for the library."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rlnb.machine import cuda

Machine = Callable[..., None]


def answer(*options: str) -> dict[str, Any]:
    """Return what the file prints in a process of its own."""
    argv = [sys.executable, *options, cuda.__file__]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    return cuda.read(done.stdout)


def test_the_file_needs_only_the_standard_library(machine: Machine) -> None:
    machine("0a,1bm")
    assert answer("-I", "-S") == {
        "cuda": "13.0",
        "gpus": [
            ["GPU-00000000-0000-0000-0000-00000000000a", "NVIDIA Fake"],
            ["MIG-00000000-0000-0000-0000-00000000001b", "NVIDIA Fake MIG 1g.5gb"],
        ],
        "error": "",
        "torch_cuda": None,
    }


def test_an_output_without_facts_is_an_error() -> None:
    with pytest.raises(ValueError, match="Expecting value"):
        cuda.read("a banner of the driver\n")


def test_a_driver_that_does_not_start_has_a_version_and_an_error(machine: Machine) -> None:
    machine("0a", error=803)
    facts = answer("-I", "-S")
    assert (facts["cuda"], facts["gpus"], facts["error"]) == ("13.0", [], "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH")


def test_a_library_that_does_not_load_gives_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / cuda.LIBRARY).write_text("not a library")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    facts = answer("-I", "-S")
    assert (facts["cuda"], facts["gpus"], facts["error"]) == ("", [], "")


@pytest.mark.parametrize(
    "line",
    [
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun Jul 27 07:10:05 UTC 2025",
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build  (builder@host)",
    ],
)
def test_the_version_of_the_closed_and_of_the_open_driver_is_read(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cuda, "VERSION_FILE", str(tmp_path / "version"))
    assert cuda.driver_version() == ""
    (tmp_path / "version").write_text(f"{line}\nGCC version:  gcc version 14.2.0\n")
    assert cuda.driver_version() == "580.65.06"


@pytest.mark.parametrize(("line", "build"), [("cuda: Optional[str] = '13.0'", "13.0"), ("cuda: None = None", "")])
def test_the_build_of_torch_is_read_without_an_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, build: str
) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("raise SystemExit('torch was imported')\n")
    (tmp_path / "torch" / "version.py").write_text(f"__version__ = '2.11.0'\n{line}\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert answer()["torch_cuda"] == build


def test_wsl_has_a_driver_if_nvidias_library_loads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "FILES", (str(tmp_path / "version"), str(tmp_path / "dxg")))
    monkeypatch.setattr(cuda, "WSL_FILE", str(tmp_path / "dxg"))
    assert not cuda.has_driver()
    (tmp_path / "dxg").touch()  # WSL has it for Intel's and AMD's GPUs too
    monkeypatch.setattr(cuda, "LIBRARY", "libmissing.so.1")
    assert not cuda.has_driver()
    monkeypatch.setattr(cuda, "LIBRARY", "libc.so.6")
    assert cuda.has_driver()
    (tmp_path / "version").touch()
    monkeypatch.setattr(cuda, "LIBRARY", "libmissing.so.1")
    assert cuda.has_driver(), "a machine with NVIDIA's kernel module has a driver, even if the library is missing"
