"""The parts of the launcher for an existing Dask cluster that need no cluster; the rest is in tests/cluster."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

import rlnb
from rlnb.launchers import make_launcher
from rlnb.plugin import Command

PATHS = {"tls_ca_file": "/keys/ca.pem", "tls_client_cert": "/keys/cert.pem", "tls_client_key": "/keys/key.pem"}
IN_MEMORY = {role: f"-----BEGIN {role}-----\nabc\n-----END-----" for role in PATHS}


def test_paths_of_keys_are_settings_and_keys_in_memory_are_not() -> None:
    assert rlnb.dask("tls://a:1", security=PATHS).settings["security"] == PATHS
    assert rlnb.dask("tls://a:1", security=IN_MEMORY).settings["security"] == {}


def test_keys_in_memory_reach_the_host_in_files_that_only_the_user_can_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launcher = rlnb.dask("tcp://127.0.0.1:1", security=IN_MEMORY)
    monkeypatch.setattr(type(launcher), "_keys_problem", lambda self: None)
    monkeypatch.setattr(type(launcher), "argv", lambda self, job_dir: ["true"])
    launcher.submit(Command(argv=("true",)), tmp_path)
    for role, text in IN_MEMORY.items():
        file = tmp_path / ".tls" / role
        assert file.read_text() == text
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / ".tls").stat().st_mode) == 0o700


def test_a_misspelt_setting_is_refused() -> None:
    with pytest.raises(rlnb.CheckError, match="Did you mean 'insecure'"):
        make_launcher("dask", {"insecur": True})


def test_the_keys_of_a_job_whose_host_is_gone_are_deleted(tmp_path: Path) -> None:
    (tmp_path / ".tls").mkdir()
    rlnb.dask("tls://a:1").withdraw(tmp_path, [])
    assert not (tmp_path / ".tls").exists()
