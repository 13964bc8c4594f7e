"""The metadata of an exported policy: what its numbers mean, and the run that it is from.

An ONNX file has it in ``metadata_props``, text by text. A TorchScript file has the same as the extra file
``metadata.json``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rlnb.errors import RlnbError
from rlnb.records.options import ExportOptions
from rlnb.spec import Json, Manifest
from rlnb.version import __version__
from rlnb.worker.isaac import interface, release
from rlnb.worker.jobs.checkpoints import write_whole

EXTRA_FILE = "metadata.json"
"""Name of the extra file in a TorchScript archive."""
NOT_KNOWN = "not known"
Sizes = Mapping[str, Sequence[int | str]]
"""Shape of each input or output by name. A dimension that is free is a name."""


def attach(
    paths: Mapping[str, Path],
    env: Any,
    manifest: Manifest,
    options: ExportOptions,
    groups: Mapping[str, Sequence[str]],
) -> None:
    """Write the metadata into the files of an export.

    Args:
        paths: File by format, or by ``"<agent>/<format>"``.
        env: The env without gymnasium's wrappers. Joined agents have one action space.
        manifest: Manifest of the run.
        options: Options of the export.
        groups: Observation groups that each input joins, by name of the input. Any other input is a group of its name.

    Raises:
        RlnbError: The output ``actions`` of an ONNX file does not match the size of the env's actions.
    """
    common = {**_origin(manifest, options), **_rates(env)}
    for name, path in paths.items():
        agent, _, form = name.rpartition("/")
        space = env.action_spaces[agent] if agent else env.single_action_space
        texts = {**common, "agent": agent} if agent else common
        if form == "onnx":
            _to_onnx(path, space, texts, env, groups)
        elif form == "torchscript":
            _to_torchscript(path, {**texts, **_numbers(env, space, None, groups)})


def _to_onnx(path: Path, space: Any, common: Mapping[str, str], env: Any, groups: Mapping[str, Sequence[str]]) -> None:
    import onnx

    model = onnx.load(str(path))
    size = interface.size_of(space)
    for output in model.graph.output:
        dims = output.type.tensor_type.shape.dim
        if output.name != "actions" or size is None or len(dims) < 2:
            continue
        if dims[1].dim_value not in (0, size):
            raise RlnbError(
                f"The output 'actions' of {path.name} has {dims[1].dim_value} columns, but an action of {space} has "
                f"{size}. Export actions, not the parameters of a distribution."
            )
        dims[1].dim_value = size  # the tracing exporter gives a name to a size that it has not followed
    inputs = _sizes(model.graph.input)
    texts = {**common, **_numbers(env, space, inputs, groups), "outputs": json.dumps(_sizes(model.graph.output))}
    onnx.helper.set_model_props(model, {**texts, "inputs": json.dumps(inputs)})
    write_whole(path, lambda part: onnx.save(model, part))


def _to_torchscript(path: Path, texts: Mapping[str, str]) -> None:
    import torch

    module = torch.jit.load(str(path), map_location="cpu")
    write_whole(path, lambda part: torch.jit.save(module, part, _extra_files={EXTRA_FILE: json.dumps(texts)}))


def _sizes(values: Any) -> dict[str, list[int | str]]:
    return {one.name: [dim.dim_param or dim.dim_value for dim in one.type.tensor_type.shape.dim] for one in values}


def _origin(manifest: Manifest, options: ExportOptions) -> dict[str, str]:
    """Return the texts about the run."""
    return {
        "run_path": manifest.run_id,
        "rlnb_version": __version__,
        "isaaclab_version": release.installed(),
        "task": manifest.task.id,
        "source_sha256": manifest.task.source_sha256 or "",
        "library": manifest.library,
        "checkpoint": options.checkpoint,
        "mode": options.mode,
    }


def _rates(env: Any) -> dict[str, str]:
    """Return the texts about time and physics."""
    sim_dt, decimation = float(env.cfg.sim.dt), int(env.cfg.decimation)
    physics = env.cfg.sim.physics
    solver = getattr(physics, "solver_cfg", None)
    return {
        "engine": type(physics).__name__.removesuffix("Cfg").lower() if physics is not None else "",
        "solver": type(solver).__name__.removesuffix("Cfg") if solver is not None else "",
        "sim_dt": repr(sim_dt),
        "decimation": str(decimation),
        "control_dt": repr(sim_dt * decimation),
        "control_rate": repr(round(1.0 / (sim_dt * decimation), 9)),
    }


def _numbers(env: Any, space: Any, inputs: Sizes | None, groups: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the texts about observations and actions."""
    texts = {"action_space": json.dumps(interface.space_of(space))}
    if not interface.is_described(env):
        return {**texts, "observation_order": NOT_KNOWN, "action_order": NOT_KNOWN}
    rows, known = [], True
    for name in inputs if inputs is not None else groups:
        joined = groups.get(name, [name])
        if any(group not in env.observation_manager.active_terms for group in joined):
            continue  # the state of a recurrent policy
        terms = interface.observations_of(env, joined)
        width = sum(int(env.observation_manager.group_obs_dim[group][0]) for group in joined) if terms else 0
        known &= bool(terms) and (inputs is None or [*inputs[name]][1:] == [width])
        rows += [{**term, "input": name} for term in terms]
    actions = interface.actions_of(env)
    texts |= {"actions": json.dumps(actions), "action_order": "known", **_flat(env, actions)}
    if not rows or not known:
        return {**texts, "observation_order": NOT_KNOWN}
    names = ",".join(str(row["name"]) for row in rows)
    return {**texts, "observation_order": "known", "observations": json.dumps(rows), "observation_names": names}


def _flat(env: Any, actions: Sequence[Mapping[str, Json]]) -> dict[str, str]:
    """Return the keys of mjlab, whose readers split them at commas, for the only robot that the actions drive."""
    texts = {}
    if hasattr(env, "command_manager"):
        texts["command_names"] = _joined(env.command_manager.active_terms)
    if all(row.get("scale") is not None for row in actions):
        texts["action_scale"] = _joined([scale for row in actions for scale in row["scale"]])  # type: ignore[union-attr]
    assets = {str(row["asset"]) for row in actions}
    if len(assets) == 1 and (asset := env.scene.articulations.get(assets.pop())) is not None:
        texts |= {name: _joined(values) for name, values in interface.joints_of(asset).items()}
    return texts


def _joined(values: Sequence[Any]) -> str:
    return ",".join(value if isinstance(value, str) else repr(float(value)) for value in values)
