"""The place of an added camera: checks, and turning it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rlnb.configs.cameras import FREE, CameraPose, aim_of, turned

SIDE = CameraPose(eye=(2.0, 0.0, 0.0), target=(0.0, 0.0, 0.0))


def test_three_numbers_of_any_kind_are_a_position() -> None:
    assert aim_of(None, None) == (FREE, [])
    assert aim_of([1, 2, 3], np.zeros(3)) == (CameraPose(eye=(1.0, 2.0, 3.0), target=(0.0, 0.0, 0.0)), [])


@pytest.mark.parametrize("value", [3, "abc", (1, 2), (1, 2, 3, 4), (1, 2, None), (1, 2, math.nan), (1, 2, math.inf)])
def test_anything_else_is_none(value: object) -> None:
    _, (problem,) = aim_of(value, None)  # type: ignore[arg-type]
    assert problem.what == f"eye={value!r} is not a position of three numbers in metres."
    assert problem.fix == "eye=(2.0, -1.5, 1.0)"


def test_a_camera_cannot_look_at_its_own_place() -> None:
    _, (problem,) = aim_of((1, 2, 3), (1.0, 2.0, 3.0))
    assert problem.what == "eye and target are the same point, (1.0, 2.0, 3.0)."


def test_a_place_is_written_as_the_arguments_are() -> None:
    assert str(SIDE) == "eye=(2.0, 0.0, 0.0), target=(0.0, 0.0, 0.0)"
    assert str(CameraPose(eye=(1.0, 2.00001, 3.0))) == "eye=(1.0, 2.0, 3.0)"


def test_a_camera_turns_around_its_target() -> None:
    assert turned(SIDE, -math.pi / 2, 0.0, 1.0).eye == pytest.approx((0.0, 2.0, 0.0))
    assert turned(SIDE, 0.0, math.pi / 6, 1.0).eye == pytest.approx((math.sqrt(3.0), 0.0, 1.0))
    assert turned(SIDE, 0.0, 0.0, 1.5) == CameraPose(eye=(3.0, 0.0, 0.0), target=SIDE.target)
    moved = CameraPose(eye=(3.0, 1.0, 1.0), target=(1.0, 1.0, 1.0))
    assert turned(moved, -math.pi / 2, 0.0, 1.0).eye == pytest.approx((1.0, 3.0, 1.0))
    assert turned(moved, -math.pi / 2, 0.0, 1.0).target == moved.target


def test_a_camera_never_looks_straight_down_nor_comes_too_close() -> None:
    x, y, z = turned(SIDE, 0.0, 9.0, 1.0).eye or (0.0, 0.0, 0.0)
    assert (x > 0.0, y, z < 2.0) == (True, 0.0, True)
    assert turned(SIDE, 0.0, 0.0, 1e-9).eye == (0.1, 0.0, 0.0)
    assert turned(SIDE, 0.0, 0.0, 1e9).eye == (1000.0, 0.0, 0.0)
