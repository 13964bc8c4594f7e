"""The number of minibatches per batch, for numbers of envs other than those that Isaac Lab's agent configs expect."""

from typing import Any

import pytest
from rlnb_rl_games import minibatches


def fitted(
    horizon: int,
    size: int,
    envs: int,
    own: int,
    *,
    seq_length: int | None = None,
) -> int:
    params: dict[str, Any] = {"config": {"horizon_length": horizon, "minibatch_size": size}, "network": {}}
    if seq_length:
        params["config"]["seq_length"], params["network"]["rnn"] = seq_length, {"name": "lstm"}
    minibatches.fit(params, envs, own)
    fitted_size = params["config"]["minibatch_size"]
    assert isinstance(fitted_size, int)
    assert horizon * envs % fitted_size == 0, "RL-Games refuses to start"
    return fitted_size


@pytest.mark.parametrize(
    ("horizon", "size", "envs", "own", "fitting"),
    [
        pytest.param(32, 16384, 4096, 4096, 16384, id="the task's own envs"),
        pytest.param(32, 16384, 512, 4096, 16384, id="a size that RL-Games accepts is unchanged"),
        pytest.param(32, 16384, 256, 4096, 1024, id="eight minibatches"),
        pytest.param(16, 32768, 64, 4096, 512, id="two minibatches"),
        pytest.param(32, 16384, 7, 4096, 28, id="eight minibatches of 28"),
        pytest.param(32, 16384, 1000, 4096, 4000, id="more frames than one minibatch"),
        pytest.param(24, 24576, 5, 4096, 30, id="four minibatches"),
        pytest.param(1, 64, 7, 64, 7, id="a prime number of frames is not split into single frames"),
        pytest.param(96, 4096, 1, 4096, 2, id="two frames, since one is too few"),
        pytest.param(96, 1, 1, 4096, 1, id="one frame if the agent config says so"),
        pytest.param(32, 4096, 96, 64, 3072, id="half of a minibatch"),
    ],
)
def test_the_number_of_minibatches_is_kept(horizon: int, size: int, envs: int, own: int, fitting: int) -> None:
    assert fitted(horizon, size, envs, own) == fitting


def test_sequences_are_not_cut() -> None:
    assert fitted(128, 512, 3, 128, seq_length=128) == 128
    assert fitted(16, 16384, 24, 8192, seq_length=4) == 48
    assert fitted(16, 512, 1, 128, seq_length=128) == 16, "RL-Games refuses it with its own message"


def test_a_central_value_function_has_its_own_size(caplog: pytest.LogCaptureFixture) -> None:
    params: dict[str, Any] = {
        "network": {},
        "config": {"horizon_length": 16, "minibatch_size": 16384, "central_value_config": {"minibatch_size": 32768}},
    }
    minibatches.fit(params, 64, 8192)
    assert params["config"]["minibatch_size"] == 128
    assert params["config"]["central_value_config"]["minibatch_size"] == 256
    assert "params.config.central_value_config.minibatch_size=32768 does not fit the batch of 64 envs" in caplog.text
    assert "using 256 (4 minibatches) instead" in caplog.text
