"""The numbers of summary values, by type, encoding and metadata."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.compat.proto.tensor_pb2 import TensorProto

from rlnb.metrics.events import kind_of, number_of, tag_of

TYPES = {
    "float32": (1, "float_val"), "float64": (2, "double_val"), "int32": (3, "int_val"), "uint8": (4, "int_val"),
    "int16": (5, "int_val"), "int8": (6, "int_val"), "int64": (9, "int64_val"), "bool": (10, "bool_val"),
    "uint16": (17, "int_val"), "float16": (19, "half_val"), "uint32": (22, "uint32_val"), "uint64": (23, "uint64_val"),
}  # fmt: skip
SCALARS = {"plugin_data": {"plugin_name": "scalars"}}


def value(tensor: dict[str, Any] | TensorProto, metadata: dict[str, Any] | None = SCALARS) -> Summary.Value:
    return Summary.Value(tag="loss", tensor=tensor, metadata=metadata)


def shape(*sizes: int) -> dict[str, Any]:
    return {"dim": [{"size": size} for size in sizes]}


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("sizes", [(), (1,), (1, 1)])
def test_a_number_of_any_type_is_read_from_bytes_and_from_its_field(name: str, sizes: tuple[int, ...]) -> None:
    dtype, field = TYPES[name]
    for number in (0, 1, 3 if name != "bool" else 1, -2 if name.startswith(("i", "f")) else 0):
        array = np.array(number, name)
        in_field = int(array.view("<u2")) if name == "float16" else array.item()
        for content in ({"tensor_content": array.tobytes()}, {field: [in_field]}):
            assert number_of(value({"dtype": dtype, "tensor_shape": shape(*sizes), **content}), {}) == number


@pytest.mark.parametrize("number", [1.5, -0.0078125, math.inf])
def test_bfloat16_is_the_upper_half_of_float32(number: float) -> None:
    bits = int(np.float32(number).view("<u4")) >> 16
    for content in ({"tensor_content": bits.to_bytes(2, "little")}, {"half_val": [bits]}):
        assert number_of(value({"dtype": 14, **content}), {}) == number


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_not_finite_are_values(number: float) -> None:
    for dtype in ("float16", "float32", "float64"):
        read = number_of(value({"dtype": TYPES[dtype][0], "tensor_content": np.array(number, dtype).tobytes()}), {})
        np.testing.assert_equal(read, number)
    np.testing.assert_equal(number_of(Summary.Value(tag="loss", simple_value=number), {}), number)


@pytest.mark.parametrize(
    "tensor",
    [
        {"dtype": 1, "float_val": [1.0, 2.0], "tensor_shape": shape(2)},
        {"dtype": 1, "tensor_shape": shape(0)},
        {"dtype": 1},
        {"dtype": 1, "tensor_content": b"odd"},
        {"dtype": 7, "string_val": [b"text"]},
        {"dtype": 8, "scomplex_val": [1.0, 2.0]},
        {"dtype": 20},
    ],
    ids=str,
)
def test_a_tensor_that_is_not_one_real_number_is_no_scalar(tensor: dict[str, Any]) -> None:
    assert number_of(value(tensor), {}) is None


@pytest.mark.parametrize(
    ("metadata", "drawn"),
    [
        (SCALARS, True),
        ({"data_class": 1}, True),
        ({"data_class": 1, "plugin_data": {"plugin_name": "mine"}}, True),
        ({"data_class": 2, "plugin_data": {"plugin_name": "scalars"}}, False),
        ({"plugin_data": {"plugin_name": "hparams"}}, False),
        ({"plugin_data": {"plugin_name": "pr_curves"}}, False),
        ({}, False),
        (None, False),
    ],
    ids=str,
)
def test_the_first_metadata_of_a_tag_decide_whether_it_is_drawn(metadata: dict[str, Any] | None, drawn: bool) -> None:
    known: dict[str, bool] = {}
    tensor = {"dtype": 1, "float_val": [0.5]}
    assert number_of(value(tensor, metadata), known) == (0.5 if drawn else None)
    assert number_of(value(tensor, None), known) == (0.5 if drawn else None), "later events have no metadata"


def test_the_tag_of_an_old_tensor_is_the_name_of_its_node() -> None:
    assert tag_of(Summary.Value(node_name="loss", tensor=TensorProto(dtype=1))) == "loss"
    assert tag_of(Summary.Value(node_name="loss", simple_value=1.0)) == ""


def test_other_values_have_a_kind() -> None:
    assert kind_of(Summary.Value(image=Summary.Image())) == "images"
    assert kind_of(value({"dtype": 1}, {"plugin_data": {"plugin_name": "hparams"}})) == "hparams"
    assert kind_of(value({"dtype": 1}, {"plugin_data": {"plugin_name": "anything"}})) == "other values"


def test_tensors_without_metadata_are_drawn_after_a_simple_value() -> None:
    drawn: dict[str, bool] = {}
    assert number_of(Summary.Value(tag="loss", simple_value=1.0), drawn) == 1.0
    assert number_of(value({"dtype": 1, "float_val": [0.5]}, None), drawn) == 0.5
