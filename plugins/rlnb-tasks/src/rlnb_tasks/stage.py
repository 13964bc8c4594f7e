"""New USD files, written as text whatever their suffix, so that the same content gives the same bytes."""

from __future__ import annotations

from pathlib import Path

from pxr import Sdf, Usd, UsdGeom, UsdShade

Vector = tuple[float, float, float]


def new_stage(root: str) -> Usd.Stage:
    """Return an empty stage in memory, z up, in metres, with an Xform named ``root`` as its default prim."""
    stage = Usd.Stage.CreateInMemory(".usda")
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.z)
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    stage.SetDefaultPrim(UsdGeom.Xform.Define(stage, f"/{root}").GetPrim())
    return stage


def save(stage: Usd.Stage, path: Path) -> None:
    """Write a stage's root layer as text, which USD accepts in ``.usd`` files and which can be compared."""
    path.parent.mkdir(parents=True, exist_ok=True)
    stage.GetRootLayer().Export(str(path), args={"format": "usda"})


def paint(gprim: UsdGeom.Gprim, colour: Vector) -> None:
    """Give a shape one colour, linear RGB in 0 to 1."""
    gprim.CreateDisplayColorAttr([colour])


def textured_material(stage: Usd.Stage, path: str, picture: str, *, roughness: float) -> UsdShade.Material:
    """Return a material with an image as its texture, repeated for texture coordinates outside 0 to 1."""
    types = Sdf.ValueTypeNames
    reader = UsdShade.Shader.Define(stage, f"{path}/st")
    reader.CreateIdAttr("UsdPrimvarReader_float2")
    reader.CreateInput("varname", types.String).Set("st")
    texture = UsdShade.Shader.Define(stage, f"{path}/Texture")
    texture.CreateIdAttr("UsdUVTexture")
    texture.CreateInput("file", types.Asset).Set(picture)
    texture.CreateInput("wrapS", types.Token).Set("repeat")
    texture.CreateInput("wrapT", types.Token).Set("repeat")
    texture.CreateInput("st", types.Float2).ConnectToSource(reader.CreateOutput("result", types.Float2))
    shader = UsdShade.Shader.Define(stage, f"{path}/Shader")
    shader.CreateIdAttr("UsdPreviewSurface")
    shader.CreateInput("roughness", types.Float).Set(roughness)
    rgb = texture.CreateOutput("rgb", types.Float3)
    shader.CreateInput("diffuseColor", types.Color3f).ConnectToSource(rgb)
    material = UsdShade.Material.Define(stage, path)
    material.CreateSurfaceOutput().ConnectToSource(shader.CreateOutput("surface", types.Token))
    return material
