"""New USD files are text whatever their suffix, and the same content gives the same bytes."""

from pathlib import Path

import pytest


def test_a_stage_is_written_as_text_with_z_up_in_metres(tmp_path: Path) -> None:
    pytest.importorskip("pxr")
    from rlnb_tasks.stage import new_stage, save

    paths = [tmp_path / folder / "robot.usd" for folder in ("a", "b")]
    for path in paths:
        save(new_stage("robot"), path)
    text = paths[0].read_text(encoding="ascii")
    assert text.startswith("#usda 1.0")
    assert 'upAxis = "Z"' in text
    assert "metersPerUnit = 1" in text
    assert 'defaultPrim = "robot"' in text
    assert text == paths[1].read_text(encoding="ascii")


def test_the_texture_of_a_material_repeats_beyond_its_edges() -> None:
    pytest.importorskip("pxr")
    from pxr import UsdShade
    from rlnb_tasks.stage import new_stage, textured_material

    stage = new_stage("robot")
    material = textured_material(stage, "/robot/Looks/grid", "./checker.png", roughness=0.5)
    shader, _, _ = material.ComputeSurfaceSource()
    assert shader.GetInput("roughness").Get() == 0.5
    texture = UsdShade.Shader(shader.GetInput("diffuseColor").GetConnectedSources()[0][0].source.GetPrim())
    assert texture.GetInput("file").Get().path == "./checker.png"
    assert [texture.GetInput(wrap).Get() for wrap in ("wrapS", "wrapT")] == ["repeat", "repeat"]
