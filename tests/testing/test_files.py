"""The files that the conformance kit reads and writes."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from rlnb.testing.exports import FOREIGN_GPU, write_as_on_gpu, write_with_code


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


def test_the_tensors_of_a_folder_are_written_and_its_other_files_are_not(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    (tmp_path / "config.json").write_text("{}")
    torch.save({"weights": torch.arange(3.0)}, tmp_path / "weights.pt")
    write_as_on_gpu(tmp_path)
    assert (tmp_path / "config.json").read_text() == "{}"
    with pytest.raises(RuntimeError, match="Attempting to deserialize object on"):
        torch.load(tmp_path / "weights.pt", weights_only=True)


def test_a_copy_with_code_is_of_the_same_kind_and_runs_it_when_it_is_unpickled(tmp_path: Path) -> None:
    of_files, of_folders = tmp_path / "files", tmp_path / "folders"
    of_files.mkdir()
    of_folders.mkdir()
    file, folder = tmp_path / "model_4.json", tmp_path / "step_4"
    file.write_text("{}")
    (folder / "nested").mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "nested" / "weights.bin").write_bytes(b"weights")
    copy, trace = write_with_code(file, of_files)
    assert (copy, trace.exists()) == (of_files / "model_4.json", False)
    pickle.loads(copy.read_bytes())
    assert trace.exists()
    copy, trace = write_with_code(folder, of_folders)
    assert (copy / "config.json").read_text() == "{}"
    pickle.loads((copy / "nested" / "weights.bin").read_bytes())
    assert (copy.name, trace.exists()) == ("step_4", True)


def test_a_file_of_tensors_has_no_copy_with_code_and_stays_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "model_4.safetensors"
    file.write_bytes(b"weights")
    write_as_on_gpu(file)
    assert file.read_bytes() == b"weights"
    with pytest.raises(pytest.skip.Exception, match=r"model_4\.safetensors has only text and tensors"):
        write_with_code(file, tmp_path)


def test_a_checkpoint_without_pickles_has_no_copy_with_code(tmp_path: Path) -> None:
    (tmp_path / "step_4").mkdir()
    (tmp_path / "step_4" / "weights.safetensors").write_bytes(b"weights")
    with pytest.raises(pytest.skip.Exception, match="step_4 has only text and tensors"):
        write_with_code(tmp_path / "step_4", tmp_path)
