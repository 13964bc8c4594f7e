"""The doctor's checks of a hosted notebook."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from rlnb.doctor import machine


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
