"""The files of an export: complete and finite, or none."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlnb.errors import NotFiniteError
from rlnb.storage.walk import files_below
from rlnb.worker.acting import actions
from rlnb.worker.flight.guard import Guard
from rlnb.worker.flight.parts import leaves
from rlnb.worker.jobs.checkpoints import PART

if TYPE_CHECKING:
    import numpy as np
    import torch

SCALES = (0.0, 1.0, 3.0)
"""Standard deviations of the observations that an export is tried with, beside those of the env."""


@contextlib.contextmanager
def staged(folder: Path) -> Iterator[Path]:
    """Yield a folder for the files of an export, which appear below ``folder`` once the block has ended.

    If it fails, there is no file, and an earlier export stays as it was.
    """
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=PART, dir=folder) as stage:
        yield Path(stage)
        for path in [*files_below(Path(stage))]:
            final = folder / path.relative_to(stage)
            final.parent.mkdir(exist_ok=True, parents=True)
            os.replace(path, final)


def first_observations(env: Any, policy: str) -> Mapping[str, torch.Tensor]:
    """Return the observations of an env after its reset, by name, of which it also takes one step.

    Args:
        env: The env.
        policy: What is exported, for the error.

    Raises:
        NotFiniteError: A value of the env is nan or infinite, so nothing can be said of the policy.
    """
    import torch

    guard = Guard(env, policy)
    with torch.no_grad():
        observations, _ = env.reset()
        guard.reset(observations)
        copies = {name: value.clone() for name, value in leaves(observations)}
        after, reward, *_ = env.step(actions(env.unwrapped, "zero"))
        guard.stepped(after, reward)
    return copies


def refuse_not_finite_files(paths: Mapping[str, Path], observations: Mapping[str, torch.Tensor], policy: str) -> None:
    """Refuse exported files that hold a number, or return an action, that is nan or infinite.

    A file is run on the env's observations, on zeros and on noise, as far as its inputs are known.

    Args:
        paths: File by format, or by ``"<agent>/<format>"``. Files of other formats than TorchScript and ONNX pass.
        observations: Observations of the env by name.
        policy: What was exported, for the error, such as ``"the policy of model_3.pt"``.

    Raises:
        NotFiniteError: There is such a number. The message names the weight, or the action and the inputs.
    """
    checks = {"torchscript": _script_fault, "onnx": _onnx_fault}
    for name, path in paths.items():
        agent, _, format = name.rpartition("/")
        if format not in checks:
            continue
        own = {agent: observations[agent]} if agent in observations else observations
        rows = {key: value[:1].float().cpu() for key, value in own.items()}
        if fault := checks[format](path, rows):
            raise NotFiniteError(f"The {format} file of {policy} is not finite: {fault}. There is no export.")


def _script_fault(path: Path, observations: Mapping[str, torch.Tensor]) -> str:
    """Return what is not finite in a TorchScript file, as a clause; empty if nothing is."""
    import torch

    module = torch.jit.load(str(path), map_location="cpu").eval()
    for name, value in module.state_dict().items():
        if value.is_floating_point() and not bool(value.isfinite().all()):
            return f"its weight {name} has values that are nan or infinite"
    count = len(module.forward.schema.arguments) - 1
    with torch.no_grad():
        for example in _fitting(module, count, observations):
            for scale in (None, *SCALES):
                fault = _output_fault(module(*(_scaled(value, scale) for value in example)), scale)
                if fault:
                    return fault
    return ""


def _fitting(module: Any, count: int, observations: Mapping[str, torch.Tensor]) -> Iterator[Sequence[torch.Tensor]]:
    """Yield the observations that a module takes, if they are found: groups, in the order of the env, or all joined."""
    import torch

    groups = [*observations.values()]
    candidates = [groups[:count]] if count > 1 else [[group] for group in groups]
    with contextlib.suppress(RuntimeError):  # groups of several shapes
        candidates += [[torch.cat(groups, dim=-1)]] if count == 1 and len(groups) > 1 else []
    for candidate in candidates:
        with contextlib.suppress(Exception):  # a module that takes other shapes may raise anything
            module(*candidate)
            yield candidate
            return


def _scaled(value: torch.Tensor, scale: float | None) -> torch.Tensor:
    """Return noise in the shape of an observation; the observation itself for None."""
    import torch

    generator = torch.Generator().manual_seed(0)
    return value if scale is None else scale * torch.randn(value.shape, generator=generator)


def _output_fault(output: Any, scale: float | None) -> str:
    """Return what is not finite in an output, as a clause; empty if nothing is."""
    for name, value in leaves(output):
        if value.is_floating_point() and not bool(value.isfinite().all()):
            index = int((~value.isfinite().reshape(-1)).nonzero()[0])
            inputs = "the env's first observations" if scale is None else f"observations with a std of {scale:g}"
            label = f"output {name!r}" if name not in ("", "actions") else "action"
            return f"its {label} (index {index}) is {float(value.reshape(-1)[index])} for {inputs}"
    return ""


def _onnx_fault(path: Path, observations: Mapping[str, torch.Tensor]) -> str:
    """Return what is not finite in an ONNX file, as a clause; empty if nothing is."""
    import numpy as np
    import onnx
    import torch
    from onnx.reference import ReferenceEvaluator

    model = onnx.load(str(path))
    for name, tensor in _constants(model.graph):
        values = onnx.numpy_helper.to_array(tensor)
        is_bound = values.size == 1 and not np.isnan(values).any()  # of a clip, which may be infinite
        if values.dtype.kind == "f" and not np.isfinite(values).all() and not is_bound:
            return f"its weight {name} has values that are nan or infinite"
    names = [output.name for output in model.graph.output]
    with contextlib.suppress(Exception):  # an operator that ONNX's own evaluator does not know
        run = ReferenceEvaluator(model)
        for scale in (None, *SCALES):
            inputs = {value.name: _input(value, observations, scale) for value in model.graph.input}
            outputs = zip(names, run.run(None, inputs), strict=True)
            if fault := _output_fault({name: torch.as_tensor(np.asarray(array)) for name, array in outputs}, scale):
                return fault
    return ""


def _constants(graph: Any) -> Iterator[tuple[str, Any]]:
    """Yield the constants of an ONNX graph with their names: its initialisers, and the values of its nodes."""
    yield from ((tensor.name, tensor) for tensor in graph.initializer)
    for node in graph.node:
        if node.op_type == "Constant":
            yield from ((node.output[0], value.t) for value in node.attribute if value.name == "value")


def _input(value: Any, observations: Mapping[str, torch.Tensor], scale: float | None) -> np.ndarray:
    """Return an input of an ONNX file with one row: the env's observation if its name and shape fit, or noise."""
    import numpy as np
    import onnx
    import torch

    kind = value.type.tensor_type
    shape = [dim.dim_value or 1 for dim in kind.shape.dim]
    dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
    own = observations.get({"obs": "policy"}.get(value.name, value.name))
    if own is not None and list(own.shape) == shape:
        noise = _scaled(own, scale)
    else:
        noise = _scaled(torch.zeros(shape), 1.0 if scale is None else scale)
    return np.asarray(noise.numpy(), dtype=dtype)
