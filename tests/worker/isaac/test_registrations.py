"""Tasks of other packages, by id and by their config, with mistakes in the registration or in the name."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

import gymnasium
import pytest

import rlnb

pytestmark = [
    pytest.mark.isaaclab,
    pytest.mark.skipif(importlib.util.find_spec("isaaclab") is None, reason="isaaclab is not installed here"),
]

CONFIG = """
from isaaclab.utils import configclass
from isaaclab_tasks.core.cartpole.cartpole_direct_env_cfg import CartpoleEnvCfg

@configclass
class BalanceEnvCfg(CartpoleEnvCfg):
    episode_length_s = 1.0
"""
ENV = """
from isaaclab_tasks.core.cartpole.cartpole_direct_env import CartpoleEnv
from balance.env_cfg import BalanceEnvCfg

class BalanceEnv(CartpoleEnv):
    cfg: BalanceEnvCfg
"""
MADE_LATER = ("lazy", "exported", "made", "put", "stubbed")
"""Modules whose source does not show all names."""
LAZY = "from isaaclab.utils.module import lazy_export\n\nlazy_export()\n"
REGISTRATION = """
import gymnasium

def add(id, entry_point="balance.env:BalanceEnv", **kwargs):
    gymnasium.register(id=id, entry_point=entry_point, kwargs=kwargs)

add("Balance", env_cfg_entry_point="balance.env_cfg:BalanceEnvCfg")
add("Balance-Misspelt", env_cfg_entry_point="balance.env_cfg:BalanceEnvConfig")
add("Balance-Moved", env_cfg_entry_point="balance.moved.env_cfg:BalanceEnvCfg")
add("Balance-Broken", env_cfg_entry_point="balance.broken:BalanceEnvCfg")
add("Balance-Plain")
add("Balance-Env-Misspelt", "balance.env:BalanseEnv", env_cfg_entry_point="balance.env_cfg:BalanceEnvCfg")
add("Balance-Env-Moved", "balance.envs:BalanceEnv", env_cfg_entry_point="balance.env_cfg:BalanceEnvCfg")
for module in ("lazy", "exported", "made", "put", "stubbed"):
    add(f"Balance-Env-{module}", f"balance.{module}:Env", env_cfg_entry_point="balance.env_cfg:BalanceEnvCfg")
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package with a direct task in two modules, as ``isaaclab --new`` writes it."""
    files = {"__init__.py": REGISTRATION, "env_cfg.py": CONFIG, "env.py": ENV, "broken.py": "import no_such_package\n"}
    files |= {"lazy.py": "from balance.env import *\n", "exported.py": LAZY, "made.py": "globals()['Env'] = object\n"}
    files["put.py"] = "import sys\nsys.modules[__name__].Env = object\n"
    files |= {
        "stubbed.py": "__import__('balance.' + 'stubbed').stubbed.Env = object\n",
        "stubbed.pyi": "class Env: ...\n",
    }
    (tmp_path / "balance").mkdir()
    for name, text in files.items():
        (tmp_path / "balance" / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "balance"]:
        del sys.modules[name]
    for id in [id for id in gymnasium.registry if "alance" in id]:
        del gymnasium.registry[id]


@pytest.mark.parametrize(
    ("id", "error"),
    [
        (
            "Balance-Misspelt",
            "The registration of Balance-Misspelt has env_cfg_entry_point='balance.env_cfg:BalanceEnvConfig', but "
            "balance.env_cfg has no 'BalanceEnvConfig'. Did you mean 'BalanceEnvCfg'? Correct the registration.",
        ),
        (
            "Balance-Moved",
            "The registration of Balance-Moved has env_cfg_entry_point='balance.moved.env_cfg:BalanceEnvCfg', but "
            "there is no module 'balance.moved'. Correct the registration.",
        ),
        (
            "Balance-Env-Misspelt",
            "The registration of Balance-Env-Misspelt has entry_point='balance.env:BalanseEnv', but balance.env has no "
            "'BalanseEnv'. Did you mean 'BalanceEnv'? Correct the registration.",
        ),
        (
            "Balance-Env-Moved",
            "The registration of Balance-Env-Moved has entry_point='balance.envs:BalanceEnv', but there is no module "
            "'balance.envs'. Correct the registration.",
        ),
        ("Balance-Plain", "its registration has no env_cfg_entry_point. Use gymnasium.register(..., kwargs={"),
        ("balance.env_cfg:BalanceEnvConfig", "has no attribute 'BalanceEnvConfig'. Did you mean 'BalanceEnvCfg'?"),
        ("no_such_package.tasks:Cfg", "No module named 'no_such_package'. Use pip to install your project there"),
        (
            "balance.env:BalanceEnv",
            "balance.env:BalanceEnv: BalanceEnv is not the config of an env. Use balance.env:BalanceEnvCfg.",
        ),
    ],
)
def test_a_mistake_is_named_with_its_place_and_its_fix(package: None, id: str, error: str) -> None:
    from rlnb.worker.isaac import isaaclab

    importlib.import_module("balance")
    with pytest.raises(rlnb.RlnbError) as caught:
        isaaclab.register(rlnb.Task(id=id))
    assert error in str(caught.value).replace("\n", " ")


def test_an_error_inside_the_module_of_a_config_is_raised_as_it_is(package: None) -> None:
    from rlnb.worker.isaac import isaaclab

    importlib.import_module("balance")
    with pytest.raises(ModuleNotFoundError, match="no_such_package"):
        isaaclab.register(rlnb.Task(id="Balance-Broken"))


def test_an_env_is_not_imported_to_see_whether_it_exists(package: None) -> None:
    """It may load USD, which Isaac Sim has to load itself."""
    from rlnb.worker.isaac import isaaclab

    importlib.import_module("balance")
    for id in ("Balance", *(f"Balance-Env-{name}" for name in MADE_LATER)):
        assert isaaclab.register(rlnb.Task(id=id)).gym_id == id, "its source does not show all names"
    assert not {f"balance.{name}" for name in ("env", *MADE_LATER)} & sys.modules.keys()


def test_a_direct_task_by_its_config_has_the_env_of_its_registration(package: None) -> None:
    from rlnb.worker.isaac import isaaclab

    registered = isaaclab.register(rlnb.Task(id="balance.env_cfg:BalanceEnvCfg"))
    spec = gymnasium.spec(registered.gym_id)
    assert spec.entry_point == "balance.env:BalanceEnv"
    assert spec.kwargs["env_cfg_entry_point"]().episode_length_s == 1.0
