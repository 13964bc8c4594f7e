"""Writes a policy of RSL-RL for deployment.

RSL-RL's own ONNX export fixes the batch at one row, keeps the weights in a second file, and leaves the clip out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from rlnb.backend import write_whole


def write(policy: Any, clip: float | None, folder: Path, formats: Sequence[str]) -> Mapping[str, Path]:
    """Write a policy as ``policy.pt`` (TorchScript) and ``policy.onnx`` (opset 18), each in one file.

    Args:
        policy: RSL-RL's model of the policy, in eval mode.
        clip: Largest magnitude of an action; None sets no limit.
        folder: Folder for the files.
        formats: ``"torchscript"``, ``"onnx"``.

    Returns:
        The file of each format.
    """
    paths = {}
    # A policy that has no ONNX form leaves no TorchScript file.
    script = torch.jit.script(_clipped(policy.as_jit(), clip)) if "torchscript" in formats else None
    if "onnx" in formats:
        module = _clipped(policy.as_onnx(verbose=False), clip)
        paths["onnx"] = write_whole(folder / "policy.onnx", lambda path: _write_onnx(module, path))
    if script is not None:
        paths["torchscript"] = write_whole(folder / "policy.pt", script.save)
    return {name: paths[name] for name in formats if name in paths}


def _write_onnx(module: Any, path: str) -> None:
    """Write RSL-RL's ONNX form of a model. The number of rows n is free in each input and output.

    The second dimension of a recurrent state is n, and the first one of all other inputs and outputs. An input of no
    columns, which RSL-RL's policies of cameras alone have, is left out.
    """
    examples = dict(zip(module.input_names, module.get_dummy_inputs(), strict=True))
    inputs = {name: example for name, example in examples.items() if example.numel()}
    names = (*inputs, *module.output_names)
    torch.onnx.export(
        module if len(inputs) == len(examples) else _WithEmpty(module, examples),
        tuple(inputs.values()),
        path,
        input_names=[*inputs],
        output_names=module.output_names,
        dynamic_axes={name: {1 if name in ("h_in", "c_in", "h_out", "c_out") else 0: "n"} for name in names},
        dynamo=False,  # the tracing exporter writes one file
        opset_version=18,
    )


class _WithEmpty(torch.nn.Module):
    """A module that gets its inputs of no columns from inside."""

    def __init__(self, module: Any, examples: Mapping[str, torch.Tensor]) -> None:
        super().__init__()
        self._module, self._examples = module, [*examples.values()]

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        rest = iter(inputs)
        n = inputs[0].shape[0]
        every = [next(rest) if one.numel() else one.new_zeros(n, *one.shape[1:]) for one in self._examples]
        actions: torch.Tensor = self._module(*every)
        return actions


def _clipped(module: Any, clip: float | None) -> Any:
    """Return a module of RSL-RL on the CPU, whose actions are clipped as those of the env are."""
    if clip is not None:
        module.deterministic_output = torch.nn.Sequential(module.deterministic_output, torch.nn.Hardtanh(-clip, clip))
    return module.cpu().eval()
