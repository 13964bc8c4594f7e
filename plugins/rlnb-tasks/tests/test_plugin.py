import subprocess
import sys
from types import SimpleNamespace

import pytest
from rlnb_tasks import plugin
from rlnb_tasks.success import survived

from rlnb import AssetPack, Task

HEAVY = ("pxr", "newton", "warp", "torch", "isaaclab")


def test_the_pack_names_its_files_and_their_licences() -> None:
    (pack,) = plugin.rlnb_asset_packs()
    assert isinstance(pack, AssetPack)
    assert pack.build == "rlnb_tasks.build:build"
    assert pack.version.startswith("0.1.0")
    assert set(pack.files.values()) == {"BSD-3-Clause", "Apache-2.0"}
    assert all(path.startswith("Isaac/") for path in pack.files)


def test_every_cartpole_task_has_a_success_definition() -> None:
    tasks = plugin.rlnb_tasks()
    assert all(isinstance(task, Task) and task.success == "rlnb_tasks.success:survived" for task in tasks)
    assert {task.id for task in tasks} == {
        "Isaac-Cartpole",
        "Isaac-Cartpole-Camera",
        "Isaac-Cartpole-Camera-Direct",
        "Isaac-Cartpole-Direct",
    }


def test_the_plugin_module_imports_nothing_heavy() -> None:
    code = f"import sys, rlnb_tasks.plugin as p; p.rlnb_asset_packs(); print([m for m in {HEAVY} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_survived_is_a_time_out_that_was_not_also_a_termination() -> None:
    torch = pytest.importorskip("torch")
    env = SimpleNamespace(
        reset_time_outs=torch.tensor([True, True, False, False]),
        reset_terminated=torch.tensor([False, True, True, False]),
    )
    assert survived(env).tolist() == [True, False, False, False]
