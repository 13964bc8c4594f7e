"""The doctor's checks of the machine, each from facts."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from rlnb.doctor import machine
from rlnb.machine.cores import Cores


def test_little_memory_one_cpu_and_a_small_disk_are_warnings() -> None:
    assert [machine.check_memory(8, free).level for free in (1.0, 6.0)] == ["warning", "ok"]
    assert [machine.check_disk(mib).level for mib in (10, 500, 9000)] == ["fault", "warning", "ok"]


def test_the_cores_and_the_threads_of_a_training_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 4)

    def found(number: float, busy: float = 0.0) -> tuple[str, str]:
        finding = machine.check_cpus(Cores(number, "NCPUS=3"), busy, "x86_64")
        return finding.level, finding.text

    assert found(3.0) == ("ok", "3 (x86_64; NCPUS=3; 3 threads for a training)")
    assert [found(number)[0] for number in (0.5, 1.5, 2)] == ["warning", "warning", "ok"]
    assert [found(3, busy)[0] for busy in (2.5, 3.5)] == ["ok", "warning"]
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert found(3)[1] == "3 (x86_64; NCPUS=3; OMP_NUM_THREADS=1)"


def test_a_slurm_that_does_not_answer_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert machine.check_slurm(None, "", "sinfo is not installed").level == "ok", "a user's machine needs no Slurm"
    (sinfo := tmp_path / "sinfo").write_text("#!/bin/sh\necho gpu; echo cpu; echo gpu\n")
    sinfo.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert machine.check_slurm("sbatch", *machine.partitions()).text == "sbatch, partitions: cpu, gpu"
    sinfo.write_text("#!/bin/sh\necho 'sinfo: error: no config' >&2; echo 'sinfo: fatal: no source' >&2; exit 1\n")
    finding = machine.check_slurm("sbatch", *machine.partitions())
    assert (finding.level, finding.text.rpartition(": ")[2]) == ("warning", "no source")
    sinfo.write_text("#!/bin/sh\nexec sleep 5\n")
    monkeypatch.setattr(machine, "SINFO_S", 0.3)
    assert "did not answer in 0.3 s" in machine.check_slurm("sbatch", *machine.partitions()).text


def test_checking_the_run_folder_leaves_no_file_behind(tmp_path: Path) -> None:
    root = tmp_path / "not" / "yet"
    folder, _ = machine.check_folder(root)
    assert (folder.level, folder.text) == ("ok", f"{root}: writable, not created yet")
    assert list(tmp_path.iterdir()) == []


def test_a_run_folder_that_others_can_replace_is_no_good_one(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    finding, _ = machine.check_folder(tmp_path)
    assert finding.level == "fault"
    assert f"chmod -R go-w {tmp_path}" in finding.fix


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
def test_ipykernel_7_0_to_7_3_is_ok_for_widgets(version: str | None, level: str) -> None:
    finding = machine.check_jupyter("4.6.6", version)
    assert finding.level == level
    assert bool(finding.fix) == (level != "ok")


def test_the_fault_of_ipykernel_7_4_is_explained() -> None:
    assert "drops messages" in machine.check_jupyter("4.6.6", "7.4.0").text


def test_a_browser_is_needed_for_pdf_only() -> None:
    assert machine.check_browser("/usr/bin/chromium").text == "/usr/bin/chromium (for PDF)"
    assert (machine.check_browser(None).level, machine.check_browser(None).fix) == ("warning", "apt install chromium")


def test_a_browser_that_a_report_can_use_is_one_that_the_doctor_finds(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (chrome := tmp_path / "google-chrome-stable").write_text("#!/bin/sh\n")
    chrome.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    (finding,) = machine.checks(tmp_path)["browser"]()
    assert finding.text == f"{chrome} (for PDF)"


# -- notebook host ---------------------------------------------------------------------------------------------------


def test_a_hosted_environment_is_reported_with_its_prefix_and_no_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = {"JUPYTERHUB_SERVICE_PREFIX": "/user/ann/", "JUPYTERHUB_API_TOKEN": "s3cret", "DSW_INSTANCE_ID": "dsw-1"}
    monkeypatch.setattr(machine, "server_base_urls", lambda: [])
    findings = machine.check_hosted(tmp_path, env)
    assert findings[0].text == "JupyterHub and PAI-DSW; base_url /user/ann/"
    assert "s3cret" not in str(findings)
    assert "no hosted environment" in machine.check_hosted(tmp_path, {})[0].text


def place(**changes: Any) -> machine.Place:
    usual = {"hosts": ("PAI-DSW",), "base_urls": (), "proxy": True, "home": True, "cache": "", "persistent": True}
    return machine.Place(**{**usual, "root": Path("/mnt/workspace/rlnb-runs"), **changes})


@pytest.mark.parametrize(
    ("changes", "name", "fix"),
    [
        ({"persistent": False}, "hosted folder", "RLNB_ROOT"),
        ({"proxy": False}, "hosted proxy", "jupyter-server-proxy"),
        ({"home": False}, "hosted cache", "WARP_CACHE_PATH=/mnt/workspace/.cache/warp"),
    ],
)
def test_each_missing_setting_of_a_hosted_notebook_is_a_warning_with_its_fix(
    changes: dict[str, Any], name: str, fix: str
) -> None:
    assert len(machine.judge_host(place())) == 1, "a complete setup has no warnings"
    finding = machine.judge_host(place(**changes))[-1]
    assert (finding.name, finding.level) == (name, "warning")
    assert fix in finding.fix


def test_the_users_own_machine_needs_no_settings() -> None:
    assert len(machine.judge_host(place(hosts=(), persistent=False, proxy=False))) == 1


def test_the_urls_are_those_of_servers_that_still_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path))
    for name, text in {
        "jpserver-1.json": json.dumps({"pid": os.getpid(), "base_url": "/lab/"}),
        "jpserver-2.json": json.dumps({"pid": 2**31 - 1, "base_url": "/ended/"}),
        "jpserver-3.json": "{",
    }.items():
        (tmp_path / name).write_text(text)
    assert machine.server_base_urls() == ["/lab/"]
