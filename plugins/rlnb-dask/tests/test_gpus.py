"""The facts about a node's GPUs, with stand-ins for NVIDIA's library and for torch."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from rlnb_dask import gpus, node

LIBRARY = """
#include <string.h>
int cuInit(unsigned flags) { return %(init)d; }
int cuDriverGetVersion(int *version) { *version = 12040; return 0; }
int cuDeviceGetCount(int *count) { *count = 2; return 0; }
int cuDeviceGetName(char *name, int length, int device) {
    strncpy(name, device ? "NVIDIA A100" : "NVIDIA H100", length);
    return 0;
}
"""


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that installs a library in place of NVIDIA's; its cuInit returns the number."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("There is no C compiler.")

    def install(init: int = 0) -> None:
        (tmp_path / "cuda.c").write_text(LIBRARY % {"init": init})
        library = str(tmp_path / "libcuda.so.1")
        subprocess.run([compiler, "-shared", "-fPIC", "-o", library, str(tmp_path / "cuda.c")], check=True)
        (tmp_path / "version").write_text(
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.14  Release Build\n"
        )
        monkeypatch.setattr(gpus, "DRIVER", tmp_path / "version")
        monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))

    return install


def test_the_gpus_and_the_driver_are_listed_in_a_process_of_their_own(driver: Callable[..., None]) -> None:
    driver()
    facts = gpus.look(None)
    assert facts.names == ("NVIDIA H100", "NVIDIA A100")
    assert (facts.driver, facts.driver_cuda) == ("550.54.14", "12.4")


def test_a_driver_that_does_not_start_has_no_gpus(driver: Callable[..., None]) -> None:
    driver(init=999)
    assert (gpus.look(None).names, gpus.look(None).driver_cuda) == ((), "12.4")


@pytest.mark.parametrize("module", ["Open Kernel Module for x86_64", "x86_64 Kernel Module"])
def test_the_driver_has_a_version_and_a_machine_without_one_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    monkeypatch.setattr(gpus, "DRIVER", tmp_path / "version")
    assert gpus.driver() == ""
    text = (
        f"NVRM version: NVIDIA UNIX {module}  580.65.06  Release Build  (dvs-builder@U22)\nGCC version:  gcc 12.3.0\n"
    )
    (tmp_path / "version").write_text(text)
    assert gpus.driver() == "580.65.06"


@pytest.mark.parametrize(("line", "build"), [("cuda: Optional[str] = '13.0'", "13.0"), ("cuda: None = None", "")])
def test_the_build_of_torch_is_read_without_an_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, build: str
) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("raise SystemExit('torch was imported')\n")
    (tmp_path / "torch" / "version.py").write_text(f"__version__ = '2.11.0'\n{line}\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert gpus.look(None).torch_cuda == build
    assert gpus.look(shlex.quote(sys.executable)).torch_cuda == build
    assert gpus.look(None, contained=True).torch_cuda is None, "the container has another torch"


def test_an_interpreter_without_torch_has_no_build() -> None:
    assert gpus.look(f"{shlex.quote(sys.executable)} -S").torch_cuda is None


def test_the_look_at_a_node_has_its_gpus_only_if_the_job_may_use_them(
    tmp_path: Path, driver: Callable[..., None]
) -> None:
    driver()
    facts = node.look(str(tmp_path), "node0", (), None, on_gpus=True)
    assert facts.gpus is not None
    assert len(facts.gpus.names) == 2
    assert node.look(str(tmp_path), "node0", (), None).gpus is None


def test_a_library_that_crashes_is_a_problem_of_the_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpus.sys, "executable", "/bin/false")
    facts = node.look(str(tmp_path), "node0", (), None, on_gpus=True)
    assert facts.problem == "the GPUs cannot be listed: it ended with 1. Check the driver with nvidia-smi"
