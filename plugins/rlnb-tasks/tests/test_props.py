"""The parts of ground, checker and sky that Isaac Lab and renderers read."""

import struct
import zlib
from pathlib import Path

from rlnb_tasks import files


def test_the_ground_has_the_prims_that_spawn_ground_plane_modifies(assets: Path) -> None:
    from pxr import Usd

    stage = Usd.Stage.Open(str(assets / files.GROUND))
    assert tuple(stage.GetAttributeAtPath("/Root/Environment.xformOp:scale").Get()) == (1, 1, 1)
    assert len(stage.GetAttributeAtPath("/Root/Environment/Geometry.primvars:st").Get()) == 4
    assert stage.GetPrimAtPath("/Root/Looks/theGrid/Shader").IsValid()
    assert [prim.GetName() for prim in stage.Traverse() if prim.GetTypeName() == "Plane"] == ["CollisionPlane"]


def test_the_checker_is_a_png_with_two_by_two_checks(assets: Path) -> None:
    data = (assets / files.CHECKER).read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", data[16:24])
    start = data.index(b"IDAT")
    (length,) = struct.unpack(">I", data[start - 4 : start])
    rows = zlib.decompress(data[start + 4 : start + 4 + length])
    pixels = [rows[y * (width + 1) + 1 :][:width] for y in range(height)]
    corners = [pixels[y][x] for y in (0, height - 1) for x in (0, width - 1)]
    assert corners == [0, 1, 1, 0]


def test_the_sky_is_bright_above_and_dark_below(assets: Path) -> None:
    header, pixels = (assets / files.SKY).read_bytes().split(b"+X 64\n")
    assert header.startswith(b"#?RADIANCE\n")
    assert len(pixels) == 64 * 32 * 4
    decoded = [tuple(m * 2.0 ** (p[3] - 136) for m in p[:3]) for p in (pixels[:4], pixels[-4:])]
    assert decoded[0][2] > decoded[0][0]
    assert sum(decoded[1]) < sum(decoded[0])
