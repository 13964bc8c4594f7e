"""The files that the conformance kit reads and writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlnb.testing.files import FOREIGN_GPU, write_as_on_gpu


def test_a_checkpoint_of_a_gpu_has_the_same_values_and_needs_a_choice_of_the_device(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    path = tmp_path / "model_1.pt"
    torch.save({"weights": torch.arange(3.0), "iteration": 1}, path)
    tagger = torch.serialization.location_tag
    write_as_on_gpu(path)
    assert torch.serialization.location_tag is tagger
    with pytest.raises(RuntimeError, match="Attempting to deserialize object on"):
        torch.load(path, weights_only=True)
    devices: set[str] = set()

    def place(storage: object, device: str) -> object:
        devices.add(device)
        return storage

    state = torch.load(path, map_location=place, weights_only=True)
    assert (state["weights"].tolist(), state["iteration"], devices) == ([0.0, 1.0, 2.0], 1, {FOREIGN_GPU})
