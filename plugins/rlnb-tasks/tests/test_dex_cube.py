"""The cube that hands re-orient has distinguishable faces."""

from pathlib import Path

import pytest
from rlnb_tasks import files


def test_the_faces_of_the_cube_differ(assets: Path) -> None:
    from pxr import Usd, UsdGeom

    stage = Usd.Stage.Open(str(assets / files.DEX_CUBE))
    mesh = UsdGeom.Mesh(stage.GetPrimAtPath("/dex_cube/visuals/visuals"))
    points, normals = mesh.GetPointsAttr().Get(), mesh.GetNormalsAttr().Get()
    corners = UsdGeom.PrimvarsAPI(mesh).GetPrimvar("st").Get()
    for face in range(6):
        a, b, c = points[4 * face], points[4 * face + 1], points[4 * face + 2]
        assert ((b - a) ^ (c - b)) * normals[4 * face] > 0, "counter-clockwise from outside"
        assert max(abs(value) for point in points[4 * face : 4 * face + 4] for value in point) == pytest.approx(0.03)
    tiles = {
        tuple(round(sum(axis) / 4, 6) for axis in zip(*corners[4 * face : 4 * face + 4], strict=True))
        for face in range(6)
    }
    assert len(tiles) == 6
