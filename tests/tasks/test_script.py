"""A plain training script as a run."""

from __future__ import annotations

import importlib.util
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

import rlnb

WAIT_S = 60.0
ISAACLAB_2_3 = Path(__file__).parents[1] / "rig" / "isaaclab_2_3"
SCRIPT = """
import os, sys, time
from pathlib import Path
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter

iterations, pause_s = int(sys.argv[sys.argv.index("--iterations") + 1]), float(sys.argv[-1])
logs = Path("logs/rsl_rl/cartpole/2026-01-01")
(logs / "params").mkdir(parents=True)
(logs / "params" / "env.yaml").write_text("scene:\\n  num_envs: 8\\n")
(logs / "params" / "agent.yaml").write_text("num_steps_per_env: 16\\n")
writer = EventFileWriter(str(logs), flush_secs=0.2)
for iteration in range(iterations):
    scalars = {"Train/mean_reward": iteration / 10, "Loss/value": 1.0, "Perf/total_fps": 100.0}
    values = [Summary.Value(tag=tag, simple_value=value) for tag, value in scalars.items()]
    writer.add_event(Event(wall_time=time.time(), step=iteration, summary=Summary(value=values)))
    print("iteration", iteration, "pid", os.getpid(), flush=True)
    time.sleep(pause_s)
(logs / "model_4.pt").write_text("weights")
writer.close()
if iterations == 3:
    raise SystemExit("three is too few")
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "my train.py"
    path.write_text(SCRIPT)
    return path


def started(script: Path, iterations: int = 5, pause_s: float = 0.0, **arguments: Any) -> rlnb.Run:
    argv = ["--task", "My-Task", "--iterations", str(iterations), str(pause_s)]
    return rlnb.train(script=script, args=argv, **arguments)


def test_the_events_of_a_script_become_metrics_of_the_library_with_their_tags(root: Path, script: Path) -> None:
    run = started(script, tags=["stock"]).wait(WAIT_S)
    assert (run.state, run.task, run.library) == ("completed", "My-Task", "script")
    assert run.metrics["reward"].values == pytest.approx([0.0, 0.1, 0.2, 0.3, 0.4])
    assert run.metrics["reward"].frames == [128 * (iteration + 1) for iteration in range(5)]
    assert "iteration 4" in run.logs()
    assert [path.name for path in run.checkpoints] == ["model_4.pt"]
    assert "reward" in run._repr_html_()


def test_the_metrics_of_a_script_have_names_once_they_are_logged(root: Path, script: Path) -> None:
    run = started(script)
    assert len(run.metrics) == 0, "nothing is logged yet"
    while run.state != "completed":
        time.sleep(0.1)
    assert run.metrics["reward"].values == pytest.approx([0.0, 0.1, 0.2, 0.3, 0.4])


def test_the_command_of_a_script_is_plain_and_its_source_is_kept(root: Path, script: Path) -> None:
    run = started(script).wait(WAIT_S)
    logs = run.path / "logs"
    assert run.command == (
        f"cd {logs} && PYTHONUNBUFFERED=1 {sys.executable} '{script}' --task My-Task --iterations 5 0.0"
    )
    assert (run.path / "source" / script.name).read_text() == SCRIPT
    assert run.manifest.task.source_sha256


def test_torchrun_starts_several_ranks_of_a_script(root: Path, script: Path) -> None:
    run = started(script, nproc_per_node=2)
    run.cancel()
    assert f"-m torch.distributed.run --nproc_per_node=2 --nnodes=1 '{script}'" in run.command


def test_a_script_is_listed_once_and_cancel_ends_all_its_processes(root: Path, script: Path) -> None:
    run = started(script, iterations=1000, pause_s=0.1)
    deadline = time.monotonic() + WAIT_S
    while run.state != "running":
        assert time.monotonic() < deadline
        time.sleep(0.05)
    (again,) = rlnb.runs(library="script")
    assert (again.id, again.metrics["reward"].last >= 0.0) == (run.id, True)
    handle = run.jobs[-1].handle
    assert handle is not None
    agent = psutil.Process(handle["pid"])
    processes = [agent, *agent.children(recursive=True)]
    run.cancel()
    _, alive = psutil.wait_procs(processes, timeout=30)
    assert not alive
    assert run.state == "cancelled"


@pytest.mark.parametrize(
    "refused", [{"seed": 3}, {"device": "cpu"}, {"library": "skrl"}, {"nproc_per_node": "auto"}, {"trust": True}]
)
def test_arguments_that_do_not_apply_to_a_script_are_refused(root: Path, script: Path, refused: dict[str, Any]) -> None:
    ((name, value),) = refused.items()
    with pytest.raises(rlnb.CheckError, match=f"{name}={value!r} does not apply to a script"):
        started(script, **refused)
    assert not (root / "runs").exists()


def test_a_switch_that_a_script_often_has_is_suggested_as_its_argument(root: Path, script: Path) -> None:
    with pytest.raises(rlnb.CheckError, match=r'fix: args=\["--deterministic"\], if the script has it'):
        started(script, deterministic=True)


def test_the_command_line_starts_it_with_its_own_arguments(root: Path, script: Path) -> None:
    from typer.testing import CliRunner

    from rlnb.cli.app import app

    argv = ["script", "--detach", "--tag", "cli", str(script), "--task", "My-Task", "--iterations", "5", "0.0"]
    started = CliRunner().invoke(app, argv)
    assert started.exit_code == 0, started.output
    run = rlnb.get_run(started.stdout.strip()).wait(WAIT_S)
    assert (run.task, run.manifest.tags) == ("My-Task", ("cli",))
    assert len(run.metrics["reward"]) == 5


def test_the_run_fails_with_its_script(root: Path, script: Path) -> None:
    with pytest.raises(rlnb.RunError, match=r"(?s)failed.*three is too few"):
        started(script, iterations=3).wait(WAIT_S)


@pytest.mark.parametrize("verb", ["evaluate", "export", "resume"])
def test_a_run_of_a_script_cannot_be_evaluated_exported_or_resumed(root: Path, script: Path, verb: str) -> None:
    run = started(script).wait(WAIT_S)
    with pytest.raises(rlnb.RunError, match="is the run of a script"):
        getattr(run, verb)()


def test_all_problems_are_reported_at_once_and_nothing_is_written(root: Path, tmp_path: Path) -> None:
    with pytest.raises(rlnb.CheckError) as caught:
        rlnb.train("Echo", script=tmp_path / "none.py", args=[1], num_envs=8)  # type: ignore[list-item]
    whats = [problem.what for problem in caught.value.problems]
    for word, text in zip(["does not exist", "list of strings", "task=", "num_envs=8"], whats, strict=True):
        assert word in text
    with pytest.raises(rlnb.RlnbError, match="needs a task"):
        rlnb.train()
    with pytest.raises(rlnb.CheckError) as caught:
        rlnb.train("Echo", library="echo", args=["--fast"], agent=tmp_path / "no.yaml", init_from="absent", keep=0)
    whats = [problem.what for problem in caught.value.problems]
    for word, text in zip(["args=", "no.yaml cannot be read", "init_from='absent'", "keep=0"], whats, strict=True):
        assert word in text
    assert len(rlnb.runs()) == 0


@pytest.mark.isaaclab
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(importlib.util.find_spec("isaaclab") is None, reason="isaaclab is not installed here")
def test_isaac_labs_training_script_runs(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from rlnb.worker.assets.packs import build

    monkeypatch.setenv("ISAACSIM_ASSET_ROOT", str(build().folder))
    argv = "train --rl_library rsl_rl --task Isaac-Cartpole-Direct --num_envs 16 --max_iterations 12 --device cpu"
    run = rlnb.train(script=Path(sys.executable).with_name("isaaclab"), args=[*argv.split(), "agent.device=cpu"])
    run.wait(300)
    assert run.task == "Isaac-Cartpole-Direct"
    assert run.metrics["fps"].iterations == list(range(12))
    horizon = run.metrics["fps"].frames[0] / 16
    assert horizon > 1
    assert run.metrics["fps"].frames[-1] == 12 * 16 * horizon
    assert run.checkpoints.last is not None
    assert not (Path.cwd() / "logs").exists()


def test_tags_that_no_library_uses_are_metrics_too(root: Path, script: Path) -> None:
    source = script.read_text().replace('"Train/mean_reward"', '"my/score"').replace('"Loss/value"', '"my/loss"')
    script.write_text(source.replace('"Perf/total_fps"', '"my/rate"'))
    run = started(script).wait(WAIT_S)
    assert run.metrics.names == ["my/loss", "my/rate", "my/score"]
    assert set(run.metrics.frame()["metric"]) == set(run.metrics.names)
    assert [note.text for note in run.plot().layout.annotations] == run.metrics.names


def of_isaac_lab_2_3(python: str, iterations: int, iteration_s: float, **arguments: Any) -> rlnb.Run:
    """Start a training script in the form of Isaac Lab 2.3's with its interpreter."""
    argv = ["--task", "Isaac-Ant-v0", "--headless", "--num_envs", "16", "--max_iterations", str(iterations)]
    argv += [f"agent.iteration_s={iteration_s}"]
    return rlnb.train(script=ISAACLAB_2_3 / "train.py", args=argv, python=python, **arguments)


def test_a_script_of_isaac_lab_2_3_runs_under_python_3_11_with_live_metrics(root: Path, isaaclab_2_3: str) -> None:
    run = of_isaac_lab_2_3(isaaclab_2_3, 6, 0.3)
    deadline = time.monotonic() + WAIT_S
    while not len(run.metrics["reward"] if "reward" in run.metrics.names else ()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert (run.state, run.task) == ("running", "Isaac-Ant-v0"), "the curve grows while the script trains"
    assert run.wait(WAIT_S).state == "completed"
    assert run.metrics["reward"].values == pytest.approx([0.0, 0.1, 0.2, 0.3, 0.4, 0.5])
    assert run.metrics["reward"].frames == [16 * 24 * (iteration + 1) for iteration in range(6)]
    assert run.metrics["value_loss"].last == pytest.approx(1 / 6), "a tag that RSL-RL has renamed since"
    assert [path.name for path in run.checkpoints] == ["model_0.pt", "model_5.pt"]
    assert "Learning iteration 5/6" in run.logs()
    assert run.config["env.scene.num_envs"] == 16
    assert run.manifest.versions["isaaclab"] == "2.3.2"
    assert run.manifest.versions["python"].startswith("3.11.")
    assert {path.name for path in (run.path / "logs").iterdir()} <= {"logs", "outputs", "system"}


def test_cancel_ends_a_script_of_isaac_lab_2_3_whose_app_hangs(root: Path, isaaclab_2_3: str) -> None:
    run = of_isaac_lab_2_3(isaaclab_2_3, 1000, 0.1)
    deadline = time.monotonic() + WAIT_S
    while run.state != "running":
        assert time.monotonic() < deadline
        time.sleep(0.05)
    handle = run.jobs[-1].handle
    assert handle is not None
    agent = psutil.Process(handle["pid"])
    processes = [agent, *agent.children(recursive=True)]
    assert len(processes) >= 4, "the agent, isaaclab.sh, the script and the app's helper"
    run.cancel()
    _, alive = psutil.wait_procs(processes, timeout=30)
    assert not alive
    assert run.state == "cancelled"
    assert len(run.metrics["reward"]) > 0


def test_a_script_that_was_edited_while_it_waited_is_not_started(root: Path, script: Path) -> None:
    first = started(script, iterations=1000, pause_s=0.1)
    second = started(script)
    script.write_text(f"{SCRIPT}\nprint('edited')\n")
    first.cancel()
    with pytest.raises(rlnb.RunError, match="was edited after this run was made"):
        second.wait(WAIT_S)
    assert "edited" not in second.logs()
