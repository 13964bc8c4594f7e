"""The doctor: each judgement from facts, and the whole look within its time."""

from __future__ import annotations

import compileall
import dataclasses
import json
import os
import shlex
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import rlnb
from rlnb.cli import app
from rlnb.doctor import doctor, interpreter, machine, notebook_host
from rlnb.doctor.finding import Finding
from rlnb.doctor.interpreter import Worker
from rlnb.settings import options

LIMIT_S = 5.0
"""Promised for the whole look; what is measured on an idle machine is 1 s."""
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


def _without(worker: Worker, name: str, **changed: Any) -> Worker:
    versions = {key: value for key, value in (worker.versions or {}).items() if key != name}
    return dataclasses.replace(worker, versions=versions, **changed)


def _with(worker: Worker, name: str, version: str, **changed: Any) -> Worker:
    return dataclasses.replace(worker, versions={**(worker.versions or {}), name: version}, **changed)


# -- interpreters ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "level"),
    [((3, 10, 9), "fault"), ((3, 11, 0), "ok"), ((3, 12, 1), "ok"), ((3, 13, 2), "ok"), ((3, 14, 0), "fault")],
)
def test_the_kernel_runs_on_python_3_11_to_3_13(version: tuple[int, ...], level: str) -> None:
    assert doctor.check_python(version).level == level


@pytest.mark.parametrize("version", ["3.0.0", "3.0", "3.0.4.post1"])
def test_isaac_lab_3_0_is_right(version: str) -> None:
    assert interpreter.check_isaaclab(_with(FIT, "isaaclab", version)).level == "ok"


@pytest.mark.parametrize("version", ["2.3.2.post1", "3.1.0", "30.0", "3.01"])
def test_every_other_line_of_isaac_lab_is_a_fault(version: str) -> None:
    assert interpreter.check_isaaclab(_with(FIT, "isaaclab", version)).level == "fault"


def test_on_python_3_11_the_doctor_says_which_isaac_lab_pip_takes_and_asks_for_another_python() -> None:
    finding = interpreter.check_isaaclab(_with(FIT, "isaaclab", "2.3.2.post1", python="3.11.9"))
    assert finding.level == "fault"
    assert "on 3.11 pip silently resolves isaaclab to 2.3.x, the Isaac Sim line" in finding.found
    assert "python3.12 -m venv" in finding.fix
    assert "rlnb.options.python" in finding.fix


def test_a_missing_isaac_lab_on_python_3_12_needs_only_pip() -> None:
    finding = interpreter.check_isaaclab(_without(FIT, "isaaclab"))
    assert (finding.level, finding.fix) == ("fault", "python -m pip install 'rlnb[isaaclab]'")


@pytest.mark.parametrize("worker", [_without(FIT, "rlnb"), _with(FIT, "rlnb", "0.0.1")])
def test_the_worker_needs_this_very_rlnb(worker: Worker) -> None:
    finding = interpreter.check_worker_rlnb(worker)
    assert (finding.level, finding.fix) == ("fault", f"python -m pip install rlnb=={rlnb.__version__}")
    assert interpreter.check_worker_rlnb(FIT).level == "ok"


def test_an_interpreter_that_does_not_start_is_a_fault_and_the_rest_is_still_told() -> None:
    worker = interpreter.look("/no/such/python", 3.0)
    findings = interpreter.check_worker(worker, None, None, {})
    assert findings[0].level == "fault"
    assert "/no/such/python" in findings[0].found
    assert [finding.name for finding in findings] == ["worker", "NVIDIA driver", "asset root"]


def test_an_interpreter_that_fails_is_told_by_its_last_words() -> None:
    worker = interpreter.look(shlex.join(["/bin/sh", "-c", "echo first >&2; echo last words >&2; exit 4"]), 3.0)
    assert worker.error == "last words"


def test_an_interpreter_that_hangs_is_left() -> None:
    begun = time.monotonic()
    worker = interpreter.look(shlex.join([sys.executable, "-c", "import time; time.sleep(60)"]), 0.5)
    assert worker.error == "no answer in 0.5 s"
    assert time.monotonic() - begun < WAIT_S


def test_chatter_of_a_start_script_does_not_hide_the_facts() -> None:
    script = f'echo "[INFO] Using python from: here"; exec {shlex.quote(sys.executable)} "$@"'
    worker = interpreter.look(shlex.join(["/bin/sh", "-c", script, "sh"]), WAIT_S)
    assert worker.error == ""
    assert worker.python == ".".join(map(str, sys.version_info[:3]))
    assert worker.version("rlnb") == rlnb.__version__


@pytest.mark.isaaclab
def test_the_warp_cache_is_where_its_variable_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARP_CACHE_PATH", str(tmp_path))
    cache = Path(interpreter.look(None, WAIT_S).kernel_cache)
    assert cache.parent == tmp_path.resolve()
    cache.mkdir()
    (cache / "wp_kernel.o").write_bytes(bytes(2**20))
    assert interpreter.look(None, WAIT_S).kernel_cache_mib == 1.0


def test_an_empty_kernel_cache_says_that_the_first_run_compiles() -> None:
    assert "compiles" in interpreter.check_kernel_cache(dataclasses.replace(FIT, kernel_cache_mib=0.0)).found
    assert interpreter.check_kernel_cache(FIT).found == "/cache/warp/1.17.0: 7.0 MiB"


def test_modules_that_each_start_compiles_anew_are_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_broken_plugin_is_a_fault_that_names_its_package() -> None:
    finding = doctor.check_plugins({"a": "rlnb-a 1", "b": "rlnb-b 2 does not load: ImportError: no torch"})
    assert (finding.level, finding.fix) == ("fault", "Update or uninstall rlnb-b.")
    assert doctor.check_plugins({"a": "rlnb-a 1"}).level == "ok"
    assert doctor.check_plugins({}).level == "fault"


# -- GPU -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("worker", "driver", "level", "word"),
    [
        (FIT, None, "ok", "no CUDA: trainings run on the CPU"),
        (GPU, "580.1", "ok", "2 x NVIDIA H200"),
        (FIT, "580.1", "fault", "CUDA shows no GPU"),
        (dataclasses.replace(GPU, torch_cuda=None), "580.1", "warning", "built for CPU"),
        (dataclasses.replace(GPU, driver_cuda="12.4"), "550.1", "fault", "the driver speaks 12.4"),
        (dataclasses.replace(GPU, torch_cuda="13.4"), "580.1", "ok", "2 x NVIDIA H200"),
        (_without(FIT, "torch"), None, "fault", "missing"),
    ],
)
def test_torch_is_judged_against_the_driver(worker: Worker, driver: str | None, level: str, word: str) -> None:
    finding = interpreter.check_torch(worker, driver)
    assert finding.level == level
    assert word in finding.found


# -- assets ----------------------------------------------------------------------------------------------


def test_assets_come_from_the_setting_then_the_variable_then_the_pack(tmp_path: Path) -> None:
    pack, folder = tmp_path / "pack", tmp_path / "assets"
    folder.mkdir()
    worker = dataclasses.replace(FIT, asset_pack=str(pack))
    env = {"ISAACSIM_ASSET_ROOT": "https://assets.example"}
    assert interpreter.check_assets(worker, str(folder), env).found == f"{folder} (set in the options)"
    assert interpreter.check_assets(worker, None, env).found == "https://assets.example (ISAACSIM_ASSET_ROOT)"
    assert "which the first run builds" in interpreter.check_assets(worker, None, {}).found
    pack.mkdir()
    assert f"built: {pack}" in interpreter.check_assets(worker, None, {}).found
    lacking = interpreter.check_assets(dataclasses.replace(worker, assets_failed={"ant": "no mesh."}), None, {})
    assert lacking.level == "warning"
    assert lacking.found.endswith("without ant: no mesh.")
    assert interpreter.check_assets(FIT, None, {}).level == "warning"


def test_an_asset_folder_that_is_not_there_is_a_fault(tmp_path: Path) -> None:
    finding = interpreter.check_assets(FIT, None, {"ISAACSIM_ASSET_ROOT": str(tmp_path / "gone")})
    assert finding.level == "fault"
    assert "rlnb assets build" in finding.fix


# -- machine ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "cpus"), [("max 100000", None), ("200000 100000", 2.0), ("50000 100000", 0.5), ("", None)]
)
def test_a_container_s_share_of_the_cpus_is_read(text: str, cpus: float | None) -> None:
    assert machine.cpu_quota(text) == cpus


def test_little_memory_one_cpu_and_a_small_disk_are_warnings() -> None:
    assert [machine.check_memory(8, free).level for free in (1.0, 6.0)] == ["warning", "ok"]
    assert [machine.check_cpus(count, "x86_64").level for count in (0.5, 1, 2)] == ["warning", "warning", "ok"]
    assert [machine.check_disk(mib).level for mib in (10, 500, 9000)] == ["fault", "warning", "ok"]


def test_a_slurm_that_does_not_answer_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert machine.check_slurm(None, "", "there is no sinfo").level == "ok", "a machine of one's own needs none"
    (sinfo := tmp_path / "sinfo").write_text("#!/bin/sh\necho gpu; echo cpu; echo gpu\n")
    sinfo.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert machine.check_slurm("sbatch", *machine.partitions()).found == "sbatch, partitions: cpu, gpu"
    sinfo.write_text("#!/bin/sh\necho 'sinfo: error: no config' >&2; echo 'sinfo: fatal: no source' >&2; exit 1\n")
    finding = machine.check_slurm("sbatch", *machine.partitions())
    assert (finding.level, finding.found.rpartition(": ")[2]) == ("warning", "no source")
    sinfo.write_text("#!/bin/sh\nexec sleep 5\n")
    monkeypatch.setattr(machine, "SINFO_S", 0.3)
    assert "no answer in 0.3 s" in machine.check_slurm("sbatch", *machine.partitions()).found


def test_looking_at_the_run_folder_leaves_nothing_there(tmp_path: Path) -> None:
    root = tmp_path / "not" / "yet"
    folder, _ = machine.check_folder(root)
    assert (folder.level, folder.found) == ("ok", f"{root}: can be written, not made yet")
    assert list(tmp_path.iterdir()) == []


def test_a_run_folder_that_cannot_be_written_is_a_fault(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    finding, _ = machine.check_folder(file)
    assert finding.level == "fault"
    assert "RLNB_ROOT" in finding.fix


@pytest.mark.parametrize(
    ("version", "level"),
    [
        ("6.29.5", "warning"),
        ("7.0.0", "ok"),
        ("7.3.0", "ok"),
        ("7.4.0", "warning"),
        ("8.0", "warning"),
        (None, "warning"),
    ],
)
def test_ipykernel_7_up_to_7_3_carries_widgets(version: str | None, level: str) -> None:
    finding = machine.check_jupyter("4.6.6", version)
    assert finding.level == level
    assert bool(finding.fix) == (level != "ok")


def test_the_reason_against_ipykernel_7_4_is_told() -> None:
    assert "drops messages" in machine.check_jupyter("4.6.6", "7.4.0").found


def test_a_hosted_environment_is_told_by_its_prefix_and_nothing_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = {"JUPYTERHUB_SERVICE_PREFIX": "/user/ann/", "JUPYTERHUB_API_TOKEN": "s3cret", "DSW_INSTANCE_ID": "dsw-1"}
    monkeypatch.setattr(notebook_host, "server_base_urls", lambda: [])
    findings = notebook_host.check_hosted(tmp_path, env)
    assert findings[0].found == "JupyterHub and PAI-DSW; base_url /user/ann/"
    assert "s3cret" not in str(findings)
    assert "no hosted environment" in notebook_host.check_hosted(tmp_path, {})[0].found


def place(**changed: Any) -> notebook_host.Place:
    usual = {"hosts": ("PAI-DSW",), "base_urls": (), "proxy": True, "home": True, "cache": "", "kept": True}
    return notebook_host.Place(**{**usual, "root": Path("/mnt/workspace/rlnb-runs"), **changed})


@pytest.mark.parametrize(
    ("changed", "name", "fix"),
    [
        ({"kept": False}, "hosted folder", "RLNB_ROOT"),
        ({"proxy": False}, "hosted proxy", "jupyter-server-proxy"),
        ({"home": False}, "hosted cache", "WARP_CACHE_PATH=/mnt/workspace/.cache/warp"),
    ],
)
def test_what_a_hosted_notebook_lacks_is_told_with_the_fix(changed: dict[str, Any], name: str, fix: str) -> None:
    assert len(notebook_host.judge(place())) == 1, "where all is well, nothing is to be set"
    finding = notebook_host.judge(place(**changed))[-1]
    assert (finding.name, finding.level) == (name, "warning")
    assert fix in finding.fix


def test_a_machine_of_ones_own_needs_nothing() -> None:
    assert len(notebook_host.judge(place(hosts=(), kept=False, proxy=False))) == 1


# -- the whole -------------------------------------------------------------------------------------------


def test_one_check_that_hangs_or_breaks_does_not_cost_the_others() -> None:
    def broken() -> list[Finding]:
        raise ZeroDivisionError("of all things")

    def hanging() -> list[Finding]:
        time.sleep(60)
        return []

    begun = time.monotonic()
    checks = {"a": broken, "b": hanging, "c": lambda: [doctor.ok("c", "fine")]}
    findings = doctor._all_within(checks, 0.3)
    assert time.monotonic() - begun < WAIT_S
    assert [(finding.name, finding.level) for finding in findings] == [("a", "warning"), ("b", "warning"), ("c", "ok")]
    assert "ZeroDivisionError: of all things" in findings[0].found
    assert "no answer in 0.3 s" in findings[1].found


def test_the_whole_look_takes_less_than_five_seconds(tmp_path: Path) -> None:
    begun = time.monotonic()
    findings = doctor.examine(root=tmp_path)
    assert time.monotonic() - begun < LIMIT_S
    names = [finding.name for finding in findings]
    assert names[:3] == ["Python", "rlnb", "worker"]
    assert {"NVIDIA driver", "CPUs", "memory", "disk", "run folder", "asset root", "Jupyter", "hosted"} <= set(names)
    assert all(finding.fix for finding in findings if finding.level == "fault")


def test_the_command_exits_with_1_if_there_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options, "root", tmp_path)
    result = CliRunner().invoke(app.app, ["doctor", "--python", "/no/such/python[bold]", "--json"])
    assert result.exit_code == 1
    worker = next(finding for finding in json.loads(result.stdout) if finding["name"] == "worker")
    assert worker["level"] == "fault"
    assert worker["fix"]


def test_the_screen_shows_each_finding_and_the_fix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = [doctor.ok("CPUs", "2 [red]x[/red]"), doctor.warning("Jupyter", "old", "pip install 'a[lab]'")]
    monkeypatch.setattr(doctor, "examine", lambda **_: found)
    result = CliRunner().invoke(app.app, ["doctor"])
    assert result.exit_code == 0
    assert "2 [red]x[/red]" in result.stdout
    assert "fix: pip install 'a[lab]'" in result.stdout
