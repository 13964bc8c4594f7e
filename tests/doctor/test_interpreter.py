"""The doctor's checks of the worker's interpreter, from facts and from real interpreters."""

from __future__ import annotations

import compileall
import dataclasses
import os
import shlex
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

import rlnb
from rlnb.doctor import interpreter
from rlnb.doctor.interpreter import Worker
from rlnb.machine.packages import ACCEPT_EULA, install_line

WAIT_S = 20.0
"""For one answer of a busy machine."""
FIT = Worker(
    command="python",
    python="3.12.1",
    versions={"rlnb": rlnb.__version__, "isaaclab": "3.0.0", "torch": "2.11.0+cu130", "warp-lang": "1.17.0"},
    torch_cuda="13.0",
    kernel_cache="/cache/warp/1.17.0",
    kernel_cache_mib=7.0,
)
GPU = dataclasses.replace(FIT, driver_cuda="13.2", devices=("NVIDIA H200", "NVIDIA H200"))


def _without(worker: Worker, name: str, **changes: Any) -> Worker:
    versions = {key: value for key, value in (worker.versions or {}).items() if key != name}
    return dataclasses.replace(worker, versions=versions, **changes)


def _with(worker: Worker, name: str, version: str, **changes: Any) -> Worker:
    return dataclasses.replace(worker, versions={**(worker.versions or {}), name: version}, **changes)


@pytest.mark.parametrize("version", ["3.0.0", "3.0", "3.0.4.post1"])
def test_isaac_lab_3_0_is_ok(version: str) -> None:
    assert interpreter.check_isaaclab(_with(FIT, "isaaclab", version)).level == "ok"


@pytest.mark.parametrize("version", ["3.1.0", "3.01", "3.10.2"])
def test_another_release_line_of_isaac_lab_is_a_warning_that_names_the_tested_one(version: str) -> None:
    finding = interpreter.check_isaaclab(_with(FIT, "isaaclab", version))
    assert finding.level == "warning"
    assert (
        f"isaaclab {version} is not a release that rlnb {rlnb.__version__} is tested with. Use isaaclab 3.0.0."
        in finding.text
    )
    assert finding.fix == install_line("rlnb[isaaclab]", python="python")


@pytest.mark.parametrize("version", ["2.3.2.post1", "4.0.0", "30.0"])
def test_another_major_version_of_isaac_lab_is_a_fault_but_its_scripts_can_be_runs(version: str) -> None:
    finding = interpreter.check_isaaclab(_with(FIT, "isaaclab", version))
    assert finding.level == "fault"
    assert finding.fix.startswith(install_line("rlnb[isaaclab]", python="python"))
    assert finding.fix.endswith(f", or use rlnb.train(script=...) for training scripts of Isaac Lab {version}")


def test_the_doctor_says_whether_tasks_can_use_physx_without_isaac_sim() -> None:
    assert interpreter.check_ovphysx(_with(FIT, "ovphysx", "0.6.4")).text.startswith("0.6.4, ")
    finding = interpreter.check_ovphysx(FIT)
    assert finding.level == "ok", "no task needs it unless it selects it"
    assert 'physics="ovphysx" needs it' in finding.text
    assert "[physx]" in finding.text


def test_on_python_3_11_the_doctor_names_the_isaac_lab_that_pip_installs_and_the_python_to_use() -> None:
    finding = interpreter.check_isaaclab(_with(FIT, "isaaclab", "2.3.2.post1", python="3.11.9"))
    assert finding.level == "fault"
    assert "on Python 3.11, pip silently installs isaaclab 2.3.x, which needs Isaac Sim" in finding.text
    assert "python3.12 -m venv" in finding.fix
    assert "rlnb.options.python" in finding.fix


def test_isaac_sim_whose_terms_are_not_accepted_is_a_fault_and_stays_unimported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "isaacsim" / "kit" / "extscore").mkdir(parents=True)
    (tmp_path / "isaacsim" / "__init__.py").write_text("input('Do you accept the EULA? (Yes/No): ')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.delenv(ACCEPT_EULA, raising=False)
    worker = interpreter.look(None, WAIT_S)
    assert worker.error == ""
    finding = interpreter.check_isaacsim(worker, {})
    assert finding.level == "fault"
    assert finding.text.endswith(f"{tmp_path / 'isaacsim'}. The terms of Isaac Sim are not accepted.")
    assert finding.fix.endswith(f"If you accept them, set {ACCEPT_EULA}=YES.")
    monkeypatch.setenv(ACCEPT_EULA, "yes")
    assert interpreter.check_isaacsim(interpreter.look(None, WAIT_S), {}).level == "ok"
    assert interpreter.check_isaacsim(FIT, {}).level == "ok"


@pytest.mark.parametrize(
    ("capabilities", "level"), [("compute,utility", "warning"), ("compute,graphics,utility", "ok"), ("all", "ok")]
)
def test_a_container_without_graphics_is_a_warning_for_isaac_sim(capabilities: str, level: str) -> None:
    worker = dataclasses.replace(FIT, isaacsim="/env/isaacsim")
    finding = interpreter.check_isaacsim(worker, {interpreter.CAPABILITIES: capabilities})
    assert (finding.level, finding.text.startswith("binary distribution in /env/isaacsim")) == (level, True)
    assert finding.fix == ("Start the container with NVIDIA_DRIVER_CAPABILITIES=all." if level == "warning" else "")


def test_a_fix_for_an_interpreter_with_isaac_sim_keeps_its_packages() -> None:
    worker = _without(FIT, "rlnb", isaacsim="/env/isaacsim")
    fix = interpreter.check_worker_rlnb(worker).fix
    assert fix == install_line("rlnb", python="python", isaacsim=True)
    assert fix != install_line("rlnb", python="python")


def test_a_missing_isaac_lab_on_python_3_12_needs_only_pip() -> None:
    finding = interpreter.check_isaaclab(_without(FIT, "isaaclab"))
    assert (finding.level, finding.fix) == ("fault", install_line("rlnb[isaaclab]", python="python"))


@pytest.mark.parametrize("worker", [_without(FIT, "rlnb"), _with(FIT, "rlnb", "0.0.1")])
def test_the_worker_needs_the_same_version_of_rlnb(worker: Worker) -> None:
    finding = interpreter.check_worker_rlnb(worker)
    assert (finding.level, finding.fix) == ("fault", install_line("rlnb", python="python"))
    assert interpreter.check_worker_rlnb(FIT).level == "ok"


def test_an_interpreter_that_does_not_start_is_a_fault_and_the_rest_is_still_reported() -> None:
    worker = interpreter.look("/no/such/python", 3.0)
    findings = interpreter.check_worker(worker, "", None, {})
    assert findings[0].level == "fault"
    assert "/no/such/python" in findings[0].text
    assert [finding.name for finding in findings] == ["worker", "NVIDIA driver", "asset root"]


def test_an_interpreter_that_fails_is_reported_with_its_last_line() -> None:
    worker = interpreter.look(shlex.join(["/bin/sh", "-c", "echo first >&2; echo last words >&2; exit 4"]), 3.0)
    assert worker.error == "last words"


def test_an_interpreter_that_hangs_is_abandoned() -> None:
    start = time.monotonic()
    worker = interpreter.look(shlex.join([sys.executable, "-c", "import time; time.sleep(60)"]), 0.5)
    assert worker.error == "no answer in 0.5 s"
    assert time.monotonic() - start < WAIT_S


def test_output_of_a_start_script_does_not_hide_the_facts() -> None:
    script = f'echo "[INFO] Using python from: here"; exec {shlex.quote(sys.executable)} "$@"'
    worker = interpreter.look(shlex.join(["/bin/sh", "-c", script, "sh"]), WAIT_S)
    assert worker.error == ""
    assert worker.python == ".".join(map(str, sys.version_info[:3]))
    assert worker.version("rlnb") == rlnb.__version__


def test_the_facts_pass_through_isaaclab_sh(isaaclab_sh: str) -> None:
    worker = interpreter.look(isaaclab_sh, WAIT_S)
    assert worker.error == ""
    assert dataclasses.replace(worker, command="") == dataclasses.replace(interpreter.look(None, WAIT_S), command="")


def test_an_abandoned_interpreter_leaves_no_process(
    isaaclab_sh: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "probe.py").write_text("import os, time; open('pid', 'w').write(str(os.getpid())); time.sleep(60)")
    monkeypatch.setattr(interpreter, "PROBE", tmp_path / "probe.py")
    monkeypatch.chdir(tmp_path)
    assert interpreter.look(isaaclab_sh, 3.0).error == "no answer in 3 s"
    deadline = time.monotonic() + WAIT_S
    while psutil.pid_exists(int((tmp_path / "pid").read_text())):
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.isaaclab
def test_the_warp_cache_is_where_its_variable_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARP_CACHE_PATH", str(tmp_path))
    cache = Path(interpreter.look(None, WAIT_S).kernel_cache)
    assert cache.parent == tmp_path.resolve()
    cache.mkdir()
    (cache / "wp_kernel.o").write_bytes(bytes(2**20))
    assert interpreter.look(None, WAIT_S).kernel_cache_mib == 1.0


@pytest.mark.isaaclab
def test_kernels_that_an_image_brings_are_reported_until_the_first_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WARP_CACHE_PATH", str(tmp_path / "own"))
    empty = Path(interpreter.look(None, WAIT_S).kernel_cache)
    brought = tmp_path / "image" / "warp" / empty.name
    brought.mkdir(parents=True)
    (brought / "wp_kernel.o").write_bytes(bytes(2**20))
    monkeypatch.setenv("RLNB_PREBUILT", str(tmp_path / "image"))
    worker = interpreter.look(None, WAIT_S)
    assert (worker.kernel_cache, worker.kernel_cache_mib) == (str(brought), 1.0)


def test_an_empty_kernel_cache_is_reported_with_the_time_of_the_first_run() -> None:
    assert "compiles" in interpreter.check_kernel_cache(dataclasses.replace(FIT, kernel_cache_mib=0.0)).text
    assert interpreter.check_kernel_cache(FIT).text == "/cache/warp/1.17.0: 7.0 MiB"


def test_modules_that_each_start_recompiles_are_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = tmp_path / "torch"
    torch.mkdir()
    (torch / "__init__.py").touch()
    (torch / "version.py").write_text("__version__ = '2.11.0+cpu'\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    assert interpreter.look(None, WAIT_S).bytecode
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    worker = interpreter.look(None, WAIT_S)
    finding = interpreter.check_bytecode(worker)
    assert (worker.bytecode, finding.level) == (False, "warning")
    assert "compileall" in finding.fix
    compileall.compile_file(torch / "__init__.py", quiet=1)
    assert interpreter.look(None, WAIT_S).bytecode


@pytest.mark.parametrize(
    ("worker", "driver", "level", "word"),
    [
        (FIT, "", "ok", "there is no NVIDIA driver, so trainings run on the CPU"),
        (GPU, "580.1", "ok", "2 x NVIDIA H200"),
        (FIT, "580.1", "fault", "CUDA finds no GPU"),
        (dataclasses.replace(GPU, torch_cuda=None), "580.1", "warning", "a CPU build"),
        (dataclasses.replace(GPU, driver_cuda="12.4"), "550.1", "fault", "the driver supports only CUDA 12.4"),
        (dataclasses.replace(GPU, torch_cuda="13.4"), "580.1", "ok", "2 x NVIDIA H200"),
        (_without(FIT, "torch"), "", "fault", "not installed"),
    ],
)
def test_torch_is_judged_against_the_driver(worker: Worker, driver: str, level: str, word: str) -> None:
    finding = interpreter.check_torch(worker, driver)
    assert finding.level == level
    assert word in finding.text


def test_assets_come_from_the_setting_then_the_variable_then_the_pack(tmp_path: Path) -> None:
    pack, folder = tmp_path / "pack", tmp_path / "assets"
    folder.mkdir()
    worker = dataclasses.replace(FIT, asset_pack=str(pack))
    env = {"ISAACSIM_ASSET_ROOT": "https://assets.example"}
    assert interpreter.check_assets(worker, str(folder), env).text == f"{folder} (set in the options)"
    assert interpreter.check_assets(worker, None, env).text == "https://assets.example (ISAACSIM_ASSET_ROOT)"
    assert "which the first run builds" in interpreter.check_assets(worker, None, {}).text
    pack.mkdir()
    assert f"the local asset pack in {pack}" in interpreter.check_assets(worker, None, {}).text
    finding = interpreter.check_assets(dataclasses.replace(worker, assets_failed={"ant": "no mesh."}), None, {})
    assert finding.level == "warning"
    assert finding.text.endswith("which lacks ant: no mesh.")
    assert interpreter.check_assets(FIT, "", {}).level == "warning"


def test_an_asset_folder_that_is_not_there_is_a_fault(tmp_path: Path) -> None:
    finding = interpreter.check_assets(FIT, "", {"ISAACSIM_ASSET_ROOT": str(tmp_path / "gone")})
    assert finding.level == "fault"
    assert "rlnb assets build" in finding.fix
