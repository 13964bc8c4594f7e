"""Files of tensors beside a checkpoint."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import numpy as np
import pytest

import rlnb
import rlnb.backend
from rlnb.plugin import Library
from rlnb.worker.jobs.checkpoints import vet_companions

torch = pytest.importorskip("torch")

LIBRARY = Library(name="b", backend="a:B", checkpoint_companions=("{stem}.buffer.npz", "{stem}.safetensors"))


def test_tensors_come_back_bit_by_bit(tmp_path: Path) -> None:
    tensors = {
        "observations": torch.tensor([[1.5, float("nan")], [float("-inf"), 0.1]]),
        "dones": torch.tensor([True, False]),
        "position": torch.tensor(7),
        "images": torch.randint(0, 255, (2, 3, 4), dtype=torch.uint8),
        "empty": torch.zeros(0, 3),
        "strided": torch.arange(12).reshape(3, 4).T,
    }
    path = rlnb.backend.write_tensors(tmp_path / "model_4.buffer.npz", tensors)
    loaded = rlnb.backend.read_tensors(path)
    assert list(loaded) == list(tensors)
    for name, tensor in tensors.items():
        assert (loaded[name].dtype, loaded[name].shape) == (tensor.dtype, tensor.shape)
        assert torch.allclose(loaded[name], tensor, rtol=0.0, atol=0.0, equal_nan=True), name
    assert [child.name for child in tmp_path.iterdir()] == [path.name]


def test_python_objects_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "model_4.buffer.npz"
    np.savez(path, good=np.arange(3), bad=np.array([{}], dtype=object))
    with pytest.raises(rlnb.RlnbError, match=r"model_4\.buffer\.npz is not loaded: bad\.npy holds Python objects"):
        rlnb.backend.read_tensors(path)
    with pytest.raises(rlnb.RlnbError, match=r"bad\.npy holds Python objects"):
        vet_companions(tmp_path / "model_4.pt", LIBRARY)


def test_an_archive_of_something_else_is_refused(tmp_path: Path) -> None:
    torch.save({"a": 1}, tmp_path / "model_4.buffer.npz")
    with pytest.raises(rlnb.RlnbError, match="holds Python objects"):
        vet_companions(tmp_path / "model_4.pt", LIBRARY)


def test_a_torn_file_is_refused(tmp_path: Path) -> None:
    path = rlnb.backend.write_tensors(tmp_path / "model_4.buffer.npz", {"a": torch.arange(99)})
    os.truncate(path, path.stat().st_size - 9)
    with pytest.raises(rlnb.RlnbError, match=r"model_4\.buffer\.npz is not complete"):
        rlnb.backend.read_tensors(path)


def test_a_file_of_another_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model_4.buffer.npz"
    path.write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(rlnb.RlnbError, match=r"model_4\.buffer\.npz is not complete, or no file of tensors"):
        vet_companions(tmp_path / "model_4.pt", LIBRARY)


def test_a_file_that_does_not_exist_is_no_damaged_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        rlnb.backend.read_tensors(tmp_path / "model_4.buffer.npz")


def test_companions_that_do_not_exist_are_not_read(tmp_path: Path) -> None:
    vet_companions(tmp_path / "model_4.pt", LIBRARY)
