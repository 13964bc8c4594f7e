"""Ground, sky and markers around the robots, written from primitives."""

from __future__ import annotations

import math
from pathlib import Path

from pxr import Gf, Sdf, Usd, UsdGeom, UsdPhysics, UsdShade

from rlnb_tasks import files
from rlnb_tasks.picture import png
from rlnb_tasks.stage import Vector, new_stage, paint, save, textured_material

GROUND_HALF_SIZE_M = 50.0
"""Half the width of the ground, which must be 100 m wide because Isaac Lab scales the mesh by ``size / 100``."""
TILE_M = 2.0
"""Edge of one texture tile, two checks of 1 m each way. Isaac Lab scales the texture coordinates by the same factor."""
CHECKS = ((124, 132, 140), (96, 104, 112))
CHECKER_PIXELS = 256

SKY_WIDTH, SKY_HEIGHT = 64, 32
ZENITH: Vector = (0.28, 0.48, 0.95)
HORIZON: Vector = (0.80, 0.86, 0.95)
BELOW: Vector = (0.34, 0.34, 0.33)

MDL = """mdl 1.4;
import ::df::diffuse_reflection_bsdf;
export material TilesMarbleSpiderWhiteBrickBondHoned() = material(
    surface: material_surface(scattering: df::diffuse_reflection_bsdf(tint: color(0.75)))
);
"""
"""The plain, light floor of the locomotion tasks, for renderers that read MDL (NVIDIA's material language)."""

RED: Vector = (0.90, 0.08, 0.08)
GREEN: Vector = (0.08, 0.75, 0.12)
BLUE: Vector = (0.08, 0.25, 0.95)


def write(folder: Path) -> None:
    """Write ground, sky and markers below an asset root."""
    save(ground(), folder / files.GROUND)
    (folder / files.CHECKER).write_bytes(checker_png())
    save(arrow(), folder / files.ARROW)
    save(frame(), folder / files.FRAME)
    sky = folder / files.SKY
    sky.parent.mkdir(parents=True, exist_ok=True)
    sky.write_bytes(sky_hdr())
    marble = folder / files.MARBLE
    marble.parent.mkdir(parents=True, exist_ok=True)
    marble.write_text(MDL, encoding="ascii")


def ground() -> Usd.Stage:
    """Return the ground plane, with the prims that Isaac Lab's ``spawn_ground_plane`` modifies.

    These are ``Environment`` (its scale), ``Environment/Geometry`` (its texture coordinates), the only prim of type
    Plane (its physics material) and ``Looks/theGrid/Shader`` (its tint).
    """
    stage = new_stage("Root")
    UsdGeom.Xform.Define(stage, "/Root/Environment").AddScaleOp().Set(Gf.Vec3f(1.0))
    half, tiles = GROUND_HALF_SIZE_M, GROUND_HALF_SIZE_M / TILE_M
    corners = ((-1, -1), (1, -1), (1, 1), (-1, 1))
    mesh = UsdGeom.Mesh.Define(stage, "/Root/Environment/Geometry")
    mesh.CreatePointsAttr([Gf.Vec3f(x * half, y * half, 0.0) for x, y in corners])
    mesh.CreateFaceVertexCountsAttr([4])
    mesh.CreateFaceVertexIndicesAttr([0, 1, 2, 3])
    mesh.CreateNormalsAttr([Gf.Vec3f(0.0, 0.0, 1.0)] * 4)
    mesh.CreateSubdivisionSchemeAttr(UsdGeom.Tokens.none)
    mesh.CreateExtentAttr([Gf.Vec3f(-half, -half, 0.0), Gf.Vec3f(half, half, 0.0)])
    st = UsdGeom.PrimvarsAPI(mesh).CreatePrimvar("st", Sdf.ValueTypeNames.TexCoord2fArray, UsdGeom.Tokens.vertex)
    st.Set([Gf.Vec2f(u * tiles, v * tiles) for u, v in corners])
    mean = [sum(channel) / 2 / 255 for channel in zip(*CHECKS, strict=True)]
    paint(mesh, (mean[0], mean[1], mean[2]))
    material = textured_material(stage, "/Root/Looks/theGrid", f"./{Path(files.CHECKER).name}", roughness=0.8)
    UsdShade.MaterialBindingAPI.Apply(mesh.GetPrim()).Bind(material)

    plane = UsdGeom.Plane.Define(stage, "/Root/CollisionPlane")
    plane.CreateAxisAttr(UsdGeom.Tokens.z)
    plane.CreatePurposeAttr(UsdGeom.Tokens.guide)
    UsdPhysics.CollisionAPI.Apply(plane.GetPrim())
    return stage


def checker_png() -> bytes:
    """Return the checker texture: two shades of grey, two checks each way."""
    half = CHECKER_PIXELS // 2
    upper, lower = b"\0" * half + b"\1" * half, b"\1" * half + b"\0" * half
    return png([upper] * half + [lower] * half, CHECKS)


def sky_hdr() -> bytes:
    """Return a small sky, blue above and grey below, as Radiance HDR: flat RGBE, latitude-longitude, top row first."""
    rows = []
    for row in range(SKY_HEIGHT):
        height = 1.0 - 2.0 * (row + 0.5) / SKY_HEIGHT  # 1 at the zenith, 0 at the horizon, -1 at the nadir
        blend = math.sqrt(max(height, 0.0))
        colour = BELOW if height < 0 else tuple(h + blend * (z - h) for h, z in zip(HORIZON, ZENITH, strict=True))
        rows.append(_rgbe(colour) * SKY_WIDTH)
    return b"#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y %d +X %d\n" % (SKY_HEIGHT, SKY_WIDTH) + b"".join(rows)


def _rgbe(colour: tuple[float, ...]) -> bytes:
    """Return one RGBE pixel: three mantissas and a shared exponent, biased by 128 (Ward, Graphics Gems II)."""
    _, exponent = math.frexp(max(colour))
    return bytes([*(int(value * 2.0 ** (8 - exponent)) for value in colour), exponent + 128])


def arrow() -> Usd.Stage:
    """Return the arrow marker, 1 m along +x from the origin. Tasks scale it, often to a tenth of its width."""
    stage = new_stage("arrow_x")
    shaft = UsdGeom.Cylinder.Define(stage, "/arrow_x/shaft")
    shaft.CreateRadiusAttr(0.1)
    tip = UsdGeom.Cone.Define(stage, "/arrow_x/tip")
    tip.CreateRadiusAttr(0.25)
    for part, start_m, length_m in ((shaft, 0.0, 0.7), (tip, 0.7, 0.3)):
        part.CreateAxisAttr(UsdGeom.Tokens.x)
        part.CreateHeightAttr(length_m)
        part.AddTranslateOp().Set(Gf.Vec3d(start_m + length_m / 2, 0.0, 0.0))
        paint(part, BLUE)
    return stage


def frame() -> Usd.Stage:
    """Return the frame marker: axes of 1 m from the origin, with x red, y green and z blue."""
    stage = new_stage("frame")
    for axis, direction, colour in (("X", (1, 0, 0), RED), ("Y", (0, 1, 0), GREEN), ("Z", (0, 0, 1), BLUE)):
        rod = UsdGeom.Cylinder.Define(stage, f"/frame/{axis}")
        rod.CreateAxisAttr(axis)
        rod.CreateRadiusAttr(0.04)
        rod.CreateHeightAttr(1.0)
        rod.AddTranslateOp().Set(Gf.Vec3d(*direction) / 2)
        paint(rod, colour)
    return stage
