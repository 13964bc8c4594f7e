"""Files of a real torch, read without torch and without running their code."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rlnb.records.weights import fault_of, tensors_of

torch = pytest.importorskip("torch")


def read(path: Path) -> dict[str, np.ndarray]:
    with path.open("rb") as file:
        return dict(tensors_of(file))


def state() -> dict[str, Any]:
    """Return what the libraries put into checkpoints."""
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2))
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.randn(5, 3)).sum().backward()
    optimizer.step()
    return {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "parameter": torch.nn.Parameter(torch.randn(3)),
        "view": torch.randn(4, 5).t()[1:, ::2],
        "half": [torch.randn(3, dtype=torch.bfloat16), torch.randn(3, dtype=torch.float16)],
        "random_state": {"cpu": torch.get_rng_state()},
        "reward": np.float32(-np.inf),
        "iteration": 3,
        "best": float("inf"),
    }


def test_the_tensors_are_those_that_torch_loads(tmp_path: Path) -> None:
    content = state()
    torch.save(content, path := tmp_path / "model_1.pt")
    arrays = read(path)
    assert np.array_equal(arrays["view"], content["view"].numpy())
    assert np.array_equal(arrays["half.0"], content["half"][0].float().numpy())
    assert {name for name in arrays if name.startswith("model.")} == {
        f"model.{name}" for name, value in content["model"].items() if value.is_floating_point()
    }
    assert len([name for name in arrays if "exp_avg_sq" in name]) == len(list(content["optimizer"]["state"]))
    assert fault_of(path) == "", "plain numbers, such as a best reward before the first episode, are no weights"


@pytest.mark.parametrize("name", ["model", "optimizer", "parameter", "view", "half"])
def test_a_value_that_is_not_finite_is_found_wherever_it_is(tmp_path: Path, name: str) -> None:
    content = state()
    part = content[name]
    while not isinstance(part, torch.Tensor):
        part = part[0] if isinstance(part, list) else part[next(key for key in part)]
    with torch.no_grad():
        part[(..., -1) if part.dim() else ...] = float("inf")
    torch.save(content, path := tmp_path / "model_1.pt")
    assert fault_of(path).startswith(name)


def test_the_rest_of_a_shared_buffer_is_not_looked_at(tmp_path: Path) -> None:
    buffer = torch.full((8,), float("nan"))
    buffer[:2] = 1.0
    torch.save({"filled": buffer[:2]}, path := tmp_path / "model_1.pt")
    assert fault_of(path) == ""


class Code:
    """An object whose pickle would make a folder."""

    def __init__(self, trace: Path) -> None:
        self.trace, self.weight = trace, torch.tensor([float("nan")])

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.trace),), {"weight": self.weight}


def test_no_code_of_a_file_runs(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    torch.save({"code": Code(trace)}, path := tmp_path / "model_1.pt")
    assert fault_of(path) == "code.weight is nan"
    assert not trace.exists()


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    torch.save(state(), path := tmp_path / "model_1.pt")
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    for name in (name for name in members if name.endswith("/data.pkl") or "/data/" in name):
        other = tmp_path / "other.pt"
        with zipfile.ZipFile(other, "w") as archive:
            for member, content in members.items():
                archive.writestr(member, content[: len(content) // 2] if member == name else content)
        try:
            read(other)
        except ValueError:
            continue
        assert "/data/" in name, "a storage of whole numbers is not read"
