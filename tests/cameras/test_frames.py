"""The arrays of a preview."""

from __future__ import annotations

from collections.abc import Callable

from rlnb.cameras.preview import Preview


def test_frames_are_the_last_ones_of_the_clip(take: Callable[..., Preview]) -> None:
    preview = take()
    assert preview.clip["wrist"]["rgb"].shape == (3, 3, 24, 32, 3)
    assert (preview.frames["wrist"]["rgb"] == preview.clip["wrist"]["rgb"][-1]).all()
    assert preview.num_envs == 3


def test_label_ids_are_integers_although_json_stores_them_as_strings(take: Callable[..., Preview]) -> None:
    assert take().labels["front/semantic_segmentation"][2] == "<hand>"
