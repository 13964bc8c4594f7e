"""Trainings from the command line, with the echo library, which trains in a second."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
import typer
from typer.testing import Result

import rlnb
from rlnb.cli import training

ITERATIONS = 5
SLOW = "--agent=iteration_s=0.3"
TIMEOUT_S = 60.0

Invoke = Callable[..., Result]
Start = Callable[..., str]
Ended = Callable[[str], str]


def test_train_waits_and_shows_the_result(invoke: Invoke) -> None:
    result = invoke("train", "Echo", "--library", "echo", "--max-iterations", ITERATIONS, "--seed", 3, "--tag", "night")
    assert result.exit_code == 0, result.output
    assert re.search(r"state +completed", result.stdout)
    assert re.search(rf"iteration +{ITERATIONS} of {ITERATIONS}", result.stdout)
    (run,) = rlnb.runs(tag="night")
    assert run.manifest.seed == 3
    assert run.id in result.stderr, "the id is printed before waiting"


def test_detach_prints_only_the_id_and_returns_before_the_end(invoke: Invoke, start: Start) -> None:
    id = start(SLOW)
    assert rlnb.get_run(id).id == id
    assert rlnb.get_run(id).state != "completed"
    invoke("cancel", id)


def test_arguments_reach_the_manifest(start: Start, ended: Ended) -> None:
    id = start("--agent", "+algorithm.learning_rate=3e-4")
    assert rlnb.get_run(id).manifest.agent == {"+algorithm.learning_rate": 3e-4}
    ended(id)


def test_settings_of_the_simulator_reach_the_checks(invoke: Invoke) -> None:
    argv = ["--set", "sim.dt=0.005", "--set", "scene.name=null", "--deterministic"]
    argv += ["--presets", "a, b", "--physics", "p", "--renderer", "r", "--num-envs", "8"]
    argv += ["--launcher-arg", "kit_args=--enable my.extension", "--launcher-arg", "livestream=2"]
    result = invoke("train", "Echo", "--library", "echo", *argv)
    assert result.exit_code == 2
    for text in (
        "num_envs=8 and overrides={'sim.dt': 0.005, 'scene.name': None} and presets=['a', 'b'] and physics='p'",
        "renderer='r'",
        "launcher_args={'kit_args': '--enable my.extension', 'livestream': 2}",
        "deterministic=True",
    ):
        assert text in result.stderr


def test_launcher_arguments_and_determinism_are_shown(invoke: Invoke, start: Start, ended: Ended) -> None:
    id = start()
    ended(id)
    record = rlnb.get_run(id).path / "manifest.json"
    manifest = json.loads(record.read_text())
    manifest["task"]["launcher_args"], manifest["deterministic"] = {"livestream": 2}, True
    record.write_text(json.dumps(manifest))
    shown = invoke("show", id).stdout
    assert re.search(r"launcher_args +.*livestream=2", shown)
    assert re.search(r"deterministic +yes", shown)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("device=cpu", "Use rlnb.train(device=...)"),
        ("kit_arg=x", "Did you mean 'kit_args'?"),
        ("livestream", "--launcher-arg 'livestream' is not path=value"),
    ],
)
def test_a_launcher_argument_that_is_not_valid_is_refused(
    invoke: Invoke, tmp_path: Path, text: str, message: str
) -> None:
    result = invoke("train", "Echo", "--library", "echo", "--launcher-arg", text)
    assert result.exit_code == 2
    assert message in result.stderr
    assert not list(tmp_path.glob("runs/*"))


def test_a_training_runs_on_the_launcher_of_its_option(start: Start) -> None:
    run = rlnb.get_run(start("--launcher", "local", "--launcher-set", "max_running=1"))
    assert (run.manifest.launcher, run.manifest.launcher_settings["max_running"]) == ("local", 1)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--launcher", "slrum"], "Did you mean 'slurm'?"),
        (["--launcher", "slurm", "--launcher-set", "partion=gpu"], "Did you mean 'partition'?"),
        (["--launcher", "slurm", "--launcher-set", "gpu"], "'gpu' is not path=value"),
        (["--launcher-set", "nodes=2"], "--launcher-set needs --launcher. Use a name that `rlnb launchers` lists."),
    ],
)
def test_a_launcher_or_setting_that_does_not_exist_is_refused(
    invoke: Invoke, tmp_path: Path, argv: Sequence[str], message: str
) -> None:
    result = invoke("train", "Echo", "--library", "echo", *argv)
    assert result.exit_code == 2
    assert message in result.stderr
    assert not list(tmp_path.glob("runs/*"))


def test_bad_input_gives_exit_status_2_with_all_problems_and_leaves_nothing(invoke: Invoke, tmp_path: Path) -> None:
    result = invoke("train", "Ech", "--library", "echo", "--max-iterations", 0, "--num-envs", -3, "--device", "gpu")
    assert result.exit_code == 2
    for text in ("4 problems", "max_iterations=0", "num_envs=-3", "device='gpu'", "Did you mean 'Echo'?"):
        assert text in result.stderr
    assert "Traceback" not in result.output
    assert list(tmp_path.iterdir()) == []


def test_a_failed_training_gives_exit_status_2_with_log_and_next_call(invoke: Invoke) -> None:
    result = invoke("train", "Echo", "--library", "echo", "--agent", "crash_at=1")
    assert result.exit_code == 2
    assert "echo crashes at iteration 1" in result.stderr
    assert "node0.log" in result.stderr


@pytest.fixture
def waiting(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], rlnb.Run]]:
    """A command that waits for the end of its training, and the run, which is cancelled at the end."""
    rlnb_command = [sys.executable, "-c", "from rlnb.cli.app import app; app()"]
    argv = ["train", "Echo", "--library", "echo", "--max-iterations", "200", "--agent", "iteration_s=0.3"]
    env = {**os.environ, "RLNB_ROOT": str(tmp_path), "RLNB_QUEUE": str(tmp_path / ".queue")}
    process = subprocess.Popen(
        [*rlnb_command, *argv],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A shell makes its background processes, this test among them, ignore interrupts.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stderr is not None
    run = rlnb.Run(tmp_path / "runs" / process.stderr.readline().split()[0])
    deadline = time.monotonic() + TIMEOUT_S
    while run.state != "running":  # by then the command waits, even on a busy machine
        assert time.monotonic() < deadline
        time.sleep(0.1)
    time.sleep(0.5)
    yield process, run
    run.cancel()


def test_ctrl_c_detaches_and_prints_how_to_find_the_run(waiting: tuple[subprocess.Popen[str], rlnb.Run]) -> None:
    process, run = waiting
    os.killpg(process.pid, signal.SIGINT)  # like a terminal, to the whole process group
    _, message = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == training.INTERRUPTED
    assert f"rlnb show {run.id}" in message
    assert "Traceback" not in message
    time.sleep(0.5)
    assert run.state in ("queued", "starting", "running")


def test_sigterm_ends_the_training_with_a_checkpoint_before_the_command_ends(
    waiting: tuple[subprocess.Popen[str], rlnb.Run],
) -> None:
    """The first command of a container takes all other processes with it."""
    process, run = waiting
    process.terminate()
    _, message = process.communicate(timeout=TIMEOUT_S)
    assert run.state == "cancelled"
    assert process.returncode == training.TERMINATED
    assert f"rlnb resume {run.id}" in message
    assert "Traceback" not in message
    assert run.checkpoints.last_whole() is not None


def test_resume_continues_in_the_same_run(invoke: Invoke, start: Start, ended: Ended) -> None:
    id = start()
    ended(id)
    result = invoke("resume", id, "--max-iterations", 2 * ITERATIONS)
    assert result.exit_code == 0, result.output
    assert re.search(rf"iteration +{2 * ITERATIONS} of {2 * ITERATIONS}", result.stdout)
    assert len(rlnb.runs()) == 1


def test_a_file_or_a_name_of_an_agent_config_is_combined_with_values(
    start: Start, ended: Ended, invoke: Invoke, tmp_path: Path
) -> None:
    path = tmp_path / "agent.yaml"
    path.write_text("iteration_s: 0.01\ngoal: 0.5\n")
    id = start("--agent-config", str(path), "--agent", "goal=0.25")
    assert rlnb.get_run(id).manifest.agent == {"iteration_s": 0.01, "goal": 0.25}
    ended(id)
    result = invoke("train", "Echo", "--library", "echo", "--agent-config", "generic")
    assert result.exit_code == 2
    assert "agent='generic' is not an agent config of echo" in result.output


def test_a_run_that_is_cancelled_while_a_shell_waits_for_it_has_status_1(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=1000, agent={"iteration_s": 0.1})
    run.cancel()
    with pytest.raises(typer.Exit) as caught:
        training._wait_or_detach(run, wait=True)
    assert caught.value.exit_code == 1
    assert "cancelled" in capsys.readouterr().out


def test_rerun_repeats_a_run_but_for_the_options_that_are_given(invoke: Invoke) -> None:
    first = rlnb.train("Echo", library="echo", max_iterations=ITERATIONS, seed=3, keep=2).wait(TIMEOUT_S)
    result = invoke("rerun", first.id, "--seed", 7, "--tag", "again")
    assert result.exit_code == 0, result.output
    (again,) = rlnb.runs(tag="again")
    assert (again.manifest.seed, again.manifest.keep, again.manifest.max_iterations) == (7, 2, ITERATIONS)
    assert again.manifest.like == first.id
    shown = invoke("rerun", "--help").stdout
    assert "--no-deterministic" in shown, "the run may be deterministic"
    assert "default: all" not in shown, "the default is the value of the run"
    assert "of another user" in " ".join(shown.split())
