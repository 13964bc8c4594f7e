"""New USD files, written as text whatever their suffix: the same content gives the same bytes."""

from __future__ import annotations

from pathlib import Path

from pxr import Usd, UsdGeom

Vector = tuple[float, float, float]


def new_stage(root: str) -> Usd.Stage:
    """Return an empty stage in memory, z up, in metres, whose default prim is the Xform ``/root``."""
    stage = Usd.Stage.CreateInMemory(".usda")
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.z)
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    stage.SetDefaultPrim(UsdGeom.Xform.Define(stage, f"/{root}").GetPrim())
    return stage


def save(stage: Usd.Stage, path: Path) -> None:
    """Write a stage's root layer as text: USD reads text and binary alike from ``.usd``, and text can be compared."""
    path.parent.mkdir(parents=True, exist_ok=True)
    stage.GetRootLayer().Export(str(path), args={"format": "usda"})


def paint(gprim: UsdGeom.Gprim, colour: Vector) -> None:
    """Give a shape one colour, linear RGB in 0 to 1."""
    gprim.CreateDisplayColorAttr([colour])
