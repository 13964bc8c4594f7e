"""The description of what a policy reads and returns. ``test_isaaclab.py`` rebuilds observations from it."""

from __future__ import annotations

import gymnasium
import pytest

from rlnb.worker.isaac.interface import _columns, size_of, space_of


def test_the_columns_of_a_history_are_those_of_its_order() -> None:
    widths, steps = [2, 1], [3, 3]
    assert _columns(4, 0, widths, steps, by_time=False) == [[4, 6], [6, 8], [8, 10]]
    assert _columns(4, 1, widths, steps, by_time=False) == [[10, 11], [11, 12], [12, 13]]
    assert _columns(4, 0, widths, steps, by_time=True) == [[4, 6], [7, 9], [10, 12]]
    assert _columns(4, 1, widths, steps, by_time=True) == [[6, 7], [9, 10], [12, 13]]


@pytest.mark.parametrize(
    ("space", "size", "described"),
    [
        (gymnasium.spaces.Discrete(3), 1, {"type": "Discrete", "choices": [3]}),
        (gymnasium.spaces.MultiDiscrete([3, 2]), 2, {"type": "MultiDiscrete", "choices": [3, 2]}),
        (
            gymnasium.spaces.Box(-1, float("inf"), (2,)),
            2,
            {"type": "Box", "shape": [2], "low": [-1.0, -1.0], "high": [None, None]},
        ),
        (gymnasium.spaces.Dict({"a": gymnasium.spaces.Discrete(2)}), None, {"type": "Dict"}),
    ],
)
def test_an_action_space_is_described_as_json(
    space: gymnasium.Space[object], size: int | None, described: dict[str, object]
) -> None:
    assert (size_of(space), space_of(space)) == (size, described)
