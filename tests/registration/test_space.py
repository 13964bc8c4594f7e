"""Spaces of observations and actions, in a process without gymnasium."""

import pytest

from rlnb import Space
from rlnb.storage.serial import from_json, to_json


@pytest.mark.parametrize(
    ("shape", "picture", "last"),
    [
        ((4,), False, False),
        ((5, 4), False, False),
        ((64, 48, 3), True, True),
        ((3, 64, 48), True, False),
        ((6, 36, 36), True, False),
        (None, False, False),
    ],
)
def test_a_picture_has_three_dimensions_of_which_the_smallest_are_the_channels(
    shape: tuple[int, ...] | None, picture: bool, last: bool
) -> None:
    space = Space(kind="box", shape=shape)
    assert (space.is_picture, space.channels_last) == (picture, last)


@pytest.mark.parametrize(
    ("space", "text"),
    [
        (Space(kind="box", shape=(64, 48, 3)), "a picture of the shape (64, 48, 3)"),
        (Space(kind="box", shape=(5, 4)), "a Box of the shape (5, 4)"),
        (Space(kind="box"), "a Box"),
        (Space(kind="multi_discrete"), "a MultiDiscrete"),
    ],
)
def test_a_space_describes_itself(space: Space, text: str) -> None:
    assert str(space) == text


def test_a_space_with_parts_survives_json() -> None:
    space = Space(kind="tuple", parts={"0": Space(kind="dict", parts={"a": Space(kind="box", shape=(2,))})})
    assert from_json(Space, to_json(space)) == space
