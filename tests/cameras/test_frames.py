"""The arrays of a preview."""

from __future__ import annotations

from collections.abc import Callable

from rlnb.cameras.preview import Preview


def test_frames_are_those_of_the_last_moment(take: Callable[..., Preview]) -> None:
    preview = take()
    assert preview.clip["wrist"]["rgb"].shape == (3, 3, 24, 32, 3)
    assert (preview.frames["wrist"]["rgb"] == preview.clip["wrist"]["rgb"][-1]).all()
    assert preview.num_envs == 3


def test_ids_of_labels_are_numbers_again(take: Callable[..., Preview]) -> None:
    assert take().labels["front/semantic_segmentation"][2] == "<hand>"
