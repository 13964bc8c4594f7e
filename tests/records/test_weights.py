"""Weights that are not finite, in every format of checkpoints that can be read without running code."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import pytest

from rlnb.records.weights import fault_of

NAN, INF = float("nan"), float("inf")


def safetensors(path: Path, dtype: str, data: bytes) -> Path:
    header = json.dumps({"w": {"dtype": dtype, "shape": [2], "data_offsets": [0, len(data)]}}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + data)
    return path


def test_the_first_weight_of_an_archive_of_arrays_is_named(tmp_path: Path) -> None:
    path = tmp_path / "model_1.npz"
    np.savez(path, a=np.ones(3), counts=np.arange(3), mean=np.array([[0.0, 1.0], [-INF, NAN]]))
    assert fault_of(path) == "mean is not finite in 2 of 4 values, first -inf at index 2"
    np.savez(path, a=np.ones(3), text=np.array(["nan"]))
    assert fault_of(path) == "", "the file was written anew"


@pytest.mark.parametrize(
    ("dtype", "data"),
    [
        ("F32", np.array([1.0, NAN], np.float32).tobytes()),
        ("F16", np.array([1.0, NAN], np.float16).tobytes()),
        ("F64", np.array([1.0, NAN]).tobytes()),
        ("BF16", (np.array([1.0, NAN], np.float32).view(np.uint32) >> 16).astype(np.uint16).tobytes()),
    ],
)
def test_a_safetensors_file_is_read_in_each_precision(tmp_path: Path, dtype: str, data: bytes) -> None:
    assert fault_of(safetensors(tmp_path / "w.safetensors", dtype, data)) == (
        "w is not finite in 1 of 2 values, first nan at index 1"
    )


def test_a_json_file_alone_is_weights_and_one_in_a_folder_is_not(tmp_path: Path) -> None:
    alone, folder = tmp_path / "model_1.json", tmp_path / "model_2"
    alone.write_text('{"iteration": 3, "layers": [{"w": 1.5}, {"w": NaN}]}')
    assert fault_of(alone) == "layers.1.w is nan"
    alone.write_text('{"best_return": -Infinity, "layers": [1.5, 2.5]}')
    assert fault_of(alone) == ""
    alone.write_text('{"best_return": 0.5, "layers": [1.5, Infinity]}')
    assert fault_of(alone) == "layers.1 is inf"
    folder.mkdir()
    (folder / "state.json").write_text('{"best_metric": -Infinity}')
    np.savez(folder / "actor.npz", w=np.ones(2))
    assert fault_of(folder) == ""
    np.savez(folder / "actor.npz", w=np.array(INF))
    assert fault_of(folder) == "w is inf in actor.npz"


def test_an_additive_mask_is_finite(tmp_path: Path) -> None:
    path = tmp_path / "model_1.npz"
    np.savez(path, mask=np.triu(np.full((3, 3), -INF), 1))
    assert fault_of(path) == ""
    np.savez(path, weight=np.full((3, 3), -INF))
    assert fault_of(path).startswith("weight is not finite in 9 of 9")


@pytest.mark.parametrize("content", [b"", b"PK", b"{", b"\x80\x02", b"[" * 100_000, bytes(8) * 3])
def test_nothing_is_said_of_a_file_that_cannot_be_read(tmp_path: Path, content: bytes) -> None:
    for suffix in ("pt", "npz", "json", "safetensors"):
        path = tmp_path / f"model_1.{suffix}"
        path.write_bytes(content)
        assert fault_of(path) == ""
    assert fault_of(tmp_path / "none.pt") == ""
