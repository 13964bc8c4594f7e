"""Pictures of several envs, tiled into one."""

from __future__ import annotations

import numpy as np
import pytest

from rlnb.display.pictures import tiled


@pytest.mark.parametrize(
    ("count", "size", "expected"),
    [
        (4, (240, 320), (480, 640)),
        (3, (240, 320), (480, 640)),
        (1, (241, 321), (241, 321)),
        (2, (100, 100), (300, 600)),
    ],
)
def test_tiles_are_never_tiny(count: int, size: tuple[int, int], expected: tuple[int, int]) -> None:
    images = np.stack([np.full((*size, 4), 10 * (number + 1), dtype=np.uint8) for number in range(count)])
    whole = tiled(images)
    assert whole.shape == (*expected, 3)
    assert set(np.unique(whole)) - {0} == {10 * (number + 1) for number in range(count)}
    assert whole[0, 0, 0] == 10
