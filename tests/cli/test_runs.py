"""``rlnb runs``, ``rlnb runs prune`` and ``rlnb goodput``, and following a log."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

import rlnb
from rlnb.cli import runs
from rlnb.plugin import Command, Manifest
from rlnb.records.incidents import WaitsWriter
from rlnb.records.layout import RunDir
from rlnb.spec import Job
from rlnb.storage import files
from rlnb.storage.serial import to_json

HOSTILE = "[red]x[/red] [link=http://a.b]\\"

Invoke = Callable[..., Result]
Start = Callable[..., str]
Ended = Callable[[str], str]


def test_runs_lists_the_newest_first_and_filters(invoke: Invoke, start: Start, ended: Ended) -> None:
    first, second = start("--tag", "a"), start("--tag", "b")
    ended(first)
    ended(second)
    everything = invoke("runs").stdout
    assert set(re.findall(r"\S+-echo-echo-\w{4}", everything)) == {first, second}
    assert invoke("runs", "--tag", "a").stdout.count("-echo-echo-") == 1
    assert first in invoke("runs", "--tag", "a").stdout
    assert "-echo-echo-" not in invoke("runs", "--library", "rsl_rl").stdout


def test_runs_are_filtered_by_an_argument_sorted_and_shown_with_extra_columns(
    invoke: Invoke, start: Start, ended: Ended
) -> None:
    long, short = start("--max-iterations", "8"), start("--max-iterations", "4", "--seed", "7")
    ended(long)
    ended(short)
    rows = json.loads(invoke("runs", "--sort", "max_iterations", "--column", "seed", "--json").stdout)
    assert [(row["id"], row["seed"]) for row in rows] == [(long, 42), (short, 7)]
    assert long not in invoke("runs", "--where", "seed=7").stdout
    assert "seed" in invoke("runs", "--column", "seed").stdout
    wrong = invoke("runs", "--where", "seed", "--where", "=7")
    assert wrong.exit_code == 2
    assert "--where 'seed' is not path=value" in wrong.stderr
    assert "--where num_envs=512" in wrong.stderr


def test_a_folder_is_listed_as_with_path(invoke: Invoke, start: Start, ended: Ended, tmp_path: Path) -> None:
    ended(first := start())
    (elsewhere := tmp_path / "elsewhere").mkdir()
    folder = tmp_path / "runs" / first
    assert first in invoke("runs", str(folder)).stdout
    assert first not in invoke("runs", str(elsewhere)).stdout
    assert json.loads(invoke("runs", str(folder), "--json").stdout) == json.loads(
        invoke("runs", "--path", str(folder), "--json").stdout
    )
    assert "No such command" in invoke("runs", str(tmp_path / "nowhere")).stderr


def test_runs_and_show_say_why_a_run_waits_or_has_failed(invoke: Invoke, tmp_path: Path) -> None:
    run = RunDir(tmp_path / "runs" / "20260101-000000-echo-echo-0000")
    run.path.mkdir(parents=True)
    created = "2026-01-01T00:00:00+00:00"
    manifest = Manifest(run_id=run.path.name, created=created, task=rlnb.Task(id="Echo"), library="echo")
    files.write_once(run.manifest, manifest)
    assert "reason" not in invoke("runs").stdout, "no column if no run has a reason"
    records = {"job.json": Job(kind="train"), "command.json": Command(argv=("x",))}
    job = run.next_job("train", lambda _: records)
    job.host_alive.touch()
    reason = f"PENDING ({HOSTILE}) " + "x" * 99
    WaitsWriter(job).write(reason)
    table = invoke("runs").stdout
    assert "PENDING ([red]x[/red]" in table
    assert "x" * 30 not in table, "a long reason is cut"
    (row,) = json.loads(invoke("runs", "--json").stdout)
    assert (row["state"], row["reason"]) == ("queued", reason)
    assert "PENDING ([red]x[/red]" in invoke("show", run.path.name).stdout
    files.write_once(job.result, rlnb.plugin.Result(outcome="failed", error="no such partition"))
    assert "no such partition" in invoke("runs").stdout


def test_show_ends_with_the_lineage_of_a_run_that_has_one(invoke: Invoke, tmp_path: Path) -> None:
    for name, parent in (("20260101-000000-echo-echo-0000", None), ("20260102-000000-echo-echo-0001", HOSTILE)):
        run = RunDir(tmp_path / "runs" / name)
        run.path.mkdir(parents=True)
        created = "2026-01-01T00:00:00+00:00"
        manifest = Manifest(run_id=name, created=created, task=rlnb.Task(id="Echo"), library="echo", like=parent)
        files.write_once(run.manifest, manifest)
    assert "this run" not in invoke("show", "echo-0000").stdout
    shown = invoke("show", "echo-0001").stdout.splitlines()
    assert shown[-2] == f"{HOSTILE}: deleted or moved"
    assert shown[-1].startswith("└─ 20260102-000000-echo-echo-0001: repeat, ")


def test_runs_as_json_can_be_read_by_every_parser(invoke: Invoke, start: Start, ended: Ended, tmp_path: Path) -> None:
    id = start("--tag", HOSTILE)
    ended(id)

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    (row,) = json.loads(invoke("runs", "--json").stdout, parse_constant=refuse)
    assert (row["id"], row["state"], row["tags"]) == (id, "completed", [HOSTILE])
    assert row["path"] == str(tmp_path / "runs" / id)
    assert 0.9 < row["reward"] < 1.1


def test_prune_lists_without_yes_and_refuses_a_run_that_has_not_ended(
    invoke: Invoke, start: Start, ended: Ended
) -> None:
    done = start()
    ended(done)
    going = start("--agent", "iteration_s=5")
    result = invoke("runs", "prune", "--whole", done, going)
    assert result.exit_code == 1
    assert "With --yes, this deletes 1 item," in result.stdout
    assert "Runs that have not ended stay as they are: 1." in result.stdout
    assert len(rlnb.runs()) == 2
    assert invoke("runs", "prune", "--whole", "--yes", done).exit_code == 0
    assert [run.id for run in rlnb.runs()] == [going]
    invoke("cancel", going)
    ended(going)


def test_prune_takes_only_runs_that_match_both_ids_and_filters(invoke: Invoke, start: Start, ended: Ended) -> None:
    first, second = start("--tag", "old"), start()
    ended(first)
    ended(second)
    result = invoke("runs", "prune", "--whole", "--tag", "old", second)
    assert "With --yes, this deletes 0 items" in result.stdout
    assert first in invoke("runs", "prune", "--whole", "--tag", "old", first).stdout


# -- follow ----------------------------------------------------------------------------------------------------------


ITERATIONS = 5
SLOW = "--agent=iteration_s=0.3"
TIMEOUT_S = 60.0


def test_logs_follow_ends_when_the_run_ends(invoke: Invoke, start: Start) -> None:
    id = start(SLOW)
    start_s = time.monotonic()
    result = invoke("logs", id, "--follow")
    assert result.exit_code == 0
    assert time.monotonic() - start_s < TIMEOUT_S
    assert rlnb.get_run(id).state == "completed"
    lines = [line for line in result.stdout.splitlines() if line.startswith("iteration ")]
    assert [int(line.split()[1]) for line in lines] == list(range(ITERATIONS)), "each line appears once"


def test_following_never_prints_part_of_a_line_or_of_a_character(tmp_path: Path) -> None:
    log = tmp_path / "node0.log"
    log.write_bytes(b"one\n" + "zwölf".encode()[:3])
    text, end = runs.appended(log, 0, whole_lines=True)
    assert text == "one\n"
    log.write_bytes(b"one\n" + "zwölf".encode())
    assert runs.appended(log, end, whole_lines=False)[0] == "zwölf"


def test_a_run_without_a_job_has_no_log_to_follow(invoke: Invoke, tmp_path: Path) -> None:
    manifest = Manifest(run_id="empty", created=files.now(), task=rlnb.Task(id="Echo"), library="echo")
    folder = tmp_path / "runs" / "empty"
    folder.mkdir(parents=True)
    files.write_once(folder / "manifest.json", to_json(manifest))
    result = invoke("logs", "empty", "--follow")
    assert result.exit_code == 2
    assert "empty has no job yet" in result.stderr


# -- goodput ---------------------------------------------------------------------------------------------------------


def test_goodput_prints_the_parts_the_interruptions_and_the_sum(invoke: Invoke, start: Start, ended: Ended) -> None:
    good, bad = start(), start("--agent", "crash_at=2", "--tag", "bad")
    ended(good)
    with pytest.raises(rlnb.RunError):
        rlnb.get_run(bad).wait(60)
    text = invoke("goodput").stdout
    assert good in text
    assert "waiting" in text
    assert "error" in text
    assert "2 runs, " in text
    assert "1 interruption, one every" in text
    data = json.loads(invoke("goodput", "--json").stdout)
    assert {row["run"] for row in data["runs"]} == {good, bad}
    assert [(line["run"], line["cause"], line["lost_iterations"]) for line in data["interruptions"]] == [
        (bad, "error", 2)
    ]
    assert bad not in invoke("goodput", good).stdout
    assert good not in invoke("goodput", "--tag", "bad").stdout


def test_goodput_of_no_runs_says_so(invoke: Invoke) -> None:
    assert "no runs with a training" in invoke("goodput").stdout


def test_ids_and_filters_both_have_to_fit(invoke: Invoke) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=1, tags=["mine"]).wait(60)
    other = rlnb.train("Echo", library="echo", max_iterations=1).wait(60)
    listed = json.loads(invoke("goodput", run.id, other.id, "--tag", "mine", "--json").stdout)
    assert [row["run"] for row in listed["runs"]] == [run.id]


def test_a_run_that_has_just_been_made_has_no_share(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    run = rlnb.train("Echo", library="echo", launcher=rlnb.injected())
    monkeypatch.setattr(time, "time", run.created.timestamp)
    text = invoke("goodput").stdout
    assert run.id in text
    assert "nan" not in text
    assert ": ;" not in text
