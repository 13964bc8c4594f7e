"""Terms of a living env of real Isaac Lab on a CPU: swapped if that is enough, refused if a name is wrong."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

import rlnb
from rlnb.results import Tuner
from rlnb.tasks import source

pytestmark = [
    pytest.mark.isaaclab,
    pytest.mark.timeout(600),
    pytest.mark.skipif(importlib.util.find_spec("isaaclab") is None, reason="isaaclab is not installed here"),
]


TASK = """
import torch
from isaaclab.managers import RewardTermCfg, SceneEntityCfg
from isaaclab.utils import configclass
import isaaclab.envs.mdp as mdp
from isaaclab_tasks.core.cartpole.cartpole_manager_env_cfg import CartpoleEnvCfg

def constant(env, value: float = 2.0):
    return torch.full((env.num_envs,), value, device=env.device)

@configclass
class TunedCfg(CartpoleEnvCfg):
    def __post_init__(self):
        super().__post_init__()
        self.rewards.constant = RewardTermCfg(func=constant, weight=0.5, params={"value": 2.0})
        pole = SceneEntityCfg("robot", joint_names=["cart_to_pole"])
        self.rewards.effort = RewardTermCfg(func=mdp.joint_vel_l1, weight=-0.01, params={"asset_cfg": pole})
        self.decimation = 2
"""


def write(*edits: tuple[str, str]) -> None:
    text = TASK
    for before, after in edits:
        assert before in text
        text = text.replace(before, after)
    source.write_module(rlnb.options.folders, "Tuned", text, "test.ipynb")


@pytest.fixture
def tuner(folder: Path) -> Tuner:
    write()
    return rlnb.tune("Tuned", num_envs=4, device="cpu")


def test_each_term_has_a_value_per_env(tuner: Tuner) -> None:
    assert tuner.values["constant"] == pytest.approx([1.0] * 4)
    assert {"alive", "constant", "effort"} <= set(tuner.values)
    assert tuner.reward[2] == pytest.approx(sum(values[2] for values in tuner.values.values()))
    before = tuner.values["effort"]
    assert tuner.step(3).values["effort"] != before


def test_a_weight_or_a_parameter_is_swapped_into_the_living_env(tuner: Tuner) -> None:
    tuner.set("rewards.constant.weight", 3.0)
    assert (tuner.how, tuner.values["constant"]) == ("rewards swapped", pytest.approx([6.0] * 4))
    tuner.set("rewards.constant.params.value", 4.0)
    assert tuner.values["constant"] == pytest.approx([12.0] * 4)
    assert tuner.overrides == {"rewards.constant.weight": 3.0, "rewards.constant.params.value": 4.0}
    assert tuner.task.overrides == tuner.overrides
    assert tuner.tunable["rewards.constant.weight"] == 3.0


def test_an_edited_cell_is_swapped_too(tuner: Tuner) -> None:
    write(("torch.full((env.num_envs,), value", "torch.full((env.num_envs,), value + 1.0"))
    again = rlnb.tune("Tuned", num_envs=4, device="cpu")
    assert (again.how, again.values["constant"]) == ("rewards swapped", pytest.approx([1.5] * 4))
    write(("self.rewards.effort = ", "self.rewards.more = self.rewards.alive.copy()\n        self.rewards.effort = "))
    again = rlnb.tune("Tuned", num_envs=4, device="cpu")
    assert again.how == "rewards swapped"
    assert again.values["more"] == again.values["alive"]


def test_any_other_edit_makes_a_new_env_and_reports_it(tuner: Tuner) -> None:
    write(("self.decimation = 2", "self.decimation = 4"))
    assert rlnb.tune("Tuned", num_envs=4, device="cpu").how == "new env"


def test_a_joint_that_does_not_exist_is_refused_and_the_env_is_unchanged(tuner: Tuner) -> None:
    write(('joint_names=["cart_to_pole"]', 'joint_names=["cart_to_pool"]'))
    with pytest.raises(rlnb.WorkerError, match="cart_to_pool"):
        rlnb.tune("Tuned", num_envs=4, device="cpu")
    assert tuner.step().values["constant"] == pytest.approx([1.0] * 4)
    with pytest.raises(rlnb.CheckError, match=r"no config value 'rewards.constnt.weight'.*Did you mean"):
        tuner.set("rewards.constnt.weight", 1.0)
    with pytest.raises(rlnb.CheckError, match="takes float"):
        tuner.set("rewards.constant.weight", "heavy")
    assert tuner.overrides == {}


def test_a_reward_may_name_a_termination_that_comes_with_it(tuner: Tuner) -> None:
    write(
        (
            "self.decimation = 2",
            "self.terminations.high = self.terminations.time_out.copy()\n        self.decimation = 2",
        ),
        (
            "self.rewards.effort = ",
            "self.rewards.high = RewardTermCfg("
            'func=mdp.is_terminated_term, weight=-1.0, params={"term_keys": "high"})\n        self.rewards.effort = ',
        ),
    )
    again = rlnb.tune("Tuned", num_envs=4, device="cpu")
    assert again.how == "terminations, rewards swapped"
    assert again.values["high"] == [0.0] * 4


def test_a_preview_closes_the_env_and_the_tuner_reports_it(tuner: Tuner) -> None:
    rlnb.preview("Isaac-Cartpole-Direct", num_envs=2, steps=1)
    with pytest.raises(rlnb.RlnbError, match=r"another request needed the simulator.* Run rlnb\.tune again"):
        tuner.step()
    assert rlnb.tune("Tuned", num_envs=4, device="cpu").how == "new env"


def test_a_direct_task_has_no_terms(folder: Path) -> None:
    with pytest.raises(rlnb.RlnbError, match="not manager-based"):
        rlnb.tune("Isaac-Cartpole-Direct")


def test_an_edited_file_next_to_the_cell_is_imported_again(folder: Path) -> None:
    helper = rlnb.options.folders.tasks / "beside.py"
    helper.write_text("VALUE = 2.0\n")
    edit = ("import torch\n", "import torch\nimport beside\n")
    use = ("value: float = 2.0", "value: float = beside.VALUE")
    drop = (', params={"value": 2.0}', "")
    write(edit, use, drop)
    assert rlnb.tune("Tuned", num_envs=2, device="cpu").values["constant"] == pytest.approx([1.0] * 2)
    helper.write_text("VALUE = 6.0\n")
    assert rlnb.tune("Tuned", num_envs=2, device="cpu").values["constant"] == pytest.approx([3.0] * 2)
