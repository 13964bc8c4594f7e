"""The ``rlnb`` command, mostly on the echo library, which trains in a second."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import rlnb
from rlnb.cli import app as cli
from rlnb.cli import arguments, demo, follow, plugins, screen, training
from rlnb.cli import assets as cli_assets
from rlnb.errors import NotFoundError
from rlnb.settings import options
from rlnb.simulation import simulator
from rlnb.tasks import requests
from rlnb.tasks.card import Asset, AssetRoot, TaskCard

ITERATIONS = 5
SLOW = "--agent=iteration_s=0.3"
TIMEOUT_S = 60.0
HOSTILE = "[red]x[/red] [link=http://a.b]\\"

Invoke = Callable[..., Result]


@pytest.fixture
def invoke(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Invoke:
    """Return what runs a command in this process, with its runs below ``tmp_path``."""
    monkeypatch.setattr(options, "root", tmp_path)
    monkeypatch.setattr(simulator, "_keep", True)  # `train` changes it
    monkeypatch.delenv("RLNB_DEBUG", raising=False)
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setenv("RLNB_QUEUE", str(tmp_path / ".queue"))  # not behind whatever else this machine trains
    runner = CliRunner()
    return lambda *words: runner.invoke(cli.app, [str(word) for word in words])


def _train(invoke: Invoke, *words: str) -> str:
    """Start an echo training and return its id at once."""
    result = invoke("train", "Echo", "--library", "echo", "--max-iterations", ITERATIONS, "--detach", *words)
    assert result.exit_code == 0, result.output
    return result.stdout.strip()


def _ended(id: str) -> str:
    deadline = time.monotonic() + TIMEOUT_S
    run = rlnb.get_run(id)
    while run.state not in ("completed", "failed", "cancelled", "lost"):
        assert time.monotonic() < deadline, run
        time.sleep(0.1)
    return run.state


# -- start ---------------------------------------------------------------------------------------------


def test_help_imports_nothing_heavy() -> None:
    heavy = {
        "torch",
        "isaaclab",
        "pandas",
        "plotly",
        "tensorboard",
        "IPython",
        "psutil",
        "rich.console",
        "rlnb.training.train",
    }
    code = f"import sys, rlnb.cli.app; print(*sorted({heavy!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_the_version_is_that_of_the_package(invoke: Invoke) -> None:
    assert invoke("--version").stdout.strip() == f"rlnb {rlnb.__version__}"


def test_every_command_has_a_help_text() -> None:
    below = (cli_assets.assets_app, plugins.plugins_app)
    for command in [*cli.app.registered_commands, *(one for app in below for one in app.registered_commands)]:
        assert command.callback is not None
        assert command.callback.__doc__


# -- train ---------------------------------------------------------------------------------------------


def test_train_waits_and_shows_what_came_of_it(invoke: Invoke) -> None:
    result = invoke("train", "Echo", "--library", "echo", "--max-iterations", ITERATIONS, "--seed", 3, "--tag", "night")
    assert result.exit_code == 0, result.output
    assert re.search(r"state +completed", result.stdout)
    assert re.search(rf"iteration +{ITERATIONS} of {ITERATIONS}", result.stdout)
    (run,) = rlnb.runs(tag="night")
    assert run.manifest.seed == 3
    assert run.id in result.stderr, "the id is said before the waiting"


def test_detach_prints_the_id_alone_and_returns_before_the_end(invoke: Invoke) -> None:
    id = _train(invoke, SLOW)
    assert rlnb.get_run(id).id == id
    assert rlnb.get_run(id).state != "completed"
    invoke("cancel", id)


def test_arguments_reach_the_manifest(invoke: Invoke) -> None:
    words = ["--set", "sim.dt=0.005", "--set", "scene.name=null", "--agent", "algorithm.learning_rate=3e-4"]
    id = _train(invoke, *words, "--presets", "a, b", "--physics", "p", "--renderer", "r", "--num-envs", "8")
    manifest = rlnb.get_run(id).manifest
    assert manifest.task.overrides == {"sim.dt": 0.005, "scene.name": None}
    assert manifest.agent == {"algorithm.learning_rate": 3e-4}
    assert (manifest.task.presets, manifest.task.physics, manifest.task.renderer) == (("a", "b"), "p", "r")
    assert manifest.task.num_envs == 8
    _ended(id)


def test_a_training_runs_where_it_is_told_to(invoke: Invoke) -> None:
    run = rlnb.get_run(_train(invoke, "--launcher", "local", "--launcher-set", "max_running=1"))
    assert (run.manifest.launcher, run.manifest.launcher_settings["max_running"]) == ("local", 1)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--launcher", "slrum"], "Did you mean 'slurm'?"),
        (["--launcher", "slurm", "--launcher-set", "partion=gpu"], "Did you mean 'partition'?"),
        (["--launcher", "slurm", "--launcher-set", "gpu"], "'gpu' is not path=value"),
        (["--launcher-set", "nodes=2"], "says nothing without --launcher. `rlnb launchers` lists them."),
    ],
)
def test_a_place_that_is_not_there_is_told(invoke: Invoke, tmp_path: Path, words: Sequence[str], said: str) -> None:
    result = invoke("train", "Echo", "--library", "echo", *words)
    assert result.exit_code == 2
    assert said in result.stderr
    assert not list(tmp_path.glob("runs/*"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.005", 0.005),
        ("true", True),
        ("null", None),
        ("[1, 2]", [1, 2]),
        ('"5"', "5"),
        ("newton", "newton"),
        ("NaN", "NaN"),
        ("-Infinity", "-Infinity"),
        ("", ""),
        ("a=b", "a=b"),
        (".005", 0.005),
        ("-1.e-3", -0.001),
        ("007", "007"),
        ("1.2.3", "1.2.3"),
    ],
)
def test_a_value_is_json_else_text(text: str, expected: Any) -> None:
    assert arguments.value(text) == expected
    assert arguments.values(set=[f"path={text}"]) == [{"path": expected}]


def test_bad_input_gives_exit_status_2_with_all_problems_and_leaves_nothing(invoke: Invoke, tmp_path: Path) -> None:
    result = invoke("train", "Ech", "--library", "echo", "--max-iterations", 0, "--num-envs", -3, "--device", "gpu")
    assert result.exit_code == 2
    for word in ("4 problems", "max_iterations=0", "num_envs=-3", "device='gpu'", "Did you mean 'Echo'?"):
        assert word in result.stderr
    assert "Traceback" not in result.output
    assert list(tmp_path.iterdir()) == []


def test_words_that_assign_nothing_are_told_all_at_once(invoke: Invoke) -> None:
    result = invoke("train", "Echo", "--library", "echo", "--set", "sim.dt", "--set", "a=1", "--agent", "=3")
    assert result.exit_code == 2
    assert "--set 'sim.dt'" in result.stderr
    assert "--agent '=3'" in result.stderr
    assert "'a=1'" not in result.stderr


def test_a_failed_training_gives_exit_status_2_with_log_and_next_call(invoke: Invoke) -> None:
    result = invoke("train", "Echo", "--library", "echo", "--agent", "crash_at=1")
    assert result.exit_code == 2
    assert "echo crashes at iteration 1" in result.stderr
    assert "node0.log" in result.stderr


def test_ctrl_c_detaches_and_says_how_to_find_the_run_again(tmp_path: Path) -> None:
    rlnb_command = [sys.executable, "-c", "from rlnb.cli.app import app; app()"]
    words = ["train", "Echo", "--library", "echo", "--max-iterations", "200", "--agent", "iteration_s=0.3"]
    env = {**os.environ, "RLNB_ROOT": str(tmp_path), "RLNB_QUEUE": str(tmp_path / ".queue")}
    process = subprocess.Popen(
        [*rlnb_command, *words],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A shell starts what it puts in the background deaf to interrupts, and this test with it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stderr is not None
    id = process.stderr.readline().split()[0]
    deadline = time.monotonic() + TIMEOUT_S
    while rlnb.Run(tmp_path / "runs" / id).state != "running":  # by then it waits, however busy the machine
        assert time.monotonic() < deadline
        time.sleep(0.1)
    time.sleep(0.5)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: the whole group gets it
    _, said = process.communicate(timeout=TIMEOUT_S)
    try:
        assert process.returncode == training.INTERRUPTED
        assert f"rlnb show {id}" in said
        assert "Traceback" not in said
        time.sleep(0.5)
        assert rlnb.Run(tmp_path / "runs" / id).state in ("queued", "starting", "running")
    finally:
        rlnb.Run(tmp_path / "runs" / id).cancel()


# -- look ----------------------------------------------------------------------------------------------


def test_logs_follow_ends_when_the_run_ends(invoke: Invoke) -> None:
    id = _train(invoke, SLOW)
    begun = time.monotonic()
    result = invoke("logs", id, "--follow")
    assert result.exit_code == 0
    assert time.monotonic() - begun < TIMEOUT_S
    assert rlnb.get_run(id).state == "completed"
    lines = [line for line in result.stdout.splitlines() if line.startswith("iteration ")]
    assert [int(line.split()[1]) for line in lines] == list(range(ITERATIONS)), "each line once, none lost"


def test_following_never_prints_half_a_line_or_half_a_letter(tmp_path: Path) -> None:
    log = tmp_path / "node0.log"
    log.write_bytes(b"one\n" + "zwölf".encode()[:3])
    text, end = follow.appended(log, 0, whole_lines=True)
    assert text == "one\n"
    log.write_bytes(b"one\n" + "zwölf".encode())
    assert follow.appended(log, end, whole_lines=False)[0] == "zwölf"


def test_logs_print_as_many_lines_as_asked(invoke: Invoke) -> None:
    id = _train(invoke)
    _ended(id)
    whole = invoke("logs", id, "-n", 1000).stdout.splitlines()
    assert invoke("logs", id, "-n", 2).stdout.splitlines() == whole[-2:]
    assert invoke("logs", id, "-n", 2, "--follow").stdout.splitlines() == whole[-2:]
    assert invoke("logs", id, "-n", 0).stdout == ""


def test_a_log_cannot_steer_the_terminal(invoke: Invoke) -> None:
    id = _train(invoke)
    _ended(id)
    with rlnb.get_run(id).jobs[-1].folder.log().open("a") as log:
        log.write("\x1b]0;title\x07\x1b[2J[bold]not markup[/bold]\n")
    for words in (["-n", "1"], ["-n", "1", "--follow"]):
        shown = invoke("logs", id, *words).stdout
        assert "\x1b" not in shown
        assert "[bold]not markup[/bold]" in shown


def test_hostile_names_are_shown_as_they_are(invoke: Invoke) -> None:
    id = _train(invoke, "--tag", HOSTILE, "--tag", "\x1b[31mred", "--agent", "name=[bold]b")
    _ended(id)
    shown = invoke("show", id).stdout
    assert HOSTILE in shown
    assert "[bold]b" in shown
    assert "\\x1b[31mred" in shown
    assert "\x1b" not in shown
    missing = invoke("show", "[/red]nobody")
    assert missing.exit_code == 2
    assert "[/red]nobody" in missing.stderr


def test_runs_lists_the_newest_first_and_filters(invoke: Invoke) -> None:
    first, second = _train(invoke, "--tag", "a"), _train(invoke, "--tag", "b")
    _ended(first)
    _ended(second)
    everything = invoke("runs").stdout
    assert set(re.findall(r"\S+-echo-echo-\w{4}", everything)) == {first, second}
    assert invoke("runs", "--tag", "a").stdout.count("-echo-echo-") == 1
    assert first in invoke("runs", "--tag", "a").stdout
    assert "-echo-echo-" not in invoke("runs", "--library", "rsl_rl").stdout


def test_runs_are_found_by_what_was_asked_sorted_and_shown_with_more(invoke: Invoke) -> None:
    long, short = _train(invoke, "--max-iterations", "8"), _train(invoke, "--max-iterations", "4", "--seed", "7")
    _ended(long)
    _ended(short)
    listed = json.loads(invoke("runs", "--sort", "max_iterations", "--column", "seed", "--json").stdout)
    assert [(row["id"], row["seed"]) for row in listed] == [(long, 42), (short, 7)]
    assert long not in invoke("runs", "--where", "seed=7").stdout
    assert "seed" in invoke("runs", "--column", "seed").stdout
    wrong = invoke("runs", "--where", "seed", "--where", "=7")
    assert wrong.exit_code == 2
    assert "--where 'seed' is not path=value" in wrong.stderr
    assert "--where num_envs=512" in wrong.stderr


def test_the_id_of_a_run_is_never_cut_however_narrow_the_screen(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = _train(invoke)
    _ended(id)
    monkeypatch.setenv("COLUMNS", "60")
    assert id in invoke("runs").stdout


def test_runs_as_json_can_be_read_by_every_reader(invoke: Invoke, tmp_path: Path) -> None:
    id = _train(invoke, "--tag", HOSTILE)
    _ended(id)

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is no JSON")

    (row,) = json.loads(invoke("runs", "--json").stdout, parse_constant=refuse)
    assert (row["id"], row["state"], row["tags"]) == (id, "completed", [HOSTILE])
    assert row["path"] == str(tmp_path / "runs" / id)
    assert 0.9 < row["reward"] < 1.1


def test_a_number_that_is_none_becomes_null(capsys: pytest.CaptureFixture[str]) -> None:
    screen.print_json([{"reward": float("nan"), "fps": float("inf"), "iteration": 3}])
    assert json.loads(capsys.readouterr().out) == [{"reward": None, "fps": None, "iteration": 3}]


def test_an_error_has_no_traceback_unless_asked_for(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    quiet = invoke("show", "nobody")
    assert quiet.exit_code == 2
    assert quiet.stderr.startswith("No run named 'nobody'")
    assert quiet.stdout == ""
    assert isinstance(invoke("--debug", "show", "nobody").exception, NotFoundError)
    monkeypatch.setenv("RLNB_DEBUG", "1")
    assert isinstance(invoke("show", "nobody").exception, NotFoundError)


# -- act -----------------------------------------------------------------------------------------------


def test_cancel_ends_a_run_and_says_when_it_had_ended(invoke: Invoke) -> None:
    id = _train(invoke, "--agent", "iteration_s=5")
    assert invoke("cancel", id).exit_code == 0
    assert _ended(id) == "cancelled"
    assert "ended already: cancelled" in invoke("cancel", id).stdout


def test_resume_goes_on_in_the_same_run(invoke: Invoke) -> None:
    id = _train(invoke)
    _ended(id)
    result = invoke("resume", id, "--max-iterations", 2 * ITERATIONS)
    assert result.exit_code == 0, result.output
    assert re.search(rf"iteration +{2 * ITERATIONS} of {2 * ITERATIONS}", result.stdout)
    assert len(rlnb.runs()) == 1


def test_evaluate_shows_rates_with_their_intervals(invoke: Invoke) -> None:
    id = _train(invoke)
    _ended(id)
    result = invoke("evaluate", id, "--episodes", 20)
    assert result.exit_code == 0, result.output
    assert re.search(r"episodes +20", result.stdout)
    assert re.search(r"success rate +0\.\d+ +0\.\d+ to \d\.\d+", result.stdout)


def test_an_export_format_that_the_library_lacks_is_an_error(invoke: Invoke) -> None:
    id = _train(invoke)
    _ended(id)
    result = invoke("export", id, "--format", "onnx")
    assert result.exit_code == 2
    assert "No export format named 'onnx'" in result.stderr


def test_preview_passes_its_options_on_and_prints_the_file(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {}

    class Taken:
        findings = ()

        def save(self, path: Path) -> Path:
            return path

    def take(task: str, **chosen: Any) -> Taken:
        asked.update(chosen, task=task)
        return Taken()

    monkeypatch.setattr(rlnb, "preview", take, raising=False)
    target = tmp_path / "grid.png"
    result = invoke("preview", "T", "-o", target, "--camera", "wrist", "--data-type", "depth", "--steps", 3)
    assert result.stdout.strip() == str(target)
    assert asked == {
        "task": "T",
        "cameras": ["wrist"],
        "data_types": ["depth"],
        "num_envs": 16,
        "steps": 3,
        "every": None,
        "policy": None,
    }


def test_mirror_says_what_was_copied_and_fails_where_something_is_missing(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rlnb.simulation import simulator

    mirrors: list[requests.Mirror] = []
    answers = [
        requests.Mirrored(root="https://x", copied=("a", "b"), existing=("c",), bytes=3 << 20),
        requests.Mirrored(root="https://x", missing={"robot.usd": "the task"}),
    ]

    def request(mirror: requests.Mirror, python: object, asset_root: object) -> requests.Mirrored:
        mirrors.append(mirror)
        return answers.pop(0)

    monkeypatch.setattr(simulator, "request", request)
    result = invoke("assets", "mirror", "Isaac-Ant-Direct", "Isaac-Cartpole", tmp_path / "to")
    assert "2 files, 3.0 MiB; 1 were there" in result.stdout
    assert f"export ISAACSIM_ASSET_ROOT={tmp_path / 'to'}" in result.stdout
    assert [task.id for task in mirrors[0].tasks] == ["Isaac-Ant-Direct", "Isaac-Cartpole"]
    assert mirrors[0].folder == str(tmp_path / "to")
    result = invoke("assets", "mirror", "Isaac-Ant-Direct", tmp_path / "to")
    assert result.exit_code == 1
    assert "missing: robot.usd, which the task names" in result.stdout
    assert "Which tasks" in invoke("assets", "mirror", tmp_path / "to").stderr


# -- what there is -------------------------------------------------------------------------------------


def test_libraries_are_listed(invoke: Invoke) -> None:
    shown = invoke("libraries").stdout
    assert "echo" in shown
    assert "rsl_rl" in shown


def test_a_plugin_that_does_not_load_is_listed_with_its_error(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = importlib.metadata.EntryPoint(name="broken", value="no_such_module_at_all:x", group="rlnb")
    entries = [*importlib.metadata.entry_points(group="rlnb"), broken]
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda **_: entries)
    shown = invoke("plugins").stdout
    assert re.search(r"echo +rlnb-echo +[\d.]+ +libraries: echo; tasks: Echo", shown)
    assert re.search(r"broken +.*ModuleNotFoundError: No module named 'no_such_module_at_all'", shown)


def test_assets_build_prints_the_folder_and_says_what_was_not_made(invoke: Invoke) -> None:
    def built(**left: Any) -> Any:
        answer = json.dumps({"folder": "$3:$4:$5:$6", "foreign": [], "failed": {}, **left}).replace('"', '\\"')
        python = shlex.join(["/bin/sh", "-c", f'echo building; echo "{answer}"', "sh"])
        return invoke("assets", "build", "/here", "--force", "--robots", "--python", python)

    assert built().stdout.strip() == "assets-build:/here:--robots:--force"
    result = built(failed={"hands": "no isaaclab"}, foreign=["a.usd"])
    assert result.exit_code == 1
    assert "failed: hands: no isaaclab" in result.stderr
    assert "kept: a.usd" in result.stderr


def test_assets_build_that_fails_says_why(invoke: Invoke) -> None:
    python = shlex.join(["/bin/sh", "-c", "echo no pack is installed >&2; exit 3", "sh"])
    result = invoke("assets", "build", "--python", python)
    assert result.exit_code == 2
    assert "no pack is installed" in result.stderr


@pytest.mark.parametrize(("files", "status"), [(["a.usd", "b.usd"], 0), (["a.usd"], 1)])
def test_assets_check_fails_if_a_file_is_missing_now(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: Sequence[str], status: int
) -> None:
    for name in files:
        (tmp_path / name).touch()
    assets = {name: Asset(path=str(tmp_path / name), exists=False) for name in ("a.usd", "b.usd")}
    assets["c.usd"] = Asset(path="https://cloud/c.usd", exists=None)
    asset_root = AssetRoot(path=str(tmp_path), reason="set for this run")
    card = TaskCard(task="T", assets=assets, asset_root=asset_root)
    monkeypatch.setattr("rlnb.simulation.card.task_card", lambda *_, **__: card)
    result = invoke("assets", "check", "T")
    assert result.exit_code == status
    assert result.stdout.count(" there ") == len(files)
    assert result.stdout.count(" missing ") == 2 - len(files)
    assert "remote, not looked at" in result.stdout


@pytest.mark.slow
def test_demo_executes_a_notebook_and_prints_its_report(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import nbformat

    source = """
        import json, pathlib
        from ipykernel.connect import get_connection_info
        pathlib.Path("my.html").write_text(json.loads(get_connection_info())["transport"])
    """
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(textwrap.dedent(source))])
    path = tmp_path / "quick.ipynb"
    nbformat.write(notebook, path)
    monkeypatch.setattr(demo, "quickstart", lambda: path)
    monkeypatch.setenv("RLNB_ROOT", str(tmp_path))
    out = tmp_path / "out"
    result = invoke("demo", "--out", out)
    assert result.exit_code == 0, result.output
    assert result.stdout.strip() == str(out / "my.html")
    assert "Executing the quickstart notebook" in result.stderr, "a log says what it waits for"
    assert (out / demo.NOTEBOOK).is_file()
    assert (out / "my.html").read_text() == "ipc", "nobody else can open the kernel's sockets"


@pytest.mark.isaaclab
def test_tasks_finds_cartpole_in_isaac_lab(invoke: Invoke) -> None:
    result = invoke("tasks", "cartpole")
    simulator.shut_down()
    assert result.exit_code == 0, result.output
    names = result.stdout.split()
    assert "Isaac-Cartpole-Direct" in names
    assert all("cartpole" in name.lower() for name in names)


@pytest.mark.isaaclab
def test_the_assets_of_cartpole_are_there(invoke: Invoke) -> None:
    """Needs ISAACSIM_ASSET_ROOT, or the pack, which the worker builds where nothing else answers."""
    result = invoke("assets", "check", "Isaac-Cartpole-Direct")
    simulator.shut_down()
    assert result.exit_code == 0, result.output
    assert re.search(r"cartpole\.usd", result.stdout)
    assert " missing " not in result.stdout
