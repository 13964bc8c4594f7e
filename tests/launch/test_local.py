"""What the launcher for this machine takes."""

from __future__ import annotations

import re
from typing import Any

import pytest

import rlnb

NO_COUNTS = [0, -1, True, 1.0, "2", float("nan")]
NO_SECONDS = [0, -1.5, True, "60", float("nan"), float("inf")]


@pytest.mark.parametrize("value", NO_COUNTS)
def test_trainings_at_once_are_a_positive_whole_number(value: Any) -> None:
    said = f"max_running={value!r} is not a positive whole number. Use max_running=1."
    with pytest.raises(rlnb.RlnbError, match=f"^{re.escape(said)}$"):
        rlnb.LocalLauncher(max_running=value)


@pytest.mark.parametrize("value", NO_SECONDS)
def test_a_walltime_is_a_positive_number_of_seconds(value: Any) -> None:
    said = f"walltime_s={value!r} is not a positive number. Use walltime_s=3600, or None for no limit."
    with pytest.raises(rlnb.RlnbError, match=f"^{re.escape(said)}$"):
        rlnb.LocalLauncher(walltime_s=value)


def test_all_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(rlnb.RlnbError, match=r"max_running=0 .* walltime_s=0 "):
        rlnb.LocalLauncher(max_running=0, walltime_s=0)


def test_its_settings_make_one_like_it() -> None:
    launcher = rlnb.LocalLauncher(max_running=2, walltime_s=0.5)
    assert rlnb.LocalLauncher(**launcher.settings).settings == {"max_running": 2, "walltime_s": 0.5}
    assert rlnb.LocalLauncher().max_running >= 1
