"""Files of exports: complete and finite, or none; with real libraries: benchmarks/not_finite.py."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from rlnb.errors import NotFiniteError

torch = pytest.importorskip("torch")
pytest.importorskip("isaaclab")

from rlnb.worker.jobs.export import (  # noqa: E402
    export_module,
    refuse_not_finite_files,
    staged,
)

OBSERVATIONS = {"policy": torch.ones(1, 3), "critic": torch.ones(1, 5)}


class Actor(torch.nn.Module):  # type: ignore[misc,name-defined]
    """A normaliser and a layer."""

    def __init__(self, variance: float = 1.0, weight: float = 0.5) -> None:
        super().__init__()
        self.register_buffer("variance", torch.full((3,), variance))
        self.layer = torch.nn.Linear(3, 2)
        with torch.no_grad():
            self.layer.weight.fill_(weight)
            self.layer.bias.zero_()

    def forward(self, obs: Any) -> Any:
        return self.layer(obs / self.variance.sqrt())


def exported(folder: Path, actor: Actor, formats: tuple[str, ...] = ("torchscript", "onnx")) -> dict[str, Path]:
    with staged(folder) as stage:
        paths = dict(export_module(actor.eval(), OBSERVATIONS["policy"], stage, formats))
        refuse_not_finite_files(paths, OBSERVATIONS, "the policy of model_3.pt")
    return {name: folder / path.name for name, path in paths.items()}


def test_files_appear_once_they_are_known_to_be_finite(tmp_path: Path) -> None:
    paths = exported(tmp_path / "exports", Actor())
    assert {*(tmp_path / "exports").iterdir()} == {*paths.values()}


@pytest.mark.parametrize("format", ["torchscript", "onnx"])
@pytest.mark.parametrize(
    ("actor", "text"),
    [
        ({"weight": math.nan}, "its weight layer.weight has values that are nan or infinite"),
        ({"variance": math.inf}, "its weight variance has values that are nan or infinite"),
        ({"variance": -1.0}, "its action (index 0) is nan for the env's first observations"),
        ({"variance": 0.0}, "its action (index 0) is inf for the env's first observations"),
        ({"weight": 2e38}, "its action (index 0) is inf for the env's first observations"),
    ],
)
def test_a_policy_that_is_not_finite_leaves_no_file(
    tmp_path: Path, format: str, actor: dict[str, float], text: str
) -> None:
    older = exported(tmp_path, Actor())[format].read_bytes()
    with pytest.raises(NotFiniteError) as raised:
        exported(tmp_path, Actor(**actor), (format,))
    if format == "torchscript":  # ONNX's exporter computes with constants, and gives the results names of its own
        assert text in str(raised.value)
    assert str(raised.value).startswith(f"The {format} file of the policy of model_3.pt is not finite: ")
    names = {"torchscript": "policy.pt", "onnx": "policy.onnx"}
    assert {path.name for path in tmp_path.iterdir()} == {*names.values()}
    assert (tmp_path / names[format]).read_bytes() == older, "the earlier export is as it was"


class Masked(Actor):
    """Adds a mask of attention, and limits that are none."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mask", torch.triu(torch.full((2, 2), -math.inf), 1))

    def forward(self, obs: Any) -> Any:
        attended = (super().forward(obs)[..., None] + self.mask).softmax(dim=-1).sum(dim=-1)
        return attended.clamp(min=torch.full((2,), -math.inf), max=torch.full((2,), math.inf))


class Normalising(Actor):
    """Is undefined for zeros."""

    def forward(self, obs: Any) -> Any:
        return super().forward(obs / obs.norm())


class OneHot(Actor):
    """Takes the number of a class, which noise is not."""

    def forward(self, obs: Any) -> Any:
        return super().forward(torch.nn.functional.one_hot(obs[..., 0].long(), 3).float())


@pytest.mark.parametrize("actor", [Masked, Normalising, OneHot])
@pytest.mark.parametrize("format", ["torchscript", "onnx"])
def test_a_sound_policy_is_exported(tmp_path: Path, actor: type[Actor], format: str) -> None:
    assert exported(tmp_path, actor(), (format,))


def test_an_export_that_fails_leaves_the_earlier_one(tmp_path: Path) -> None:
    (tmp_path / "policy.pt").write_text("older")

    def fail() -> None:
        with staged(tmp_path) as stage:
            (stage / "policy.pt").write_text("newer")
            (stage / "cart").mkdir()
            (stage / "cart" / "policy.pt").write_text("newer")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert [path.read_text() for path in tmp_path.rglob("*") if path.is_file()] == ["older"]
