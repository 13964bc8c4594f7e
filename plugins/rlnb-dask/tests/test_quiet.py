"""The settings that reduce Dask's own work exist in Dask."""

from __future__ import annotations

import dask
import distributed  # noqa: F401  adds its defaults to Dask's configuration
import pytest
from rlnb_dask.quiet import QUIET


@pytest.mark.parametrize("key", QUIET)
def test_dask_has_a_setting_of_that_name_and_another_default(key: str) -> None:
    assert dask.config.get(key) != QUIET[key]
