"""``rlnb.debug`` with real Isaac Lab on a CPU."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import rlnb
from rlnb import options
from rlnb.interactive.debugger import step_of
from rlnb.protocol.requests import EnvData
from rlnb.results import Debugger, EnvStep, Stop
from rlnb.simulation.pool import pool
from rlnb.tasks import source

NUM_ENVS = 3
TASK = """
import torch
from isaaclab.utils import configclass
from isaaclab_tasks.core.cartpole.cartpole_direct_env import CartpoleEnv
from isaaclab_tasks.core.cartpole.cartpole_direct_env_cfg import CartpoleEnvCfg

@configclass
class PuckCfg(CartpoleEnvCfg):
    pass

class PuckEnv(CartpoleEnv):
    def _reset_idx(self, env_ids):
        super()._reset_idx(env_ids)
        if hasattr(self, "scale"):
            self.scale[env_ids] = 0.5

    def _get_rewards(self):
        height = self.joint_pos[:, 0] + 2.0
        reward = height * 2.0
        self.scale = torch.ones_like(height)
        self.extras["log"] = {"height": height.mean()}
        return reward
"""


@pytest.fixture
def debugger(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Debugger]:
    monkeypatch.setattr(options, "warm", True)
    source.write_module(options.folders, "Puck", TASK, "test.ipynb")
    debugger = rlnb.debug("Puck", num_envs=NUM_ENVS, device="cpu")
    yield debugger
    debugger.close()
    pool.shut_down()


def line_of(text: str) -> int:
    """Return the number of the line of the task's module that has a text."""
    lines = Path(rlnb.task("Puck").source or "").read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


@pytest.mark.isaaclab
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(importlib.util.find_spec("isaaclab") is None, reason="isaaclab is not installed here")
def test_an_env_is_stepped_read_and_stopped_in_the_tasks_own_code(debugger: Debugger) -> None:
    assert [*debugger.first] == ["observations/policy"]
    step = debugger.step(np.zeros((NUM_ENVS, 1)), steps=2)
    assert isinstance(step, EnvStep)
    assert {name: array.shape for name, array in step.items()} == {
        "observations/policy": (NUM_ENVS, 4),
        "rewards": (NUM_ENVS,),
        "terminated": (NUM_ENVS,),
        "truncated": (NUM_ENVS,),
    }
    position = debugger["cartpole.data.joint_pos"]
    assert isinstance(position, np.ndarray)
    assert position.shape == (NUM_ENVS, 2)
    np.testing.assert_allclose(step["rewards"], 2.0 * (position[:, 0] + 2.0), rtol=1e-6)
    assert step.log["height"] == pytest.approx(float(position[:, 0].mean()) + 2.0, rel=1e-5)
    assert debugger["episode_length_buf"].tolist() == [2] * NUM_ENVS  # type: ignore[union-attr]
    assert "joint_pos" in debugger.names("cartpole.data")
    assert isinstance(debugger["cfg"], str)
    with pytest.raises(rlnb.RlnbError, match=r"No value 'scene\.cartpole\.data\.joint_poss'.*Did you mean 'joint_pos'"):
        debugger["scene.cartpole.data.joint_poss"]
    with pytest.raises(rlnb.RlnbError, match=r"actions= has the shape \(3, 2\), but this env takes \(3, 1\)"):
        debugger.step(np.zeros((NUM_ENVS, 2)))

    assert isinstance(debugger.reset(seed=1), EnvStep)
    assert debugger["scale"].tolist() == [0.5] * NUM_ENVS  # type: ignore[union-attr]
    line = line_of("reward = height")
    with pytest.raises(rlnb.RlnbError, match=r"Line 1000 of .* has no code"):
        debugger.break_at(1000)
    stop = debugger.break_at(line).step()
    assert isinstance(stop, Stop)
    assert stop.place.endswith(f"/puck.py, line {line}, in _get_rewards")
    assert stop["height.shape[0]"] == str(NUM_ENVS)
    assert "reward" not in stop.variables
    assert "step" in "".join(stop.stack)
    with pytest.raises(rlnb.RlnbError, match=r"stopped at .*, line \d+, in _get_rewards\. Use debugger"):
        debugger.reset()
    after = stop.next()
    assert isinstance(after, Stop)
    assert "reward" in after.variables
    assert "stopped at" in repr(after)
    assert "<b>stopped at" in after._repr_html_()
    debugger.clear()
    step = after.resume()
    assert isinstance(step, EnvStep)
    assert debugger.stopped is None
    assert isinstance(debugger.step(), EnvStep), "there is no breakpoint any more"
    with pytest.raises(rlnb.RlnbError, match="condition= is not possible for a function"):
        debugger.break_at("_get_rewards", condition="True")
    stop = debugger.break_at("_get_rewards").step()
    assert isinstance(stop, Stop)
    assert stop.place.endswith(f"line {line_of('height = ')}, in _get_rewards"), "at its first line, not at its head"
    pid = rlnb.simulator().pid
    again = rlnb.debug("Puck", num_envs=1, device="cpu")  # the cell is run again while the code has stopped
    assert isinstance(again.step(), EnvStep)
    again.close()
    assert rlnb.preview("Puck", num_envs=1, steps=0, device="cpu").clip
    assert rlnb.simulator().pid != pid, "a process with breakpoints does nothing else"
    with pytest.raises(rlnb.RlnbError, match=r"The env was closed.*Run rlnb\.debug again"):
        debugger.step()


# -- env step --------------------------------------------------------------------------------------------------------


def test_a_step_is_a_table_of_its_arrays() -> None:
    arrays = {"observations/policy": np.array([[1.0, 3.0]]), "terminated": np.array([], dtype=bool)}
    step = EnvStep(arrays=arrays, log={"<height>": 0.25})
    assert repr(step).splitlines() == ["EnvStep", "observations/policy  1 x 2  1  2  3", "terminated  0"]
    page = step._repr_html_()
    assert "observations/policy" in page
    assert "&lt;height&gt;" in page
    assert step["terminated"].size == 0


def test_the_file_of_a_step_is_read_and_deleted(tmp_path: Path) -> None:
    np.savez(file := tmp_path / "1.npz", rewards=np.ones(3))
    step = step_of(EnvData(file=str(file), log={"height": 2.0}))
    assert step["rewards"].tolist() == [1.0] * 3
    assert (len(step), [*step], step.log) == (1, ["rewards"], {"height": 2.0})
    assert not file.exists()
