"""The jobs of a library without a simulator: its agent config, its device and versions, and its evaluation."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any, NoReturn, cast

from packaging.requirements import Requirement

from rlnb.configs import tree
from rlnb.contracts.libraries import Evaluating, Library
from rlnb.errors import RlnbError
from rlnb.hooks import plugins
from rlnb.machine.cuda import has_driver
from rlnb.records.evaluation import EvaluateOptions, EvaluationRecord
from rlnb.spec import METRICS, EvaluationResult, Manifest
from rlnb.storage.files import builtin
from rlnb.storage.serial import wrong_fields
from rlnb.worker.isaac.device import torch_device


def agent_config_of(manifest: Manifest, library: Library) -> Any:
    """Return the library's own agent config with the user's values, or a dict of these values if it has none."""
    if not library.default_agent:
        return {path.removeprefix("+"): value for path, value in manifest.agent.items()}
    agent_cfg = plugins.agent_config(library.default_agent)
    tree.set_values(agent_cfg, manifest.agent)
    return agent_cfg


def device_of(name: str, index: int | None = None) -> str:
    """Return ``"cpu"`` or ``"cuda:N"``, as :func:`rlnb.worker.isaac.device.torch_device` does.

    Torch is imported only where it may find a GPU, since a library without a simulator may do without torch.
    """
    if name == "cpu" or (name == "auto" and not (has_driver() and importlib.util.find_spec("torch"))):
        return "cpu"
    return torch_device(name, index)


def versions_of(library: Library) -> dict[str, str]:
    """Return the versions of Python, rlnb, the library's plugin, and the packages that the library requires."""
    names = ["rlnb", plugins.owner_of(library).distribution]
    names += [Requirement(requirement).name for requirement in library.requires]
    versions = {"python": sys.version.split()[0]}
    for name in filter(None, names):
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return versions


def evaluate(manifest: Manifest, library: Library, options: EvaluateOptions, run_dir: Path) -> EvaluationRecord:
    """Let the library evaluate a checkpoint, and return its result as a record.

    Raises:
        RlnbError: The backend has no method ``evaluate``, or returns something that is not a valid evaluation.
    """
    backend = plugins.new_backend(library)
    if not callable(getattr(backend, "evaluate", None)):
        _refuse(library, f"its backend {library.backend} has no method evaluate")
    result = cast(Evaluating, backend).evaluate(
        agent_config_of(manifest, library),
        run_dir / options.checkpoint,
        episodes=options.episodes,
        seed=options.seed,
        device=device_of(manifest.resources.device),
        trust=options.trust,
        deterministic=options.deterministic,
    )
    return record_of(result, library, options)


def record_of(result: object, library: Library, options: EvaluateOptions) -> EvaluationRecord:
    """Return the record of what a backend has measured.

    Raises:
        RlnbError: The result is not valid. The error names the library, its plugin and the plugin's version.
    """
    if not isinstance(result, EvaluationResult):
        _refuse(library, f"evaluate() returned {_kind(result)}, which is not an rlnb.backend.EvaluationResult")
    result = dataclasses.replace(result, **{name: _plain(getattr(result, name)) for name in _NUMBERS})
    if faults := wrong_fields(result):
        _refuse(library, f"evaluate() returned an EvaluationResult in which {' and '.join(faults)}")
    meanings = {**METRICS, **library.metric_names}
    if strange := [name for name in result.values if name not in meanings]:
        names = ", ".join(map(repr, strange))
        _refuse(library, f"evaluate() returned the values {names}, whose meaning is not in Library.metric_names")
    record = EvaluationRecord(
        episodes=len(result.returns),
        returns=tuple(result.returns),
        lengths=tuple(result.lengths or ()),
        timeouts=tuple(result.timeouts or ()),
        successes=None if result.successes is None else tuple(result.successes),
        success_source=result.success_source,
        values={name: tuple(map(_number, numbers)) for name, numbers in result.values.items()},
        meanings={name: meanings[name] for name in result.values},
        seed=options.seed,
        checkpoint=options.checkpoint,
        deterministic=options.deterministic,
        mode=None,
    )
    if faults := [*record.faults()]:
        _refuse(library, f"evaluate() returned an EvaluationResult that is not valid: {' and '.join(faults)}")
    return record


_NUMBERS = ("returns", "lengths", "timeouts", "successes", "values")


def _plain(value: Any) -> Any:
    """Return a list in place of a NumPy array or a tuple of NumPy's numbers."""
    if isinstance(value, Mapping):
        return {name: _plain(numbers) for name, numbers in value.items()}
    value = builtin(value)
    return [builtin(number) for number in value] if isinstance(value, list | tuple) else value


def _number(value: bool | float) -> float:
    return float(value) if isinstance(value, bool) else value


def _kind(value: object) -> str:
    return "None" if value is None else type(value).__name__


def _refuse(library: Library, fault: str) -> NoReturn:
    plugin = plugins.owner_of(library)
    raise RlnbError(f"The library {library.name!r} of the {plugin}: {fault}. {plugin.usual_fix}")
