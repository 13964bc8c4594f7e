"""``rlnb assets``: build, check and mirror."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from rlnb.configs.card import Asset, AssetRoot, TaskCard
from rlnb.protocol import requests
from rlnb.simulation.pool import pool

Invoke = Callable[..., Result]


def test_mirror_prints_the_number_of_copied_files_and_fails_if_one_is_missing(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirrors: list[requests.Mirror] = []
    answers = [
        requests.Mirrored(root="https://x", copied=("a", "b"), existing=("c",), bytes=3 << 20),
        requests.Mirrored(root="https://x", missing={"robot.usd": "the task"}),
    ]

    def request(mirror: requests.Mirror, python: object, asset_root: object) -> requests.Mirrored:
        mirrors.append(mirror)
        return answers.pop(0)

    monkeypatch.setattr(pool, "request", request)
    result = invoke("assets", "mirror", "Isaac-Ant-Direct", "Isaac-Cartpole", tmp_path / "to")
    assert "2 files copied, 3.0 MiB; 1 existed already" in result.stdout
    assert f"export ISAACSIM_ASSET_ROOT={tmp_path / 'to'}" in result.stdout
    assert [task.id for task in mirrors[0].tasks] == ["Isaac-Ant-Direct", "Isaac-Cartpole"]
    assert mirrors[0].folder == str(tmp_path / "to")
    result = invoke("assets", "mirror", "Isaac-Ant-Direct", tmp_path / "to")
    assert result.exit_code == 1
    assert "missing: robot.usd, used by the task" in result.stdout
    assert "Give at least one task" in invoke("assets", "mirror", tmp_path / "to").stderr


def test_assets_build_prints_the_folder_and_the_packs_that_failed(invoke: Invoke) -> None:
    def build(**changes: Any) -> Any:
        answer = json.dumps({"folder": "$4:$5:$6:$7", "foreign": [], "failed": {}, **changes}).replace('"', '\\"')
        python = shlex.join(["/bin/sh", "-c", f'echo building; echo "{answer}"', "sh"])
        return invoke("assets", "build", "/here", "--force", "--robots", "--python", python)

    assert build().stdout.strip() == "assets-build:/here:--robots:--force"
    result = build(failed={"hands": "no isaaclab"}, foreign=["a.usd"])
    assert result.exit_code == 1
    assert "failed: hands: no isaaclab" in result.stderr
    assert "kept: a.usd" in result.stderr


def test_a_failed_assets_build_reports_why(invoke: Invoke) -> None:
    python = shlex.join(["/bin/sh", "-c", "echo no pack is installed >&2; exit 3", "sh"])
    result = invoke("assets", "build", "--python", python)
    assert result.exit_code == 2
    assert "no pack is installed" in result.stderr


@pytest.mark.parametrize(("files", "status"), [(["a.usd", "b.usd"], 0), (["a.usd"], 1)])
def test_assets_check_fails_if_a_file_is_missing_now(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: Sequence[str], status: int
) -> None:
    for name in files:
        (tmp_path / name).touch()
    assets = {name: Asset(path=str(tmp_path / name), exists=False) for name in ("a.usd", "b.usd")}
    assets["c.usd"] = Asset(path="https://cloud/c.usd", exists=None)
    asset_root = AssetRoot(path=str(tmp_path), reason="set for this run")
    card = TaskCard(task="T", assets=assets, asset_root=asset_root)
    monkeypatch.setattr("rlnb.tasks.task.task_card", lambda *_, **__: card)
    result = invoke("assets", "check", "T")
    assert result.exit_code == status
    assert result.stdout.count(" exists ") == len(files)
    assert result.stdout.count(" missing ") == 2 - len(files)
    assert "remote, not checked" in result.stdout


@pytest.mark.isaaclab
def test_the_assets_of_cartpole_exist(invoke: Invoke) -> None:
    """Needs ISAACSIM_ASSET_ROOT or the asset pack, which the worker builds if NVIDIA's cloud is not reachable."""
    result = invoke("assets", "check", "Isaac-Cartpole-Direct")
    pool.shut_down()
    assert result.exit_code == 0, result.output
    assert re.search(r"cartpole\.usd", result.stdout)
    assert " missing " not in result.stdout
