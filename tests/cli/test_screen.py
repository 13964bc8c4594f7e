"""Output on the terminal: text, tables, JSON and errors."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import pytest
from typer.testing import Result

import rlnb
from rlnb.cli import screen
from rlnb.errors import NotFoundError

HOSTILE = "[red]x[/red] [link=http://a.b]\\"

Invoke = Callable[..., Result]
Start = Callable[..., str]
Ended = Callable[[str], str]


def test_a_log_cannot_control_the_terminal(invoke: Invoke, start: Start, ended: Ended) -> None:
    id = start()
    ended(id)
    with rlnb.get_run(id).jobs[-1].folder.log().open("a") as log:
        log.write("\x1b]0;title\x07\x1b[2J[bold]not markup[/bold]\n")
    for options in (["-n", "1"], ["-n", "1", "--follow"]):
        output = invoke("logs", id, *options).stdout
        assert "\x1b" not in output
        assert "[bold]not markup[/bold]" in output


def test_hostile_names_are_shown_as_they_are(invoke: Invoke, start: Start, ended: Ended) -> None:
    id = start("--tag", HOSTILE, "--tag", "\x1b[31mred", "--agent", "+name=[bold]b")
    ended(id)
    output = invoke("show", id).stdout
    assert HOSTILE in output
    assert "[bold]b" in output
    assert "\\x1b[31mred" in output
    assert "\x1b" not in output
    missing = invoke("show", "[/red]missing")
    assert missing.exit_code == 2
    assert "[/red]missing" in missing.stderr


def test_the_id_of_a_run_is_never_truncated_on_a_narrow_screen(
    invoke: Invoke, start: Start, ended: Ended, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = start()
    ended(id)
    monkeypatch.setenv("COLUMNS", "60")
    assert id in invoke("runs").stdout


def test_nan_and_infinity_become_null(capsys: pytest.CaptureFixture[str]) -> None:
    screen.print_json([{"reward": float("nan"), "fps": float("inf"), "iteration": 3}])
    assert json.loads(capsys.readouterr().out) == [{"reward": None, "fps": None, "iteration": 3}]


def test_an_error_shows_its_traceback_only_with_debug(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    quiet = invoke("show", "missing")
    assert quiet.exit_code == 2
    assert quiet.stderr.startswith("No run named 'missing'")
    assert quiet.stdout == ""
    assert isinstance(invoke("--debug", "show", "missing").exception, NotFoundError)
    monkeypatch.setenv("RLNB_DEBUG", "1")
    assert isinstance(invoke("show", "missing").exception, NotFoundError)


def test_values_are_printed_as_a_user_types_them() -> None:
    assert screen.assigned({"sim.dt": 0.005, "a": None, "b": "x"}) == 'sim.dt=0.005, a=null, b="x"'


def test_a_table_in_a_pipe_is_wide_and_writes_numbers_short(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    screen.table(["run", "reward", "none"], [("r" * 120, 1 / 3, None)], title="a title")
    output = capsys.readouterr().out
    assert "r" * 120 in output
    assert "0.3333" in output
    assert "None" not in output


@pytest.mark.parametrize("columns", [None, "60"])
def test_a_long_table_is_printed_as_a_short_one(
    columns: str | None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if columns:
        monkeypatch.setenv("COLUMNS", columns)
        monkeypatch.setenv("FORCE_COLOR", "1")
    rows = [(f"run-{n}", "Écho 日本" if n % 2 else "[b]x\x1b[31m", 1 / (n + 3), None) for n in range(screen.LONG)]
    screen.table(["run", "task", "reward", "a long head"], rows, title="a [title]")
    short = capsys.readouterr().out.splitlines()
    screen.table(["run", "task", "reward", "a long head"], [*rows, rows[0]], title="a [title]")
    long = capsys.readouterr().out.splitlines()
    assert long == [*short[:-1], short[-len(rows) - 1], short[-1]]


@pytest.mark.parametrize("text", ["x" * 200, "two\nlines"])
def test_a_long_table_with_a_cell_that_does_not_fit_into_a_line_is_folded(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    screen.table(["run", "reason"], [("run", text)] * (screen.LONG + 1))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) >= 2 * screen.LONG
    assert max(map(len, lines)) <= screen.PIPE_COLUMNS


def test_ten_thousand_rows_are_printed_in_a_moment(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    rows = [(f"20260101-000000-{n:05}", "task", "library", "completed", "20/20", 0.5, None) for n in range(10_000)]
    begun = time.process_time()
    screen.table(["id", "task", "library", "state", "iteration", "reward", "success"], rows)
    assert time.process_time() - begun < 3.0, "rich takes ten"
    assert len(capsys.readouterr().out.splitlines()) == 10_004
