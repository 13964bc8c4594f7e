"""The arguments of a run, under the names by which the user gave them."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest

import rlnb
from rlnb.launchers import Resources
from rlnb.plugin import Manifest
from rlnb.records.arguments import ARGUMENTS, argument, arguments_of, resolved_configs, shared_arguments
from rlnb.records.layout import RunDir

MANIFEST = Manifest(
    run_id="r",
    created="",
    task=rlnb.Task(
        id="Echo",
        source_sha256="0123456789abcdef",
        presets=("a", "b"),
        overrides={"sim.dt": 0.005},
        launcher_args={"livestream": 2},
    ),
    library="echo",
    seed=0,
    deterministic=True,
    agent={"gamma": 0.99, "+normalize_input": True},
    agent_name="generic",
    resources=Resources(device="cpu", nodes=2, nproc_per_node=4),
    tags=("baseline", "first"),
)


def test_overrides_and_agent_values_are_keyed_by_their_paths() -> None:
    values = arguments_of(MANIFEST)
    assert (values["sim.dt"], values["agent.gamma"]) == (0.005, 0.99)
    assert values["agent"] == "generic"
    assert values["agent.normalize_input"] is True, "the leading + of an added key is removed"
    assert (values["launcher_args.livestream"], values["deterministic"]) == (2, True)


def test_ranks_count_all_nodes_and_lists_are_joined() -> None:
    values = arguments_of(MANIFEST)
    assert (values["ranks"], values["presets"], values["tags"]) == (8, "a+b", "baseline+first")
    assert values["source"] == "0123456"


def test_defaults_are_omitted_but_a_seed_of_zero_is_not() -> None:
    values = arguments_of(MANIFEST)
    assert values["seed"] == 0
    assert not {"num_envs", "max_iterations", "physics", "renderer"} & set(values)


def test_inputs_are_arguments_which_averaged_runs_need_not_share() -> None:
    manifest = dataclasses.replace(MANIFEST, inputs={"teacher": "a-run/logs/model_7.pt"})
    assert arguments_of(manifest)["inputs.teacher"] == "a-run/logs/model_7.pt"
    assert shared_arguments(manifest)["inputs.teacher"] == "a run"
    assert "inputs.teacher" not in arguments_of(MANIFEST)


def test_the_origin_of_the_weights_has_two_names() -> None:
    manifest = dataclasses.replace(MANIFEST, parent="an-earlier-run")
    assert arguments_of(manifest)["init_from"] == "an-earlier-run"
    assert argument(manifest, "init_from") == argument(manifest, "parent") == "an-earlier-run"
    assert "init_from" not in arguments_of(MANIFEST)
    assert {"init_from", "parent", "presets"} <= ARGUMENTS


# -- config ----------------------------------------------------------------------------------------------------------


ENV = """
viewer: !!python/object:isaaclab.envs.common.ViewerCfg
  lookat: !!python/tuple [0.0, 1.5]
sim:
  dt: 0.005
  use_fabric: true
  device: null
empty: {}
"""


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    params = RunDir(tmp_path).logs / "params"
    params.mkdir(parents=True)
    (params / "env.yaml").write_text(ENV)
    (params / "agent.yaml").write_text("seed: 42\nname: 0x10 layers\nlist:\n- {a: 1}\n")
    return RunDir(tmp_path)


def test_every_value_is_a_plain_value_keyed_by_its_path(run: RunDir) -> None:
    values = resolved_configs(run)
    assert values["env.sim.dt"] == 0.005
    assert type(values["env.sim.dt"]) is float
    assert values["env.sim.use_fabric"] is True
    assert values["env.sim.device"] is None
    assert values["env.viewer.lookat"] == [0.0, 1.5], "Python tags are ignored and construct no object"
    assert (values["agent.seed"], values["agent.list"]) == (42, [{"a": 1}])
    assert values["env.empty"] == {}


def test_a_dump_that_has_changed_is_read_again(run: RunDir) -> None:
    assert resolved_configs(run)["agent.seed"] == 42
    path = run.logs / "params" / "agent.yaml"
    path.write_text("seed: 7\n")
    os.utime(path, ns=(0, 0))
    assert resolved_configs(run) | {"agent.seed": 7} == resolved_configs(run)


def test_a_damaged_dump_has_no_values_and_hides_no_other(run: RunDir) -> None:
    (run.logs / "params" / "env.yaml").write_text("sim: [\n")
    values = resolved_configs(run)
    assert values["agent.seed"] == 42
    assert not [name for name in values if name.startswith("env.sim")]


def test_a_run_without_dumps_has_no_values(tmp_path: Path) -> None:
    assert resolved_configs(RunDir(tmp_path)) == {}
