"""The door of :mod:`rlnb.storage` is the one way to the files of a root, in which other users may have put anything.

A path names whatever lies there at the moment of each call. The modules of the door open part by part, relative to
descriptors, and follow no link of another user. All others go through them, but for those below, which touch no root.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

REPO = Path(__file__).parents[2]
SOURCES = [*(REPO / "rlnb").rglob("*.py"), *REPO.glob("plugins/*/src/**/*.py"), *REPO.glob("extensions/*/src/**/*.py")]
DOOR = {f"rlnb/storage/{name}.py" for name in ("entries", "files", "access")}

MAY: dict[str, tuple[str, ...]] = {
    "files of an installed package, of Python or of Linux": (
        "rlnb/curves/live.py: Page.open_again _script _plotly_js",
        "rlnb/display/live_pictures.py: _widget _clickable_widget",
        "rlnb/display/server.py",
        "rlnb/display/front_end.py: _widget",
        "rlnb/display/own_user.py",
        "rlnb/doctor/interpreter.py: look",
        "rlnb/doctor/machine.py: server_base_urls",
        "rlnb/machine/cores.py",
        "rlnb/machine/threads.py",
        "rlnb/node/descendants.py",
        "rlnb/machine/cuda.py",
        "rlnb/machine/gpus.py",
        "rlnb/machine/packages.py",
        "rlnb/worker/probe.py",
        "plugins/rlnb-dask/src/rlnb_dask/sources.py",
        "plugins/rlnb-ssh/src/rlnb_ssh/install.py",
    ),
    "a path that the user of the call has named": (
        "rlnb/cli/containers.py",
        "rlnb/cli/demo.py",
        "rlnb/cli/plugins.py",
        "rlnb/node/supervisor.py: edited_script",
        "rlnb/notebook/define.py",
        "rlnb/training/script.py",
    ),
    "a temporary folder that the process itself has made": (
        "rlnb/curves/tensorboard.py",
        "rlnb/node/remote_job.py: SimulatorJobServer._simulate _made",
        "rlnb/node/simulator.py",
        "rlnb/reports/report.py",
        "rlnb/interactive/debugger.py: arrays_of",
        "rlnb/simulation/process.py: SimulatorProcess.close",
        "rlnb/worker/requests/serve.py: serve _standard_streams _compile do_job_there",
    ),
    "the cache of this user, or the local disk of a node": (
        "rlnb/node/file_transfer.py",
        "rlnb/storage/temporary.py",
        "rlnb/worker/assets/mirror.py",
        "rlnb/worker/assets/packs.py",
        "rlnb/worker/assets/root.py",
        "plugins/rlnb-tasks/src/rlnb_tasks/build.py",
        "plugins/rlnb-tasks/src/rlnb_tasks/dex_cube.py",
        "plugins/rlnb-tasks/src/rlnb_tasks/props.py",
        "plugins/rlnb-tasks/src/rlnb_tasks/shadow_hand.py",
        "plugins/rlnb-tasks/src/rlnb_tasks/stage.py",
        "plugins/rlnb-tasks/src/rlnb_tasks/urdf_robots.py",
    ),
    "slots of the machine, in a folder of this user whose owner it checks itself": ("rlnb/launch/slots.py",),
    "a journal that Optuna writes; it is opened by the door": ("rlnb/studies/trials.py: hold",),
    "modules that a worker has been told to import, and that were checked before": (
        "rlnb/worker/isaac/sources.py",
        "rlnb/worker/isaac/modules.py: import_file _names_in",
    ),
    "the disk of a checkpoint that is flushed; the file has been written by a library": (
        "rlnb/worker/jobs/checkpoints.py: _sync",
    ),
    "the contract's tests of plugins, in a root of their own": (
        "rlnb/testing/exports.py: write_with_code",
        "rlnb/testing/libraries.py",
        "rlnb/testing/trackers.py",
        "rlnb/testing/training.py",
    ),
    "the logs of a library in the worker's own run, whose folder the agent has checked": (
        "plugins/rlnb-echo/src/rlnb_echo/backend.py",
        "plugins/rlnb-echo/src/rlnb_echo/event_file.py",
        "plugins/rlnb-rl-games/src/rlnb_rl_games/sac.py",
        "plugins/rlnb-skrl/src/rlnb_skrl/backend.py: Skrl.export",
        "plugins/rlnb-skrl/src/rlnb_skrl/off_policy.py",
        "plugins/rlnb-skrl/src/rlnb_skrl/record.py",
    ),
    "a plugin has public names only; it works in a job, array or store of this user, which it checks itself": (
        "plugins/rlnb-dask/src/rlnb_dask/arrays/folder.py",
        "plugins/rlnb-dask/src/rlnb_dask/arrays/launcher.py",
        "plugins/rlnb-dask/src/rlnb_dask/arrays/rounds.py: Round._explain",
        "plugins/rlnb-dask/src/rlnb_dask/clusters.py",
        "plugins/rlnb-dask/src/rlnb_dask/existing.py",
        "plugins/rlnb-dask/src/rlnb_dask/host.py: Host.revoke",
        "plugins/rlnb-dask/src/rlnb_dask/node.py",
        "plugins/rlnb-dask/src/rlnb_dask/preflight.py",
        "plugins/rlnb-dask/src/rlnb_dask/queues/launcher.py: QueueLauncher.withdraw",
        "plugins/rlnb-mlflow/src/rlnb_mlflow/store.py",
    ),
    "the panel's own door, by which it opens what it serves": (
        "extensions/rlnb-jupyterlab/src/rlnb_jupyterlab/opening.py",
    ),
    "the panel looks for names and times, and opens none of them": (
        "extensions/rlnb-jupyterlab/src/rlnb_jupyterlab/choices.py",
        "extensions/rlnb-jupyterlab/src/rlnb_jupyterlab/goodput.py",
        "extensions/rlnb-jupyterlab/src/rlnb_jupyterlab/watcher.py: trouble",
    ),
}
"""Modules that open, list, make, rename or remove by path, by what they do it to; of large modules, only these
functions may."""

_OF_PATHS = {
    "glob",
    "hardlink_to",
    "iterdir",
    "mkdir",
    "read_bytes",
    "read_text",
    "rename",
    "rglob",
    "rmdir",
    "symlink_to",
    "touch",
    "unlink",
    "write_bytes",
    "write_text",
}
_OF_OS = {
    "chmod",
    "chown",
    "link",
    "listdir",
    "makedirs",
    "mkdir",
    "mkfifo",
    "open",
    "remove",
    "removedirs",
    "rename",
    "replace",
    "rmdir",
    "scandir",
    "symlink",
    "truncate",
    "unlink",
    "utime",
    "walk",
}
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_OF_SHUTIL = {"copy", "copy2", "copyfile", "copytree", "move", "rmtree"}


def calls(tree: ast.AST, function: str = "") -> Iterator[tuple[str, ast.Call]]:
    """Yield the calls that open, list, make, rename or remove something by its path, with their functions' names."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Call) and _is_by_path(node):
            yield function, node
        inside = f"{function}.{node.name}".strip(".") if isinstance(node, DEFINITIONS) else function
        yield from calls(node, inside)


def _is_by_path(call: ast.Call) -> bool:
    first = ast.unparse(call.args[0]) if call.args else ""
    if first == "os.devnull" or first.endswith(".fileno()"):
        return False
    if isinstance(call.func, ast.Name):
        return call.func.id == "open" and not first.startswith(("descriptor", "os.open("))
    if not isinstance(call.func, ast.Attribute):
        return False
    owner, name = ast.unparse(call.func.value), call.func.attr
    if owner in ("os", "shutil"):
        return name in (_OF_OS if owner == "os" else _OF_SHUTIL)
    if owner in ("entries", "files", "dataclasses"):
        return False
    if name == "open":  # Path.open, whose first argument is a mode
        return not call.args or first in ("'r'", "'rb'", "'w'", "'wb'", "'a'", "'ab'", "'x'", "'xb'")
    return name in _OF_PATHS or (name == "replace" and len(call.args) == 1 and not call.keywords)


def test_only_the_door_opens_what_others_can_have_put_into_a_root() -> None:
    found = []
    for path in SOURCES:
        name = path.relative_to(REPO).as_posix()
        if name in DOOR or exempt().get(name) == []:
            continue
        found += [
            f"{name}:{call.lineno}: {ast.unparse(call)[:100]}"
            for function, call in calls(ast.parse(path.read_text()))
            if not any(f"{function}.".startswith(f"{one}.") for one in exempt().get(name, ()))
        ]
    assert not found, "\n".join([*found, "Use rlnb.storage.entries or rlnb.storage.files."])


def exempt() -> dict[str, list[str]]:
    """Return the functions of each module that may do without the door; none are named where all may."""
    listed = (entry.partition(": ") for modules in MAY.values() for entry in modules)
    return {name: functions.split() for name, _, functions in listed}


def test_each_module_and_function_that_may_do_without_the_door_does() -> None:
    idle = []
    for name, functions in exempt().items():
        found = [f"{function}." for function, _ in calls(ast.parse((REPO / name).read_text()))]
        idle += [name] if not found else []
        idle += [f"{name}: {one}" for one in functions if not any(each.startswith(f"{one}.") for each in found)]
    assert not idle, "remove these from the list"
    assert len(exempt()) == sum(map(len, MAY.values())), "a module is listed twice"


def test_the_law_sees_each_kind_of_call() -> None:
    text = """
open(path); os.open(path, 0); os.replace(a, b); path.replace(b); path.open(); path.open("rb"); shutil.rmtree(path)
path.unlink(); path.touch(); os.scandir(path); path.write_text("x")
open(descriptor, "rb"); dataclasses.replace(x, y=1); text.replace("a", "b"); entries.remove(path)
os.utime(file.fileno()); os.open(os.devnull, 0)
"""
    assert sorted(call.lineno for _, call in calls(ast.parse(text))) == [2] * 7 + [3] * 4
