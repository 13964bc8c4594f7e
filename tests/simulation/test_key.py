"""The key of a job."""

from __future__ import annotations

import datetime
import sys
from pathlib import Path

import pytest

from rlnb.errors import RlnbError
from rlnb.protocol.tls import write_key


def test_only_the_user_can_read_a_key_and_none_is_overwritten(tmp_path: Path) -> None:
    write_key(tmp_path / "key")
    write_key(tmp_path / "other")
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600
    text = (tmp_path / "key").read_text()
    assert "BEGIN PRIVATE KEY" in text
    assert "BEGIN CERTIFICATE" in text
    assert text != (tmp_path / "other").read_text()
    with pytest.raises(FileExistsError):
        write_key(tmp_path / "key")


def test_a_machine_whose_clock_is_years_behind_or_ahead_accepts_the_key(tmp_path: Path) -> None:
    x509 = pytest.importorskip("cryptography.x509")
    write_key(tmp_path / "key")
    found = x509.load_pem_x509_certificate((tmp_path / "key").read_bytes())
    now = datetime.datetime.now(datetime.UTC)
    assert found.not_valid_before_utc < now - datetime.timedelta(days=20 * 365)
    assert found.not_valid_after_utc > now + datetime.timedelta(days=9 * 365)


def test_without_the_package_the_error_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(RlnbError, match="pip install cryptography"):
        write_key(tmp_path / "key")
