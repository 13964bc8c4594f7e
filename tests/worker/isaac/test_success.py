"""The success of episodes from each source, and its agreement with the rate that real envs log."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rlnb.errors import RlnbError
from rlnb.worker.isaac.isaaclab import Registered
from rlnb.worker.isaac.success import Successes, source_in_config

torch = pytest.importorskip("torch")

REPO = Path(__file__).parents[3]
EPISODES = 128
TOLERANCE = 0.02
FEW = ["Isaac-Cartpole-Direct", "Isaac-Cartpole"]
MORE = ["Isaac-Pendulum-MARL-Direct", "Isaac-Reorient-Cube-Shadow-Direct"]
NO_FUNCTION = Registered(gym_id="Demo-v0", success=None, agents={})
LIFTED = Registered(
    gym_id="Demo-v0", success=lambda env: env.flags, success_source="my_tasks.success:lifted", agents={}
)


class Env:
    """An env as Isaac Lab's are: it keeps a flag per env, and logs their mean when it resets envs."""

    def __init__(self, flags: Sequence[float], log: Callable[[Any], Any] | None) -> None:
        self.flags = torch.tensor(flags)
        self.extras: dict[str, dict[str, Any]] = {}
        self._log = log

    def reset(self, env_ids: Any) -> None:
        if self._log is not None:
            self.extras["log"] = {"Metrics/success_rate": self._log(self.flags[env_ids])}
        self.flags[env_ids] = 0


def episodes(env: Any, registered: Registered, *, ended: Sequence[int], counted: Sequence[bool]) -> Successes:
    successes = Successes(env, registered)
    with torch.inference_mode(), successes.of(torch.tensor(ended), torch.tensor(counted)):
        env.reset(torch.tensor(ended))
    return successes


@pytest.mark.parametrize(
    "log",
    [
        lambda flags: flags.float().mean(),
        lambda flags: torch.mean(flags.float()),
        lambda flags: flags.float().mean().item(),
    ],
    ids=["method", "function", "number"],
)
def test_a_logged_mean_gives_the_success_of_each_episode_that_counts(log: Callable[[Any], Any]) -> None:
    env = Env([True, False, True, True], log)
    successes = episodes(env, NO_FUNCTION, ended=[3, 1, 0], counted=[True, True, False])
    assert successes.source == "Metrics/success_rate"
    assert successes.values == (1.0, 0.0)


def test_the_share_of_goals_reached_stays_a_share() -> None:
    env = Env([0.5, 2 / 3], lambda goals: goals.mean())
    values = episodes(env, NO_FUNCTION, ended=[0, 1], counted=[True, True]).values
    assert values == pytest.approx((0.5, 2 / 3))


def test_a_logged_count_gives_each_episode_the_rate_of_its_step() -> None:
    env = Env([True, False, False, True], lambda flags: (torch.count_nonzero(flags) / len(flags)).item())
    successes = episodes(env, NO_FUNCTION, ended=[0, 1, 2, 3], counted=[True] * 4)
    assert successes.values == (0.5, 0.5, 0.5, 0.5)


@pytest.mark.parametrize("rate", [0.3, 1.5, float("nan")])
def test_a_logged_rate_that_is_not_of_these_episodes_is_not_their_success(rate: float) -> None:
    env = Env([True, False], lambda _: torch.tensor(rate))
    successes = episodes(env, NO_FUNCTION, ended=[0, 1], counted=[True, True])
    assert successes.source == "Metrics/success_rate"
    assert successes.values is None


def test_a_mean_of_values_beyond_0_and_1_is_not_a_success() -> None:
    env = Env([2.0, -1.0], lambda values: values.mean())
    assert episodes(env, NO_FUNCTION, ended=[0, 1], counted=[True, True]).values is None


def test_a_mean_of_other_values_than_one_per_reset_env_is_not_taken_apart() -> None:
    env = Env([True, False, True], lambda _: torch.tensor([1.0, 1.0, 0.0, 1.0]).mean())
    assert episodes(env, NO_FUNCTION, ended=[0, 1, 2], counted=[True] * 3).values is None


def test_an_env_without_the_rate_has_no_success() -> None:
    successes = episodes(Env([True], None), NO_FUNCTION, ended=[0], counted=[True])
    assert (successes.source, successes.values) == ("", None)


def test_a_rate_is_not_read_again_at_a_later_reset_that_logs_none() -> None:
    env = Env([True, True], lambda flags: flags.float().mean())
    successes = episodes(env, NO_FUNCTION, ended=[0], counted=[True])
    env._log = None
    with successes.of(torch.tensor([1]), torch.tensor([True])):
        env.reset(torch.tensor([1]))
    assert successes.values is None


def test_episodes_that_do_not_count_need_no_rate() -> None:
    env = Env([True, True], lambda flags: flags.float().mean())
    successes = episodes(env, NO_FUNCTION, ended=[0], counted=[True])
    env._log = None
    with successes.of(torch.tensor([1]), torch.tensor([False])):
        env.reset(torch.tensor([1]))
    assert successes.values == (1.0,)


def with_term(env: Env, *terms: str) -> Env:
    flags = torch.tensor([False, True])
    env.termination_manager = SimpleNamespace(active_terms=list(terms), get_term={"success": flags}.__getitem__)  # type: ignore[attr-defined]
    return env


def test_the_termination_term_comes_before_the_rate() -> None:
    env = with_term(Env([True, False], lambda flags: flags.float().mean()), "time_out", "success")
    successes = episodes(env, NO_FUNCTION, ended=[0, 1], counted=[True, True])
    assert successes.source == "terminations.success"
    assert successes.values == (0.0, 1.0)


def test_a_termination_of_another_name_is_not_success() -> None:
    env = with_term(Env([True, False], lambda flags: flags.float().mean()), "time_out")
    assert episodes(env, NO_FUNCTION, ended=[0, 1], counted=[True, True]).values == (1.0, 0.0)


def test_the_tasks_own_function_comes_first() -> None:
    env = with_term(Env([True, False], lambda flags: 1.0 - flags.float().mean()), "success")
    successes = episodes(env, LIFTED, ended=[1, 0], counted=[True, False])
    assert successes.source == "my_tasks.success:lifted"
    assert successes.values == (0.0,)


def test_a_config_names_a_function_or_a_termination_but_not_a_rate() -> None:
    reaches = SimpleNamespace(terminations=SimpleNamespace(success=object(), time_out=object()))
    switched_off = SimpleNamespace(terminations=SimpleNamespace(success=None))
    assert source_in_config(LIFTED, reaches) == "my_tasks.success:lifted"
    assert source_in_config(NO_FUNCTION, reaches) == "terminations.success"
    assert source_in_config(NO_FUNCTION, switched_off) == ""
    assert source_in_config(NO_FUNCTION, SimpleNamespace()) == "", "a direct task"


TERMINATED = "staying:StayingCfg"
STAYING = """
import isaaclab.envs.mdp as mdp
from isaaclab.managers import TerminationTermCfg
from isaaclab.utils import configclass
from isaaclab_tasks.core.cartpole.cartpole_manager_env_cfg import CartpoleEnvCfg

@configclass
class StayingCfg(CartpoleEnvCfg):
    def __post_init__(self):
        super().__post_init__()
        self.terminations.success = TerminationTermCfg(func=mdp.time_out, time_out=True)
"""
"""A cart-pole with a termination ``success``, which is the time-out whose rate the task also logs."""
SCRIPT = """
import dataclasses, json, sys
sys.path.append(sys.argv[1])
from success import CASES, agreement
CASES["staying:StayingCfg"] = CASES["Isaac-Cartpole"]
for name in sys.argv[3:]:
    print("AGREEMENT", json.dumps(dataclasses.asdict(agreement(name, CASES[name], int(sys.argv[2])))), flush=True)
"""


def agreements(names: Sequence[str], folder: Path) -> dict[str, dict[str, Any]]:
    """Return the agreement of each task, from one process with real Isaac Lab."""
    if importlib.util.find_spec("isaaclab") is None:
        pytest.skip("isaaclab is not installed here")
    from rlnb.worker.assets.packs import build

    (folder / "staying.py").write_text(STAYING)
    paths = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-c", SCRIPT, str(REPO / "benchmarks"), str(EPISODES), *names]
    environment = {**os.environ, "ISAACSIM_ASSET_ROOT": str(build().folder), "PYTHONPATH": paths}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=280, check=False)
    rows = [json.loads(line[10:]) for line in done.stdout.splitlines() if line.startswith("AGREEMENT ")]
    assert done.returncode == 0, f"after {rows}:\n{done.stderr[-4000:]}"
    return {row["task"]: row for row in rows}


def agree(row: dict[str, Any], source: str = "Metrics/success_rate") -> None:
    assert row["source"] == source
    assert row["episodes"] >= EPISODES
    assert row["own"] == pytest.approx(row["logged"], abs=TOLERANCE)
    assert 0.0 < row["logged"] < 1.0, "the case tells successes from failures"


@pytest.mark.isaaclab
def test_a_direct_and_a_manager_based_task_have_the_success_that_they_log(tmp_path: Path) -> None:
    rows = agreements([*FEW, TERMINATED], tmp_path)
    for name in FEW:
        agree(rows[name])
        assert rows[name]["shares"] == 0, "each episode has a success of its own"
    agree(rows[TERMINATED], "terminations.success")


@pytest.mark.isaaclab
@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_task_of_several_agents_and_one_with_several_goals_have_the_success_that_they_log(
    tmp_path: Path,
) -> None:
    rows = agreements(MORE, tmp_path)
    for name in MORE:
        agree(rows[name])
    assert rows["Isaac-Pendulum-MARL-Direct"]["shares"] == 0
    assert rows["Isaac-Reorient-Cube-Shadow-Direct"]["shares"] > 0


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 2.0, -1.0])
def test_a_success_that_is_no_share_is_refused_and_not_true(value: float) -> None:
    env = Env([0.0, value], log=None)
    with pytest.raises(RlnbError, match=rf"The success of env 1, from my_tasks\.success:lifted, is {value}"):
        episodes(env, LIFTED, ended=[0, 1], counted=[True, True])
    assert episodes(env, LIFTED, ended=[0, 1], counted=[True, False]).values == (0.0,), "it does not count"
