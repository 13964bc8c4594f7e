"""The lookup of Flax parameters by their PyTorch names."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")
import torch
from rlnb_skrl.jax_export import _find, _like

from rlnb import RlnbError

KERNEL = np.arange(6.0).reshape(2, 3)
TREE = {"net_container": {"layers_0": {"kernel": KERNEL, "bias": np.ones(3)}}, "log_std_parameter": np.zeros(2)}


def test_a_kernel_is_a_transposed_weight() -> None:
    assert torch.equal(_find(TREE, "net_container.0.weight"), torch.from_numpy(KERNEL).T)


def test_other_parameters_keep_their_shape() -> None:
    assert _find(TREE, "net_container.0.bias").tolist() == [1.0, 1.0, 1.0]
    assert _find(TREE, "log_std_parameter").tolist() == [0.0, 0.0]


def test_a_network_that_lacks_a_parameter_is_refused() -> None:
    with pytest.raises(RlnbError, match=r"it has no net_container\.1\.weight"):
        _find(TREE, "net_container.1.weight")


def test_a_parameter_of_another_shape_is_refused_with_both_shapes() -> None:
    with pytest.raises(RlnbError, match=r"has shape \(3, 2\), but \(2, 3\) in PyTorch"):
        _like(torch.zeros(2, 3), torch.zeros(3, 2), "net_container.0.weight")
