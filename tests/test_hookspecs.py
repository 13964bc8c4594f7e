"""Every hook, called for real: registered by hand in the kernel, or by an installed plugin in the worker."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
import psutil
import pytest

import rlnb
from rlnb.cameras.grid import colorize
from rlnb.curves import panels
from rlnb.hooks import plugins
from rlnb.hooks.registry import manager
from rlnb.launchers import LauncherType
from rlnb.plugin import AssetPack, Command, Library, Manifest, Panel, Problem, hookimpl

ITERATIONS = 5
WAIT_S = 60.0
NOTE_WAIT_S = 30.0
MINE = "mine"

PLUGIN = """
import json

import rlnb


@rlnb.plugin.hookimpl
def rlnb_configure_env(env_cfg, manifest):
    env_cfg.episode_length_s = {episode_length_s}


@rlnb.plugin.hookimpl
def rlnb_run_started(run_dir, manifest):
    _note(run_dir, "started", manifest.run_id, None)


@rlnb.plugin.hookimpl
def rlnb_run_finished(run_dir, manifest, result):
    _note(run_dir, "finished", manifest.run_id, result.outcome)


def _note(run_dir, what, run_id, outcome):
    on_disk = sorted(path.name for path in run_dir.glob("jobs/0-train/*.json"))
    note = {{"run_id": run_id, "outcome": outcome, "on_disk": on_disk}}
    draft = run_dir / f"{{what}}.draft"
    draft.write_text(json.dumps(note))
    draft.rename(run_dir / f"{{what}}.note")
"""
EPISODE_LENGTH_S = 1.25


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install a plugin for all processes that the test starts, and return its site folder."""
    site = tmp_path / "site"
    info = site / "rlnb_noted-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: rlnb-noted\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[rlnb]\nnoted = rlnb_noted\n")
    (site / "rlnb_noted.py").write_text(PLUGIN.format(episode_length_s=EPISODE_LENGTH_S))
    path = os.environ.get("PYTHONPATH")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(site), *([path] if path else [])]))
    return site


@pytest.fixture
def registered() -> Iterator[Any]:
    """Provide a function that registers a plugin until the test ends."""
    names: list[str] = []

    def register(**hooks: Any) -> None:
        names.append(f"{MINE}{len(names)}")
        plugin = type("Plugin", (), {name: staticmethod(hookimpl(hook)) for name, hook in hooks.items()})
        rlnb.register(plugin, names[-1])

    yield register
    for name in names:
        manager().unregister(name=name)


def echo(**arguments: Any) -> rlnb.Run:
    return rlnb.train("Echo", library="echo", max_iterations=ITERATIONS, **arguments)


def note(run: rlnb.Run, what: str) -> dict[str, Any]:
    """Return the note of the installed plugin, which it may write after the run has ended."""
    path, deadline = run.path / f"{what}.note", time.monotonic() + NOTE_WAIT_S
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} was never written"
        time.sleep(0.02)
    return json.loads(path.read_text())


def test_rlnb_libraries_adds_a_library(registered: Any) -> None:
    assert "echo" in plugins.libraries()
    registered(rlnb_libraries=lambda: [Library(name=MINE, backend="nowhere:Nothing")])
    assert plugins.library(MINE).backend == "nowhere:Nothing"
    assert list(plugins.libraries()) == sorted(plugins.libraries())


def test_rlnb_launchers_adds_a_launcher_as_an_attribute_of_rlnb(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, registered: Any
) -> None:
    (tmp_path / "pigeon_post.py").write_text(
        "import rlnb\n\n\nclass Pigeon(rlnb.launchers.LocalLauncher):\n    name = 'pigeon'\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    registered(rlnb_launchers=lambda: [LauncherType(name="pigeon", factory="pigeon_post:Pigeon")])
    run = echo(launcher=rlnb.pigeon(max_running=1))
    assert run.wait(WAIT_S).state == "completed"
    assert run.manifest.launcher == "pigeon"
    assert plugins.launcher("local").factory == "rlnb.launch.local:LocalLauncher"


def test_rlnb_tasks_adds_a_task(root: Path, registered: Any) -> None:
    with pytest.raises(rlnb.CheckError, match="No task named 'Echo-Two'"):
        rlnb.train("Echo-Two", library="echo")
    registered(rlnb_tasks=lambda: [rlnb.Task(id="Echo-Two")])
    assert rlnb.train("Echo-Two", library="echo", max_iterations=1).wait(WAIT_S).task == "Echo-Two"


def test_rlnb_asset_packs_are_built_into_the_asset_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, registered: Any
) -> None:
    from rlnb.worker.assets import packs  # needs no simulator

    lines = ["def build(folder):", "(folder / 'box.usda').write_text('#usda 1.0')", "return {'box.usda': 'box_pack'}"]
    (tmp_path / "box_pack.py").write_text("\n    ".join(lines))
    monkeypatch.syspath_prepend(tmp_path)
    box = AssetPack(name="box", version="1", build="box_pack:build", files={"box.usda": "MIT"})
    registered(rlnb_asset_packs=lambda: [box])
    monkeypatch.setattr(packs, "_packs", lambda *, on_request: [box])  # building the real packs needs the simulator
    folder = packs.build(tmp_path / "assets").folder
    assert (folder / "box.usda").read_text() == "#usda 1.0"


def test_rlnb_check_stops_a_run_before_anything_is_written(root: Path, registered: Any) -> None:
    seeds = []

    def no_sunday(manifest: Manifest) -> list[Problem]:
        seeds.append(manifest.seed)
        return [Problem(what="today is Sunday.", fix="Come back tomorrow.")]

    registered(rlnb_check=no_sunday)
    registered(rlnb_check=lambda manifest: [])
    registered(rlnb_check=lambda: [Problem(what="and it rains.")])
    with pytest.raises(rlnb.CheckError) as caught:
        echo(seed=7)
    assert seeds == [7]
    assert {problem.what for problem in caught.value.problems} == {"today is Sunday.", "and it rains."}
    assert "fix: Come back tomorrow." in str(caught.value)
    assert not root.exists()


def test_rlnb_wrap_command_changes_the_command(root: Path, registered: Any) -> None:
    def in_shell(command: Command, manifest: Manifest) -> Command:
        argv = ("sh", "-c", f'echo wrapped {manifest.seed}; exec "$@"', "sh", *command.argv)
        return dataclasses.replace(command, argv=argv)

    registered(rlnb_wrap_command=in_shell)
    registered(rlnb_wrap_command=lambda command: None)  # called first, and passes
    run = echo(seed=11).wait(WAIT_S)
    assert "wrapped 11" in run.logs(1000)
    assert run.command.startswith("PYTHONUNBUFFERED=1 sh -c 'echo wrapped 11;")


@pytest.mark.isaaclab
@pytest.mark.timeout(600)
@pytest.mark.skipif(importlib.util.find_spec("isaaclab") is None, reason="isaaclab is not installed here")
def test_rlnb_configure_env_changes_the_env_that_is_trained(root: Path, install: Path) -> None:
    from rlnb.simulation.pool import pool

    try:
        run = rlnb.train("Isaac-Cartpole-Direct", num_envs=4, max_iterations=2, device="cpu").wait(300.0)
    finally:
        pool.shut_down()  # started for the task card
    assert f"episode_length_s: {EPISODE_LENGTH_S}" in (run.path / "logs/params/env.yaml").read_text()
    assert note(run, "finished")["outcome"] == "completed"
    assert run.started is not None
    assert run.started.plugins == {"noted": "1.0"}
    (install / "rlnb_noted.py").write_text("raise ValueError('of all things')\n")
    try:
        with pytest.warns(UserWarning, match=r"^The plugin 'noted' 1\.0 could change the env of the training\."):
            evaluation = run.evaluate(2)
    finally:
        pool.shut_down()
    (warning,) = evaluation.warnings
    assert warning in dict(row[::-1][1:] for row in evaluation.rows())
    assert [of_run.warnings for of_run in run.evaluations] == [(warning,)]


def test_rlnb_run_started_is_called_after_started_json_is_written(root: Path, install: Path) -> None:
    run = echo().wait(WAIT_S)
    message = note(run, "started")
    assert message["run_id"] == run.id
    assert "started.json" in message["on_disk"]
    assert "result.json" not in message["on_disk"]


def test_rlnb_run_started_that_raises_is_named_in_the_log_and_the_training_goes_on(root: Path, install: Path) -> None:
    (install / "rlnb_noted.py").write_text(
        "import rlnb\n\n\n@rlnb.plugin.hookimpl\ndef rlnb_run_started(run_dir):\n    raise SystemExit(3)\n"
    )
    run = echo().wait(WAIT_S)
    assert run.state == "completed"
    assert "rlnb_run_started() of the plugin 'noted' (rlnb-noted 1.0) called sys.exit(3)" in run.logs(100)


def test_rlnb_run_finished_is_called_after_the_result_is_on_disk(root: Path, install: Path) -> None:
    run = echo().wait(WAIT_S)
    message = note(run, "finished")
    assert (message["run_id"], message["outcome"]) == (run.id, "completed")
    assert "result.json" in message["on_disk"]


def test_rlnb_run_finished_is_called_for_a_failed_run_too(root: Path, install: Path) -> None:
    with pytest.raises(rlnb.RunError):
        echo(agent={"crash_at": 2}).wait(WAIT_S)
    assert note(rlnb.runs()[0], "finished")["outcome"] == "failed"


def test_rlnb_run_finished_that_raises_is_called_once_and_the_run_stays_completed(root: Path, install: Path) -> None:
    (install / "rlnb_noted.py").write_text(
        "import rlnb\n\n\n@rlnb.plugin.hookimpl\ndef rlnb_run_finished(run_dir, result):\n"
        "    with open(run_dir / 'told', 'a') as file:\n        file.write(result.outcome + '\\n')\n"
        "    raise RuntimeError('the tracker is down')\n"
    )
    run = echo().wait(WAIT_S)
    _, living = psutil.wait_procs([psutil.Process(run.jobs[0].handle["pid"])], timeout=NOTE_WAIT_S)
    assert not living
    assert (run.path / "told").read_text().split() == ["completed"]
    assert run.state == "completed"
    assert "the tracker is down" in run.logs(100)


def test_a_hook_registered_in_the_kernel_is_not_called_in_the_worker(root: Path, registered: Any) -> None:
    folders: list[Path] = []
    registered(rlnb_run_started=lambda run_dir: folders.append(run_dir))
    echo().wait(WAIT_S)
    assert not folders, "a plugin that is registered by hand exists in this process only"


def test_rlnb_colorize_comes_before_the_built_in_colours(registered: Any) -> None:
    frames = np.zeros((2, 3, 4, 1), np.float32)

    def thermal(frames: np.ndarray, data_type: str) -> np.ndarray | None:
        return np.full((*frames.shape[:3], 3), 9, np.uint8) if data_type == "thermal" else None

    registered(rlnb_colorize=thermal)
    assert (colorize(frames, "thermal") == 9).all()
    assert colorize(frames, "depth").shape == (2, 3, 4, 3)
    assert not (colorize(frames, "depth") == 9).all()


def test_rlnb_panels_adds_figures_to_a_run(root: Path, registered: Any) -> None:
    run = echo().wait(WAIT_S)
    odd = "<script>odd</script>"

    def figures(run: rlnb.Run) -> list[Panel]:
        rewards = run.metrics["reward"].values
        return [
            Panel(title=odd, figure=lambda: go.Figure(go.Scatter(y=rewards, mode="lines"))),
            Panel(title="as a map", figure=lambda: go.Figure(go.Heatmap(z=[rewards]))),
            Panel(title="broken", figure=lambda: 1 / 0),
        ]

    registered(rlnb_panels=figures)
    bundles = [bundle for bundle in panels.bundles([run]) if "<h3>" not in bundle.get("text/html", "")]
    assert [sorted(bundle) for bundle in bundles] == [
        ["application/vnd.plotly.v1+json", "image/png", "text/plain"],
        ["application/vnd.plotly.v1+json", "text/plain"],
        ["text/html", "text/plain"],
    ]
    assert len(bundles[0]["application/vnd.plotly.v1+json"]["data"][0]["y"])
    assert "ZeroDivisionError" in bundles[2]["text/plain"]
    page = panels.pictures([run])
    assert "<h3>&lt;script&gt;odd&lt;/script&gt;</h3><img alt='&lt;script&gt;odd" in page
    assert "<script>" not in page
