"""Tests of rlnb.worker.isaac.solver without a simulator; with one: tests/simulation/test_shortages."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rlnb.records.incidents import Shortage, read_shortages
from rlnb.worker.isaac import solver
from rlnb.worker.isaac.solver import Shortages, look_for_shortages, unprinted

warp = pytest.importorskip("warp")


def ints(*values: int) -> Any:
    return warp.array(values, dtype=int, device="cpu")


class Env:
    """What Isaac Lab's env and MuJoCo Warp's data have that is read: four envs, with 10 constraints and 5 contacts."""

    num_envs = 4

    def __init__(self) -> None:
        self.data = SimpleNamespace(njmax=10, naconmax=20, nefc=ints(3, 14, 12, 0), nacon=ints(31), ncollision=ints(25))
        self.data.overflow = ints(0, 1, 2, 0)
        self.sim = SimpleNamespace(physics_manager=SimpleNamespace(_solver=SimpleNamespace(mjw_data=self.data)))

    def step(self, action: str) -> str:
        return f"outcome of {action}"


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solver, "LOOK_S", 0.0)


def test_limits_are_read_with_what_the_envs_need() -> None:
    env = Env()
    assert look_for_shortages(env) == {"njmax": Shortage(limit="njmax", size=10, needed=14, envs=2, num_envs=4)}
    env.data.overflow = ints(8, 8, 8, 9)
    assert look_for_shortages(env) == {
        "njmax": Shortage(limit="njmax", size=10, needed=14, envs=1, num_envs=4),
        "nconmax": Shortage(limit="nconmax", size=5, needed=8, envs=4, num_envs=4),
    }


@pytest.mark.parametrize(("bit", "limit"), [(0, "njmax"), (1, "njmax"), (2, "nconmax"), (3, "nconmax"), (4, "nconmax")])
def test_each_bit_of_a_lost_contact_is_read(bit: int, limit: str) -> None:
    env = Env()
    env.data.overflow = ints(0, 1 << bit, 0, 0)
    assert list(look_for_shortages(env)) == [limit]


def test_a_need_that_has_passed_was_at_least_above_the_limit() -> None:
    env = Env()
    env.data.nefc = ints(3, 2, 1, 0)
    assert look_for_shortages(env)["njmax"].needed == 11


def test_a_limit_without_a_setting_is_logged_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(solver, "_told", set())
    env = Env()
    env.data.overflow = ints(0, 1 << 5, 0, 0)
    assert look_for_shortages(env) == look_for_shortages(env) == {}
    assert [record.message for record in caplog.records] == [
        "A limit of MuJoCo Warp was exceeded: OverflowType.HFIELD. Contacts may be inexact."
    ]


@pytest.mark.parametrize("bits", [0, 1 << 9, 1 << 10])
def test_a_limit_of_iterations_drops_nothing(bits: int) -> None:
    env = Env()
    env.data.overflow = ints(bits, bits, bits, bits)
    assert look_for_shortages(env) == {}


def test_another_engine_has_nothing_to_read() -> None:
    env: Any = SimpleNamespace(sim=SimpleNamespace(physics_manager=SimpleNamespace()), step=len)
    assert look_for_shortages(env) == {}
    Shortages(env, None).attach()
    assert env.step is len


def test_a_training_keeps_the_largest_need_and_logs_it_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    env, path = Env(), tmp_path / "shortages0.json"
    Shortages(env, path).attach()
    assert env.step("a") == "outcome of a"
    env.data.nefc = ints(0, 20, 0, 0)
    env.step("b")
    env.data.overflow = ints(0, 0, 0, 0)
    env.step("c")
    assert read_shortages([path]) == (Shortage(limit="njmax", size=10, needed=20, envs=2, num_envs=4),)
    assert [record.message.partition(",")[0] for record in caplog.records] == [
        "The physics solver dropped constraints in 2 of 4 envs"
    ]


def test_a_look_that_fails_is_the_last_one(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    env = Env()
    del env.data.nefc
    Shortages(env, tmp_path / "shortages0.json").attach()
    for action in "ab":
        assert env.step(action) == f"outcome of {action}"
    assert len(caplog.records) == 1
    assert "AttributeError" in caplog.text


def config(solver: str) -> Any:
    return SimpleNamespace(sim=SimpleNamespace(physics=SimpleNamespace(solver_cfg=SimpleNamespace(solver_type=solver))))


def test_models_print_nothing_about_their_limits() -> None:
    mujoco, mujoco_warp = pytest.importorskip("mujoco"), pytest.importorskip("mujoco_warp")
    model = mujoco.MjModel.from_xml_string("<mujoco><worldbody/></mujoco>")
    before = mujoco_warp.put_model
    with unprinted(config("featherstone")):
        assert mujoco_warp.put_model is before
    with unprinted(SimpleNamespace(sim=SimpleNamespace(physics=None))):
        assert mujoco_warp.put_model is before
    with unprinted(config("mujoco_warp")):
        assert not mujoco_warp.put_model(model).opt.warn_overflow
    assert mujoco_warp.put_model is before
    assert mujoco_warp.put_model(model).opt.warn_overflow
