"""The arrays of a preview, and the faults in them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest

from rlnb.cameras.frames import Finding, Shot, hidden_faults, inspect, ranges
from rlnb.cameras.preview import Preview


def test_frames_are_the_last_ones_of_the_clip(take: Callable[..., Preview]) -> None:
    preview = take()
    assert preview.clip["wrist"]["rgb"].shape == (3, 3, 24, 32, 3)
    assert (preview.frames["wrist"]["rgb"] == preview.clip["wrist"]["rgb"][-1]).all()
    assert preview.num_envs == 3


def test_label_ids_are_integers_although_json_stores_them_as_strings(take: Callable[..., Preview]) -> None:
    assert take().labels["front/semantic_segmentation"][2] == "<hand>"


# -- inspector -------------------------------------------------------------------------------------------------------


TIMES, ENVS, HEIGHT, WIDTH = 2, 4, 24, 32
NEAR_M, FAR_M = 0.1, 10.0


def rgb() -> np.ndarray:
    """Return a textured background with a square at another place in each env and at each time."""
    random = np.random.default_rng(0)
    background = random.integers(60, 200, (HEIGHT, WIDTH, 3), dtype=np.uint8)
    clip = np.broadcast_to(background, (TIMES, ENVS, HEIGHT, WIDTH, 3)).copy()
    for time in range(TIMES):
        for env in range(ENVS):
            clip[time, env, 4 + 8 * time : 10 + 8 * time, 6 * env : 6 * env + 6] = (250, 40, 40)
    return clip


def depth() -> np.ndarray:
    clip = np.linspace(1.0, 9.0, TIMES * ENVS * HEIGHT * WIDTH, dtype=np.float32)
    clip = clip.reshape(TIMES, ENVS, HEIGHT, WIDTH, 1).copy()
    clip[:, :, :3] = np.inf
    return clip


def shot(data_type: str = "rgb", **changes: object) -> Shot:
    clip = {"rgb": rgb, "depth": depth}[data_type]()
    state = np.arange(TIMES * ENVS, dtype=np.float32).reshape(TIMES, ENVS, 1)
    good = Shot(
        camera="wrist",
        data_type=data_type,
        clip=clip,
        state=state,
        labels={},
        range_m=(NEAR_M, FAR_M),
        envs=(0, 1, 2, 7),
    )
    return dataclasses.replace(good, **changes)  # type: ignore[arg-type]


def faults(found: list[Finding]) -> list[tuple[str, tuple[int, ...]]]:
    return [(finding.fault, finding.envs) for finding in found]


@pytest.mark.parametrize("data_type", ["rgb", "depth"])
def test_good_frames_have_no_findings(data_type: str) -> None:
    assert inspect(shot(data_type)) == []


def _blank(clip: np.ndarray) -> None:
    clip[:, 1] = 128


def _nearly_blank(clip: np.ndarray) -> None:
    clip[:, 1] = 128
    clip[:, 1, 0, 0] = 130


def _stale(clip: np.ndarray) -> None:
    clip[-1, 2:] = clip[0, 2:]


def _duplicate(clip: np.ndarray) -> None:
    clip[-1, 3] = clip[-1, 1]


def _copies(clip: np.ndarray) -> None:
    clip[-1, 1:] = clip[-1, 0]


def _darker(clip: np.ndarray) -> None:
    clip[:, 3] = clip[:, 3] * 0.6


def _brighter(clip: np.ndarray) -> None:
    clip[:, 1] = np.minimum(clip[:, 1] * 1.25, 255)


def _first_darker(clip: np.ndarray) -> None:
    clip[:, 0] = clip[:, 0] * 0.6


@pytest.mark.parametrize(
    ("plant", "expected"),
    [
        (_blank, ("blank", (1,))),
        (_nearly_blank, ("blank", (1,))),
        (_stale, ("stale", (2, 7))),
        (_duplicate, ("duplicate", (7,))),
        (_copies, ("duplicate", (1, 2, 7))),
        (_darker, ("drift", (7,))),
        (_brighter, ("drift", (1,))),
        (_first_darker, ("drift", (0,))),
    ],
)
def test_a_fault_of_colours_is_found_in_the_envs_that_have_it(
    plant: Callable[[np.ndarray], None], expected: tuple[str, tuple[int, ...]]
) -> None:
    planted = shot()
    plant(planted.clip)
    assert faults(inspect(planted)) == [expected]


@pytest.mark.parametrize(("data_type", "expected"), [("rgb", ("stale", "duplicate")), ("depth", ())])
def test_noise_hides_the_faults_of_equal_pictures(data_type: str, expected: tuple[str, ...]) -> None:
    assert hidden_faults(data_type) == expected
    alike = shot(data_type)
    alike.clip[:] = alike.clip[0, 0]
    assert {finding.fault for finding in inspect(alike)} == {"stale", "duplicate"}
    noise = np.random.default_rng(1).integers(0, 3, alike.clip.shape)
    alike.clip[:] = alike.clip + noise.astype(alike.clip.dtype) * (1 if data_type == "rgb" else 0)
    assert {finding.fault for finding in inspect(alike)} == {"stale", "duplicate"} - {*expected}


def test_of_two_envs_the_second_is_compared_with_the_first() -> None:
    planted = shot()
    two = dataclasses.replace(planted, clip=planted.clip[:, [0, 3]], state=planted.state[:, [0, 3]], envs=(0, 7))
    two.clip[:, 1] = two.clip[:, 1] * 0.6
    (finding,) = inspect(two)
    assert (finding.fault, finding.envs) == ("drift", (7,))
    assert "darker than env 0" in finding.what


def test_a_blank_first_env_does_not_make_the_others_too_bright() -> None:
    planted = shot()
    planted.clip[:, 0] = 0
    assert faults(inspect(planted)) == [("blank", (0,))]


def test_an_object_that_covers_a_third_of_a_picture_is_not_drift() -> None:
    planted = shot()
    planted.clip[:, 3, : HEIGHT // 3] = 250
    assert inspect(planted) == []


def test_envs_in_the_same_state_may_look_alike_and_stand_still() -> None:
    alike = shot(state=np.zeros((TIMES, ENVS, 3), np.float32))
    alike.clip[:] = alike.clip[0, 0]
    assert inspect(alike) == []


def test_without_a_known_state_nothing_is_called_stale_or_duplicate() -> None:
    alike = shot(state=np.zeros((TIMES, ENVS, 0), np.float32))
    alike.clip[:] = alike.clip[0, 0]
    assert inspect(alike) == []


def test_depth_that_hits_nothing_is_blank_and_names_the_clipping_range() -> None:
    planted = shot("depth")
    planted.clip[:, 0] = np.inf
    (finding,) = inspect(planted)
    assert str(finding) == "blank in env 0: no ray hits anything between 0.1 and 10 m"


def test_depth_outside_the_clipping_range_is_found_on_both_sides() -> None:
    planted = shot("depth")
    planted.clip[-1, 1, 5, :16] = 0.05
    planted.clip[-1, 3, 5, 0] = 11.0
    near, far = inspect(planted)
    assert faults([near, far]) == [("range", (1,)), ("range", (7,))]
    assert "nearer than 0.1 m" in near.what
    assert "2.1%" in near.what
    assert "beyond 10 m" in far.what


def test_nan_is_found_in_the_env_that_has_it() -> None:
    planted = shot("depth")
    planted.clip[0, 2, 5, 5] = np.nan
    assert faults(inspect(planted)) == [("nan", (2,))]


def test_infinity_is_a_depth_but_not_a_normal() -> None:
    normals = np.zeros((TIMES, ENVS, HEIGHT, WIDTH, 3), np.float32)
    normals[..., 2] = np.linspace(0.1, 1.0, TIMES * ENVS).reshape(TIMES, ENVS, 1, 1)
    normals[..., 0, :] = 0.0
    assert inspect(_as("normals", normals)) == []
    normals[-1, 1, 3, 3, 0] = np.inf
    assert faults(inspect(_as("normals", normals))) == [("nan", (1,))]
    normals[:, 0] = 0.0
    assert ("blank", (0,)) in faults(inspect(_as("normals", normals)))


def _as(data_type: str, clip: np.ndarray, **changes: object) -> Shot:
    return dataclasses.replace(shot(), data_type=data_type, clip=clip, **changes)  # type: ignore[arg-type]


def test_a_segmentation_without_labels_is_found() -> None:
    ids = np.arange(TIMES * ENVS * HEIGHT * WIDTH, dtype=np.int32).reshape(TIMES, ENVS, HEIGHT, WIDTH, 1) % 3
    ids[:, :, 0, 0, 0] = np.arange(TIMES * ENVS).reshape(TIMES, ENVS)
    bare = _as("semantic_segmentation", ids, labels={0: "BACKGROUND", 1: "UNLABELLED"})
    (finding,) = inspect(bare)
    assert (finding.fault, finding.envs) == ("unlabelled", ())
    assert "semantic_tags" in finding.what
    assert inspect(_as("semantic_segmentation", ids, labels={0: "BACKGROUND", 2: "cube"})) == []


def test_runs_of_numbers_are_shortened() -> None:
    assert ranges([]) == ""
    assert ranges([3]) == "3"
    assert ranges([0, 1, 3]) == "0, 1, 3"
    assert ranges([7, 0, 2, 3, 4]) == "0, 2 to 4, 7"
