"""Copies a Flax network into the same network in PyTorch, because Flax has no export to TorchScript or ONNX."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
import torch

from rlnb import RlnbError
from rlnb_skrl.part import Part

Tree: TypeAlias = "Mapping[str, Tree] | np.ndarray"
"""Flax's nested dict of parameters by module name."""


def copy_part(source: Part, target: Part) -> None:
    """Copy the policy and the preprocessors of a JAX agent to an agent that skrl has built in PyTorch from its config.

    skrl uses matching layer names in both: ``net_container.0.weight`` in PyTorch is the transpose of
    ``net_container/layers_0/kernel`` in Flax.

    Raises:
        RlnbError: The networks differ in more than names and transposition.
    """
    params = source.policy.state_dict.params["params"]  # Flax's collection of trained arrays
    with torch.no_grad():
        for name, parameter in target.policy.named_parameters():
            parameter.copy_(_like(parameter, _find(params, name), name))
        for name, module in target.modules.items():
            for buffer in ("running_mean", "running_variance") if hasattr(module, "running_mean") else ():
                statistics = torch.from_numpy(np.array(getattr(source.modules[name], buffer)))
                getattr(module, buffer).copy_(statistics)


def _find(params: Tree, name: str) -> torch.Tensor:
    """Return the Flax parameter for a PyTorch parameter name."""
    *modules, leaf = name.split(".")
    path = [f"layers_{module}" if module.isdigit() else module for module in modules]
    node = params
    try:
        for key in (*path, "kernel" if leaf == "weight" else leaf):
            node = node[key]
    except KeyError as exc:
        raise RlnbError(f'This JAX network cannot be exported: it has no {name}. Use library="skrl".') from exc
    value = np.array(node)
    return torch.from_numpy(np.ascontiguousarray(value.T if leaf == "weight" else value))


def _like(parameter: torch.Tensor, value: torch.Tensor, name: str) -> torch.Tensor:
    if parameter.shape != value.shape:
        raise RlnbError(
            f"This JAX network cannot be exported: {name} has shape {tuple(value.shape)}, but {tuple(parameter.shape)} "
            'in PyTorch. Only fully connected layers are supported. Use library="skrl".'
        )
    return value
