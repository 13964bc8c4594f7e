import subprocess
import sys

from rlnb_tasks import __version__, plugin

from rlnb import Task
from rlnb.plugin import AssetPack

HEAVY = ("pxr", "newton", "warp", "torch", "isaaclab")


def test_the_packs_name_their_files_and_their_licences() -> None:
    primitives, hands, robots = plugin.rlnb_asset_packs()
    assert isinstance(primitives, AssetPack)
    assert primitives.build == "rlnb_tasks.build:primitives"
    assert all(pack.version.startswith(__version__) for pack in (primitives, hands, robots))
    assert [pack.on_request for pack in (primitives, hands, robots)] == [False, False, True]
    assert set(primitives.files.values()) == {"BSD-3-Clause", "Apache-2.0"}
    assert set(hands.files.values()) == {"BSD-3-Clause AND Apache-2.0"}
    assert set(robots.files.values()) == {"MPL-2.0", "Apache-2.0"}
    assert all(path.startswith("Isaac/") for pack in (primitives, hands, robots) for path in pack.files)


def test_only_the_stock_tasks_that_log_another_rate_get_a_success_function() -> None:
    tasks = plugin.rlnb_tasks()
    assert all(isinstance(task, Task) for task in tasks)
    assert {task.id: task.success for task in tasks} == {
        "Isaac-Lift-Franka": "rlnb_tasks.success:reached",
        "Isaac-Lift-KukaAllegro": "rlnb_tasks.success:reached",
        "Isaac-Lift-KukaAllegro-Camera": "rlnb_tasks.success:reached",
        "Isaac-Reorient-KukaAllegro": "rlnb_tasks.success:reached",
        "Isaac-Reorient-KukaAllegro-Camera": "rlnb_tasks.success:reached",
    }


def test_the_plugin_module_imports_nothing_heavy() -> None:
    code = f"import sys, rlnb_tasks.plugin as p; p.rlnb_asset_packs(); print([m for m in {HEAVY} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
