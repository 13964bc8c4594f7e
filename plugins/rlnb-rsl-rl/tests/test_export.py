"""Exports of RSL-RL's models: one file, any number of rows, the policy's own actions. Needs no simulator."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rlnb.testing import run_export

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("rsl_rl") is None, reason="rsl-rl-lib is not installed here"),
    pytest.mark.skipif(importlib.util.find_spec("onnxruntime") is None, reason="onnxruntime is not installed here"),
]

TOLERANCE = 1e-5
ROWS = (1, 64)


def model(kind: str = "MLPModel", obs_dims: int = 5, distribution: str = "Gaussian", **arguments: Any) -> Any:
    """Return a policy with random weights, 2 actions, and a normaliser that has seen data."""
    import torch
    from rsl_rl import models
    from tensordict import TensorDict

    torch.manual_seed(0)
    obs = TensorDict({"policy": 3 + 10 * torch.randn(32, obs_dims)} if obs_dims else {}, batch_size=[32])
    if kind == "CNNModel":
        obs["camera"] = torch.rand(32, 3, 16, 16)
    dist = {"class_name": f"{distribution}Distribution"}
    policy = getattr(models, kind)(
        obs,
        {"actor": list(obs.keys())},
        "actor",
        2,
        distribution_cfg=dist,
        obs_normalization=bool(obs_dims),
        **arguments,
    )
    policy.update_normalization(obs)
    return policy.eval()


def observations(rows: int, obs_dims: int = 5) -> np.ndarray:
    return (3 + 10 * np.random.default_rng(rows).normal(size=(rows, obs_dims))).astype(np.float32)


def acts(policy: Any, /, **groups: np.ndarray) -> np.ndarray:
    """Return the policy's most likely actions."""
    import torch
    from tensordict import TensorDict

    rows = len(next(iter(groups.values())))
    tensors = {name: torch.from_numpy(value) for name, value in groups.items()}
    with torch.no_grad():
        return np.asarray(policy(TensorDict(tensors, batch_size=[rows])))


@pytest.mark.parametrize(
    ("clip", "distribution"),
    [(None, "Gaussian"), (0.05, "Gaussian"), (0.05, "HeteroscedasticGaussian"), (0.01, "Beta")],
)
def test_an_export_is_one_file_that_gives_the_policys_actions_for_any_number_of_rows(
    tmp_path: Path, clip: float | None, distribution: str
) -> None:
    from rlnb_rsl_rl import export

    policy = model(hidden_dims=[16], distribution=distribution)
    paths = export.write(policy, clip, tmp_path, ["torchscript", "onnx"])
    assert {path.name for path in tmp_path.iterdir()} == {"policy.pt", "policy.onnx"}
    for rows in ROWS:
        obs = observations(rows)
        expected = acts(policy, policy=obs)
        assert clip is None or abs(expected).max() > clip, "the clip has an effect"
        expected = expected if clip is None else expected.clip(-clip, clip)
        for name, path in paths.items():
            np.testing.assert_allclose(run_export(name, path, obs), expected, atol=TOLERANCE, err_msg=name)


def test_an_export_that_fails_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from rlnb_rsl_rl import export

    def fail(*_: object) -> None:
        raise RuntimeError("no ONNX form")

    monkeypatch.setattr(export, "_write_onnx", fail)
    with pytest.raises(RuntimeError, match="no ONNX form"):
        export.write(model(hidden_dims=[16]), None, tmp_path, ["torchscript", "onnx"])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("rnn_type", ["lstm", "gru"])
def test_a_recurrent_policy_takes_its_state_for_any_number_of_rows(tmp_path: Path, rnn_type: str) -> None:
    import onnxruntime
    import torch
    from rlnb_rsl_rl import export

    policy = model("RNNModel", hidden_dims=[16], rnn_type=rnn_type, rnn_hidden_dim=8, rnn_num_layers=2)
    session = onnxruntime.InferenceSession(export.write(policy, None, tmp_path, ["onnx"])["onnx"])
    states = [source.name for source in session.get_inputs()[1:]]
    for rows in ROWS:
        policy.reset(torch.ones(rows))
        values = {name: np.zeros((2, rows, 8), np.float32) for name in states}
        for _ in range(3):
            obs = observations(rows)
            actions, *after = session.run(None, {"obs": obs, **values})
            values = dict(zip(states, after, strict=True))
            np.testing.assert_allclose(actions, acts(policy, policy=obs), atol=TOLERANCE)
        policy.reset()


def test_a_policy_with_a_camera_takes_any_number_of_rows(tmp_path: Path) -> None:
    import onnxruntime
    from rlnb_rsl_rl import export

    cnn = {"output_channels": [4], "kernel_size": 3}
    policy = model("CNNModel", hidden_dims=[16], cnn_cfg=cnn)
    session = onnxruntime.InferenceSession(export.write(policy, None, tmp_path, ["onnx"])["onnx"])
    for rows in ROWS:
        obs, pixels = observations(rows), np.random.default_rng(0).random((rows, 3, 16, 16), np.float32)
        (actions,) = session.run(None, {"obs": obs, "camera": pixels})
        np.testing.assert_allclose(actions, acts(policy, policy=obs, camera=pixels), atol=TOLERANCE)


def test_a_policy_of_cameras_alone_has_no_input_without_columns(tmp_path: Path) -> None:
    import onnxruntime
    from rlnb_rsl_rl import export

    policy = model("CNNModel", obs_dims=0, hidden_dims=[16], cnn_cfg={"output_channels": [4], "kernel_size": 3})
    session = onnxruntime.InferenceSession(export.write(policy, 0.05, tmp_path, ["onnx"])["onnx"])
    assert [source.name for source in session.get_inputs()] == ["camera"]
    for rows in ROWS:
        pixels = np.random.default_rng(0).random((rows, 3, 16, 16), np.float32)
        (actions,) = session.run(None, {"camera": pixels})
        np.testing.assert_allclose(actions, acts(policy, camera=pixels).clip(-0.05, 0.05), atol=TOLERANCE)
