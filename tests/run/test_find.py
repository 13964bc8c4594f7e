"""Runs found by their folder, their id, or what is known of them."""

from __future__ import annotations

from pathlib import Path

import pytest

import rlnb


def test_a_root_that_is_no_folder_is_told(root: Path) -> None:
    root.write_text("")
    with pytest.raises(rlnb.NotFoundError, match="is no folder"):
        rlnb.runs()
