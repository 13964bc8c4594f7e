"""The resolved configs of a run, from the YAML files that its library dumped."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rlnb.records.arguments import resolved_configs
from rlnb.records.layout import RunDir

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
