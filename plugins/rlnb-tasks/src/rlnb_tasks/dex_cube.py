"""The cube that robot hands reorient; six colours and six letters show a camera its orientation."""

from __future__ import annotations

from pathlib import Path

from pxr import Gf, Sdf, Usd, UsdGeom, UsdPhysics, UsdShade

from rlnb_tasks import files
from rlnb_tasks.picture import png
from rlnb_tasks.stage import Vector, new_stage, save, textured_material

EDGE_M = 0.06
MASS_KG = 0.216
"""Mass at a density of 1000 kg/m^3."""

FACE_PIXELS, COLUMNS, ROWS = 64, 3, 2
"""Layout of the texture: faces of 64 x 64 pixels in two rows of three."""
WHITE = 6
COLOURS = (
    (230, 60, 50),
    (60, 180, 75),
    (50, 110, 230),
    (250, 200, 40),
    (170, 60, 200),
    (245, 130, 40),
    (255, 255, 255),
)
"""sRGB colours of the faces A to F, then the one colour of all letters and frames."""
LETTERS = (
    (" ### ", "#   #", "#   #", "#####", "#   #", "#   #", "#   #"),
    ("#### ", "#   #", "#   #", "#### ", "#   #", "#   #", "#### "),
    (" ### ", "#   #", "#    ", "#    ", "#    ", "#   #", " ### "),
    ("#### ", "#   #", "#   #", "#   #", "#   #", "#   #", "#### "),
    ("#####", "#    ", "#    ", "#### ", "#    ", "#    ", "#####"),
    ("#####", "#    ", "#    ", "#### ", "#    ", "#    ", "#    "),
)
FACES: tuple[tuple[Vector, Vector], ...] = (
    ((1, 0, 0), (0, 1, 0)),
    ((-1, 0, 0), (0, -1, 0)),
    ((0, 1, 0), (-1, 0, 0)),
    ((0, -1, 0), (1, 0, 0)),
    ((0, 0, 1), (1, 0, 0)),
    ((0, 0, -1), (1, 0, 0)),
)
"""Outward normal and reading direction of each face."""


def write(folder: Path) -> None:
    """Write the cube and its texture below an asset root."""
    save(cube(), folder / files.DEX_CUBE)
    (folder / files.DEX_CUBE_PICTURE).write_bytes(picture())


def picture() -> bytes:
    """Return the six faces as a PNG of 192 x 128 pixels."""
    rows = [[0] * (COLUMNS * FACE_PIXELS) for _ in range(ROWS * FACE_PIXELS)]
    dot = FACE_PIXELS // 10
    for face, letter in enumerate(LETTERS):
        x0, y0 = face % COLUMNS * FACE_PIXELS, face // COLUMNS * FACE_PIXELS
        for y in range(FACE_PIXELS):
            for x in range(FACE_PIXELS):
                column, row = (x - 17) // dot, (y - 11) // dot
                ink = 0 <= row < len(letter) and 0 <= column < len(letter[0]) and letter[row][column] == "#"
                frame = min(x, y, FACE_PIXELS - 1 - x, FACE_PIXELS - 1 - y) in (2, 3)
                rows[y0 + y][x0 + x] = WHITE if ink or frame else face
    return png([bytes(row) for row in rows], COLOURS)


def cube() -> Usd.Stage:
    """Return the cube, with a visible mesh under ``visuals`` and a box collider under ``collisions``."""
    stage = new_stage("dex_cube")
    root = stage.GetDefaultPrim()
    UsdPhysics.RigidBodyAPI.Apply(root)
    UsdPhysics.MassAPI.Apply(root).CreateMassAttr(MASS_KG)
    half = EDGE_M / 2
    points, normals, texture = [], [], []
    for face, (normal, right) in enumerate(FACES):
        up = Gf.Cross(Gf.Vec3f(*normal), Gf.Vec3f(*right))
        u0, v1 = face % COLUMNS / COLUMNS, 1 - face // COLUMNS / ROWS
        for u, v in ((0, 0), (1, 0), (1, 1), (0, 1)):
            points.append(half * (Gf.Vec3f(*normal) + (2 * u - 1) * Gf.Vec3f(*right) + (2 * v - 1) * up))
            normals.append(Gf.Vec3f(*normal))
            texture.append(Gf.Vec2f(u0 + u / COLUMNS, v1 - (1 - v) / ROWS))
    UsdGeom.Xform.Define(stage, "/dex_cube/visuals")
    mesh = UsdGeom.Mesh.Define(stage, "/dex_cube/visuals/visuals")
    mesh.CreatePointsAttr(points)
    mesh.CreateFaceVertexCountsAttr([4] * len(FACES))
    mesh.CreateFaceVertexIndicesAttr(list(range(4 * len(FACES))))
    mesh.CreateNormalsAttr(normals)
    mesh.SetNormalsInterpolation(UsdGeom.Tokens.vertex)
    mesh.CreateSubdivisionSchemeAttr(UsdGeom.Tokens.none)
    mesh.CreateExtentAttr([Gf.Vec3f(-half), Gf.Vec3f(half)])
    st = UsdGeom.PrimvarsAPI(mesh).CreatePrimvar("st", Sdf.ValueTypeNames.TexCoord2fArray, UsdGeom.Tokens.vertex)
    st.Set(texture)
    material = textured_material(
        stage, "/dex_cube/Looks/faces", f"./{Path(files.DEX_CUBE_PICTURE).name}", roughness=0.6
    )
    UsdShade.MaterialBindingAPI.Apply(mesh.GetPrim()).Bind(material)

    UsdGeom.Xform.Define(stage, "/dex_cube/collisions")
    box = UsdGeom.Cube.Define(stage, "/dex_cube/collisions/collisions")
    box.CreateSizeAttr(EDGE_M)
    box.CreatePurposeAttr(UsdGeom.Tokens.guide)
    UsdPhysics.CollisionAPI.Apply(box.GetPrim())
    return stage
