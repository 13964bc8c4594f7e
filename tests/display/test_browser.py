"""The browser that prints pages."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlnb.machine.packages import BROWSERS, find_browser


@pytest.mark.parametrize("name", BROWSERS)
def test_chrome_and_chromium_are_found_under_every_name(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_browser() is None
    (tmp_path / name).write_text("#!/bin/sh\n")
    (tmp_path / name).chmod(0o755)
    assert find_browser() == str(tmp_path / name)
