"""NumPy's numbers are Python's numbers, wherever they are passed."""

from __future__ import annotations

import numpy as np
import pytest

from rlnb.storage.scalars import builtin


@pytest.mark.parametrize(
    "value", [np.int64(4), np.int8(4), np.float32(4.0), np.float64(4.0), np.bool_(True), np.array(4)]
)
def test_a_numpy_scalar_becomes_a_number_of_python(value: object) -> None:
    assert type(builtin(value)) in (int, float, bool)
    assert builtin(value) == value


@pytest.mark.parametrize("value", [4, "4", None, [np.int64(4)], np.int64], ids=repr)
def test_other_values_stay_as_they_are(value: object) -> None:
    assert builtin(value) is value
