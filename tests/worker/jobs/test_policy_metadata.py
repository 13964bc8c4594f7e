"""The metadata of exported files, without a simulator. With one, see ``tests/worker/isaac/test_isaaclab.py``."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium
import pytest

import rlnb
from rlnb.records.options import ExportOptions
from rlnb.spec import Manifest, Task
from rlnb.worker.jobs import policy_metadata
from rlnb.worker.jobs.export import export_module

pytest.importorskip("torch")
pytest.importorskip("onnxruntime")


def direct_env(space: gymnasium.Space[Any]) -> Any:
    """Return what is read of an env without managers."""
    sim = SimpleNamespace(dt=0.005, physics=None)
    return SimpleNamespace(cfg=SimpleNamespace(sim=sim, decimation=4), single_action_space=space)


def attached(folder: Path, space: gymnasium.Space[Any], columns: int, *, fixed: bool = True) -> dict[str, Path]:
    """Export a linear policy with so many columns, whose number the exporter knows or not, and attach metadata."""
    import torch

    class Policy(torch.nn.Linear):
        def forward(self, obs: Any) -> Any:
            actions = super().forward(obs)
            return actions if fixed else actions.clamp(torch.full((columns,), -1.0), torch.ones(columns))

    paths = export_module(Policy(3, columns).eval(), torch.zeros(2, 3), folder, ["torchscript", "onnx"])
    manifest = Manifest(run_id="my-run", created="", task=Task(id="Mine", source_sha256="abc"), library="rsl_rl")
    options = ExportOptions(formats=("onnx",), checkpoint="logs/model_1.pt", mode="play")
    policy_metadata.attach(paths, direct_env(space), manifest, options, {"obs": ["policy"]})
    return dict(paths)


def test_both_files_of_a_direct_task_say_their_run_their_sizes_and_that_the_order_is_not_known(tmp_path: Path) -> None:
    import onnxruntime
    import torch

    paths = attached(tmp_path, gymnasium.spaces.Box(-1, 1, (2,)), 2, fixed=False)
    session = onnxruntime.InferenceSession(str(paths["onnx"]))
    assert [output.shape for output in session.get_outputs()] == [["n", 2]]
    about = session.get_modelmeta().custom_metadata_map
    assert json.loads(about["inputs"]) == {"obs": ["n", 3]}
    assert json.loads(about["outputs"]) == {"actions": ["n", 2]}
    assert json.loads(about["action_space"]) == {"type": "Box", "shape": [2], "low": [-1.0] * 2, "high": [1.0] * 2}
    assert (about["observation_order"], about["action_order"]) == ("not known", "not known")
    assert (about["control_dt"], about["control_rate"], about["mode"]) == ("0.02", "50.0", "play")
    assert (about["run_path"], about["task"], about["source_sha256"]) == ("my-run", "Mine", "abc")
    extra = {policy_metadata.EXTRA_FILE: ""}
    torch.jit.load(str(paths["torchscript"]), _extra_files=extra)
    texts = json.loads(extra[policy_metadata.EXTRA_FILE])
    assert texts == {name: text for name, text in about.items() if name not in ("inputs", "outputs")}


@pytest.mark.parametrize(
    ("space", "columns"), [(gymnasium.spaces.Discrete(3), 3), (gymnasium.spaces.MultiDiscrete([3, 2]), 5)]
)
def test_logits_that_are_called_actions_are_refused(tmp_path: Path, space: gymnasium.Space[Any], columns: int) -> None:
    with pytest.raises(rlnb.RlnbError, match=f"has {columns} columns, but an action of .*Export actions"):
        attached(tmp_path, space, columns)
