"""The default of ``torch_compile``."""

from __future__ import annotations

import logging
import sysconfig
from pathlib import Path

import pytest
from rlnb_rl_games import compiling
from rlnb_rl_games.config import Settings


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Provide the folder of the programs of a machine that has Python's headers and no compiler."""
    (tmp_path / "Python.h").touch()
    monkeypatch.setattr(sysconfig, "get_path", lambda *_: str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    return tmp_path


def add_compiler(folder: Path, name: str) -> None:
    program = folder / name
    program.touch()
    program.chmod(0o755)


def test_a_cpu_does_not_compile(machine: Path, caplog: pytest.LogCaptureFixture) -> None:
    add_compiler(machine, "gcc")
    settings: Settings = {}
    compiling.set_default(settings, "cpu")
    assert settings == {"torch_compile": False}
    assert not caplog.records


@pytest.mark.parametrize("name", ["gcc", "clang", "icx"])
def test_a_gpu_keeps_the_default_of_rl_games_on_a_machine_with_a_compiler(
    machine: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    add_compiler(machine, name)
    if name == "icx":
        monkeypatch.setenv("CC", name)
    settings: Settings = {}
    compiling.set_default(settings, "cuda:0")
    assert settings == {}


def test_a_gpu_does_not_compile_without_what_triton_needs(machine: Path, caplog: pytest.LogCaptureFixture) -> None:
    (machine / "Python.h").unlink()
    settings: Settings = {}
    with caplog.at_level(logging.WARNING):
        compiling.set_default(settings, "cuda:0")
    assert settings == {"torch_compile": False}
    assert "torch_compile is off because this machine has no C compiler and no Python.h. Install gcc" in caplog.text


def test_the_compiler_that_cc_names_must_exist(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_compiler(machine, "gcc")
    monkeypatch.setenv("CC", "icx")
    settings: Settings = {}
    compiling.set_default(settings, "cuda:0")
    assert settings == {"torch_compile": False}


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
def test_a_value_in_the_agent_config_is_kept(machine: Path, device: str) -> None:
    settings: Settings = {"torch_compile": True}
    compiling.set_default(settings, device)
    assert settings == {"torch_compile": True}
