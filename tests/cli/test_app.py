"""The ``rlnb`` command and its subcommands for one run, mostly with the echo library, which trains in a second."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

import rlnb
from rlnb.cli import app as cli
from rlnb.cli import assets as cli_assets
from rlnb.cli import plugins
from rlnb.doctor import doctor
from rlnb.simulation.pool import pool

Invoke = Callable[..., Result]
Start = Callable[..., str]
Ended = Callable[[str], str]


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
        "rlnb.training.start",
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


@pytest.mark.parametrize("group", [[], ["assets"], ["plugins"], ["runs"]])
def test_the_summary_of_a_command_fits_into_the_list_of_commands(invoke: Invoke, group: list[str]) -> None:
    _, _, commands = invoke(*group, "--help").stdout.partition("Commands:")
    assert commands.strip()
    assert "..." not in commands


def test_logs_print_the_requested_number_of_lines(invoke: Invoke, start: Start, ended: Ended) -> None:
    id = start()
    ended(id)
    whole = invoke("logs", id, "-n", 1000).stdout.splitlines()
    assert invoke("logs", id, "-n", 2).stdout.splitlines() == whole[-2:]
    assert invoke("logs", id, "-n", 2, "--follow").stdout.splitlines() == whole[-2:]
    assert invoke("logs", id, "-n", 0).stdout == ""


def test_cancel_ends_a_run_and_reports_one_that_has_already_ended(invoke: Invoke, start: Start, ended: Ended) -> None:
    id = start("--agent", "iteration_s=5")
    assert invoke("cancel", id).exit_code == 0
    assert ended(id) == "cancelled"
    assert "already ended: cancelled" in invoke("cancel", id).stdout


def test_evaluate_shows_rates_with_their_intervals(invoke: Invoke, start: Start, ended: Ended) -> None:
    id = start()
    ended(id)
    result = invoke("evaluate", id, "--episodes", 20)
    assert result.exit_code == 0, result.output
    assert re.search(r"episodes +20", result.stdout)
    assert re.search(r"success rate +0\.\d+ +0\.\d+ to \d\.\d+", result.stdout)


def test_an_export_format_that_the_library_lacks_is_an_error(invoke: Invoke, start: Start, ended: Ended) -> None:
    id = start()
    ended(id)
    result = invoke("export", id, "--format", "onnx")
    assert result.exit_code == 2
    assert "No export format named 'onnx'" in result.stderr


def test_preview_passes_its_options_on_and_prints_the_file(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments: dict[str, Any] = {}

    class Pictures:
        findings = ()

        def save(self, path: Path) -> Path:
            return path

    def take(task: str, **options: Any) -> Pictures:
        arguments.update(options, task=task)
        return Pictures()

    monkeypatch.setattr(rlnb, "preview", take, raising=False)
    target = tmp_path / "grid.png"
    result = invoke("preview", "T", "-o", target, "--camera", "wrist", "--data-type", "depth", "--steps", 3)
    assert result.stdout.strip() == str(target)
    assert arguments == {
        "task": "T",
        "cameras": ["wrist"],
        "data_types": ["depth"],
        "num_envs": 16,
        "steps": 3,
        "every": None,
        "policy": None,
    }


def test_libraries_are_listed(invoke: Invoke) -> None:
    output = invoke("libraries").stdout
    assert "echo" in output
    assert "rsl_rl" in output


@pytest.mark.isaaclab
def test_tasks_finds_cartpole_in_isaac_lab(invoke: Invoke) -> None:
    result = invoke("tasks", "cartpole")
    pool.shut_down()
    assert result.exit_code == 0, result.output
    names = result.stdout.split()
    assert "Isaac-Cartpole-Direct" in names
    assert all("cartpole" in name.lower() for name in names)


def test_the_command_exits_with_1_if_there_is_a_fault(invoke: Invoke) -> None:
    result = invoke("doctor", "--python", "/no/such/python[bold]", "--json")
    assert result.exit_code == 1
    worker = next(finding for finding in json.loads(result.stdout) if finding["name"] == "worker")
    assert worker["level"] == "fault"
    assert worker["fix"]


def test_the_screen_shows_each_finding_and_the_fix(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    findings = [doctor.ok("CPUs", "2 [red]x[/red]"), doctor.warning("Jupyter", "old", "pip install 'a[lab]'")]
    monkeypatch.setattr(doctor, "examine", lambda **_: findings)
    result = invoke("doctor")
    assert result.exit_code == 0
    assert "2 [red]x[/red]" in result.stdout
    assert "fix: pip install 'a[lab]'" in result.stdout
