"""The pose of an added camera, by projecting points as a pinhole camera does."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from rlnb.configs.cameras import CameraPose
from rlnb.worker.cameras import framing
from rlnb.worker.cameras.framing import CLIP_M, MARGIN, Lens, Trail, distance_for, fit

SIZE = (160, 120)
LENS = Lens.of(SIZE)


def projected(points: torch.Tensor, eyes: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Return places in the picture, from -1 to 1 in width and height, shape (num_envs, count, 2)."""
    forward = torch.nn.functional.normalize(targets - eyes, dim=-1)
    right = torch.nn.functional.normalize(torch.linalg.cross(forward, torch.tensor([[0.0, 0.0, 1.0]])), dim=-1)
    up = torch.linalg.cross(right, forward)
    way = points - eyes[:, None]
    x, y, depth = ((way * axis[:, None]).sum(-1) for axis in (right, up, forward))
    assert (depth > CLIP_M[0]).all(), "nothing is clipped"
    return torch.stack([x / depth / LENS.x, y / depth / LENS.y], dim=-1)


@pytest.mark.parametrize(
    "extent", [(1.0, 1.0, 1.0), (8.0, 0.1, 0.1), (0.1, 8.0, 0.1), (0.1, 0.1, 8.0), (0.4, 0.4, 0.1)]
)
def test_points_fill_the_picture_up_to_its_margin(extent: tuple[float, float, float]) -> None:
    torch.manual_seed(0)
    points = (torch.rand(3, 40, 3) - 0.5) * torch.tensor(extent) + torch.tensor([[[5.0, -3.0, 1.0]]])
    targets, distances = fit(points, LENS.without(MARGIN))
    away = torch.nn.functional.normalize(torch.tensor(framing.AWAY), dim=0)
    places = projected(points, targets + distances[:, None] * away, targets)
    longest = places.abs().amax(dim=(1, 2))
    assert (longest < 1.0 - MARGIN + 1e-3).all()
    assert (longest > 1.0 - MARGIN - 1e-3).all(), "the camera is as close as it can be"
    assert distance_for(points, targets, LENS.without(MARGIN)) == pytest.approx(distances, rel=1e-3), "both agree"


def test_a_tiny_robot_is_not_clipped() -> None:
    points = torch.rand(1, 8, 3) * 0.001
    targets, distances = fit(points, LENS)
    away = torch.nn.functional.normalize(torch.tensor(framing.AWAY), dim=0)
    projected(points, targets + distances[:, None] * away, targets)


def test_points_that_are_not_finite_are_left_out() -> None:
    points = torch.rand(2, 9, 3)
    points[0, 3], points[1, 5] = torch.nan, torch.inf
    expected = fit(points[:1, [0, 1, 2, 4, 5, 6, 7, 8]], LENS)
    targets, distances = fit(points, LENS)
    assert torch.allclose(targets[0], expected[0][0])
    assert torch.allclose(distances[0], expected[1][0])
    assert targets.isfinite().all()
    assert distance_for(points, targets, LENS).isfinite().all()
    assert distance_for(torch.full((2, 3, 3), torch.nan), targets, LENS).tolist() == [0.0, 0.0]


class Robots:
    """The corners of a robot in two envs, in place of a scene."""

    def __init__(self) -> None:
        corners = [[x, y, z] for x in (-0.3, 0.3) for y in (-0.2, 0.2) for z in (0.0, 0.5)]
        self.points = torch.tensor([corners, corners]) + ORIGINS[:, None]

    def of_robots(self) -> torch.Tensor:
        return self.points

    def with_near_objects(self) -> torch.Tensor:
        return self.points


ORIGINS = torch.tensor([[0.0, 0.0, 0.0], [4.0, 0.0, 0.0]])


@pytest.fixture
def robots(monkeypatch: pytest.MonkeyPatch) -> Robots:
    robots = Robots()
    monkeypatch.setattr(framing, "Extents", lambda env, envs: robots)
    return robots


def trail(aim: CameraPose = framing.FREE, envs: Sequence[int] | None = None) -> Trail:
    env: Any = SimpleNamespace(scene=SimpleNamespace(env_origins=ORIGINS), num_envs=2)
    return Trail(env, SIZE, aim, envs)


def inside(trail: Trail, robots: Robots) -> bool:
    return bool((projected(robots.points, trail.eyes, trail.targets).abs() < 1.0).all())


def test_a_camera_stands_still_while_the_robot_is_in_the_picture(robots: Robots) -> None:
    cameras = trail()
    eyes = cameras.eyes
    robots.points = robots.points + torch.tensor([0.03, -0.03, 0.02])
    assert not cameras.follow()
    assert cameras.eyes is eyes
    assert inside(cameras, robots)


def test_a_camera_follows_a_robot_that_walks_away_and_others_stay(robots: Robots) -> None:
    cameras = trail()
    first = cameras.eyes.clone()
    for _ in range(50):
        robots.points = robots.points + torch.tensor([[[0.1, 0.05, 0.0]], [[0.0, 0.0, 0.0]]])
        cameras.follow()
        assert inside(cameras, robots)
    assert (cameras.eyes[0] - first[0]).norm() == pytest.approx(50 * (0.1**2 + 0.05**2) ** 0.5, abs=0.3)
    assert torch.equal(cameras.eyes[1], first[1])
    assert cameras.eyes[0, 2] == pytest.approx(float(first[0, 2]), abs=0.1)


def test_a_jump_is_visible_and_a_fall_without_end_does_not_take_the_camera_along(robots: Robots) -> None:
    cameras = trail()
    first = (cameras.eyes - cameras.targets).norm(dim=-1)
    start = robots.points
    robots.points = start + torch.tensor([0.0, 0.0, 0.4])
    assert cameras.follow()
    assert inside(cameras, robots)
    robots.points = start - torch.tensor([0.0, 0.0, 500.0])
    assert cameras.follow()
    assert ((cameras.eyes - cameras.targets).norm(dim=-1) <= 2.001 * first).all()


def test_after_a_reset_elsewhere_the_camera_is_as_close_as_at_first(robots: Robots) -> None:
    cameras = trail()
    first = (cameras.eyes - cameras.targets).norm(dim=-1)
    robots.points = robots.points + torch.tensor([0.0, 0.0, 0.4])
    cameras.follow()
    assert ((cameras.eyes - cameras.targets).norm(dim=-1) > 1.1 * first).all()
    robots.points = robots.points + torch.tensor([30.0, 0.0, -0.4])
    cameras.follow()
    assert (cameras.eyes - cameras.targets).norm(dim=-1).tolist() == pytest.approx(first.tolist(), rel=1e-3)
    assert inside(cameras, robots)


def test_a_state_that_is_not_finite_leaves_the_camera_where_it_is(robots: Robots) -> None:
    cameras = trail()
    robots.points = robots.points * torch.nan
    cameras.follow()
    assert cameras.eyes.isfinite().all()
    assert trail().eyes.isfinite().all(), "also at first"


def test_an_aimed_camera_has_the_same_place_in_each_env_and_stands_still(robots: Robots) -> None:
    aim = CameraPose(eye=(2.0, 1.0, 3.0), target=(0.0, 0.0, 0.5))
    cameras = trail(aim)
    assert (cameras.eyes - ORIGINS).tolist() == [[2.0, 1.0, 3.0]] * 2
    assert (cameras.targets - ORIGINS).tolist() == [[0.0, 0.0, 0.5]] * 2
    assert cameras.place() == aim
    robots.points = robots.points + 10.0
    assert not cameras.follow()
    cameras.aim(framing.FREE)
    assert inside(cameras, robots), "it follows again"


def test_an_eye_looks_at_the_robots_and_a_target_is_seen_with_the_robots(robots: Robots) -> None:
    assert trail(CameraPose(eye=(1.0, 1.0, 1.0))).targets.tolist() == trail().targets.tolist()
    aimed = trail(CameraPose(target=(0.5, 0.0, 0.0)))
    assert (aimed.targets - ORIGINS).tolist() == [[0.5, 0.0, 0.0]] * 2
    assert inside(aimed, robots)


def test_a_target_between_the_robots_and_the_camera_is_not_the_eye(robots: Robots) -> None:
    cameras = trail(CameraPose(target=(3.0, -2.2, 1.4)))
    assert ((cameras.eyes - cameras.targets).norm(dim=-1) > 0.5).all()


def test_without_robots_a_camera_shows_the_origin(robots: Robots) -> None:
    robots.points = torch.zeros(2, 0, 3)
    cameras = trail()
    assert cameras.targets.tolist() == ORIGINS.tolist()
    assert (cameras.eyes - cameras.targets).norm(dim=-1).tolist() == pytest.approx([framing.EMPTY_M] * 2)
    assert not cameras.follow()
