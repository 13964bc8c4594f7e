"""NumPy's numbers are Python's numbers, wherever they are passed."""

from __future__ import annotations

import numpy as np
import pytest

from rlnb.storage.files import builtin, whole


@pytest.mark.parametrize(
    "value", [np.int64(4), np.int8(4), np.float32(4.0), np.float64(4.0), np.bool_(True), np.array(4)]
)
def test_a_numpy_scalar_becomes_a_number_of_python(value: object) -> None:
    assert type(builtin(value)) in (int, float, bool)
    assert builtin(value) == value


@pytest.mark.parametrize("value", [4, "4", None, [np.int64(4)], np.int64], ids=repr)
def test_other_values_stay_as_they_are(value: object) -> None:
    assert builtin(value) is value


@pytest.mark.parametrize("value", [9, 9.0, np.float64(9.0), np.float32(9.0), np.int64(9), np.array(9)], ids=repr)
def test_a_whole_number_becomes_an_int(value: object) -> None:
    assert type(whole(value)) is int
    assert whole(value) == 9


@pytest.mark.parametrize("value", [9.5, np.float64(9.5), float("nan"), float("inf"), "9", None, True], ids=repr)
def test_any_other_value_is_left_for_the_check_to_refuse(value: object) -> None:
    assert type(whole(value)) is not int
