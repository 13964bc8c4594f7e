"""The number in a summary value, for the values that TensorBoard draws as scalars.

TensorBoard draws a ``simple_value``, and a tensor with one number whose metadata name the plugin "scalars" or the data
class of scalars (``tensorboard/dataclass_compat.py``). A writer may put the metadata into the first event of a tag in a
folder only, and tensors without any may follow a ``simple_value``. TensorFlow writes a tensor's number as bytes, other
writers write it into a field of its type.
"""

from __future__ import annotations

import math
from typing import Any

_SCALARS, _DATA_CLASS_SCALAR = "scalars", 1
_BFLOAT16 = 14
_KINDS = {"images", "histograms", "audio", "text", "hparams", "pr_curves", "mesh"}
_TYPES = {
    1: ("<f4", "float_val"),
    2: ("<f8", "double_val"),
    3: ("<i4", "int_val"),
    4: ("<u1", "int_val"),
    5: ("<i2", "int_val"),
    6: ("<i1", "int_val"),
    9: ("<i8", "int64_val"),
    10: ("?", "bool_val"),
    _BFLOAT16: ("<u2", "half_val"),
    17: ("<u2", "int_val"),
    19: ("<f2", "half_val"),
    22: ("<u4", "uint32_val"),
    23: ("<u8", "uint64_val"),
}
"""NumPy's type and the field of values, by ``tensorflow.DataType``
(https://github.com/tensorflow/tensorflow/blob/master/tensorflow/core/framework/types.proto)."""


def number_of(value: Any, drawn: dict[str, bool]) -> float | None:
    """Return the number of a summary value, NaN and infinities included; None if TensorBoard draws it otherwise.

    Args:
        value: A ``tensorflow.Summary.Value``.
        drawn: Whether the tensors of a tag are scalars, from the value or the metadata that came first; updated in
            place.
    """
    tag = tag_of(value)
    if value.HasField("simple_value"):
        drawn.setdefault(tag, True)
        return float(value.simple_value)
    if not value.HasField("tensor"):
        return None
    if value.HasField("metadata") and tag not in drawn:
        drawn[tag] = _draws(value.metadata)
    return _number(value.tensor) if drawn.get(tag) else None


def tag_of(value: Any) -> str:
    """Return the tag of a summary value. Old writers put that of a tensor into the name of the node."""
    return str(value.tag or (value.node_name if value.HasField("tensor") else ""))


def kind_of(value: Any) -> str:
    """Return a word for a summary value that is no scalar, such as ``"histograms"``."""
    plugin, field = str(value.metadata.plugin_data.plugin_name), str(value.WhichOneof("value"))
    kinds = (plugin, {"image": "images", "histo": "histograms"}.get(field, field))
    return next((kind for kind in kinds if kind in _KINDS), "other values")


def _draws(metadata: Any) -> bool:
    if metadata.data_class:
        return bool(metadata.data_class == _DATA_CLASS_SCALAR)
    return bool(metadata.plugin_data.plugin_name == _SCALARS)


def _number(tensor: Any) -> float | None:
    """Return the number of a tensor of any shape with one number; None for other tensors."""
    import numpy as np

    if tensor.dtype not in _TYPES or math.prod(dim.size for dim in tensor.tensor_shape.dim) != 1:
        return None
    dtype, name = _TYPES[tensor.dtype]
    if tensor.tensor_content:
        if len(tensor.tensor_content) != np.dtype(dtype).itemsize:
            return None
        number = np.frombuffer(tensor.tensor_content, dtype)[0]
    elif len(values := getattr(tensor, name)) != 1:
        return None
    elif name == "half_val":  # the bits of the number
        number = np.array(values[0] & 0xFFFF, "<u2").view(dtype)[()]
    else:
        number = values[0]
    if tensor.dtype == _BFLOAT16:  # the upper half of a float32
        number = np.array(int(number) << 16, "<u4").view("<f4")[()]
    return float(number)
