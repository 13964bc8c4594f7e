"""``runs.goodput()``: the table, the figure and the HTML of several runs."""

from __future__ import annotations

import dataclasses
import io
import json
import math
import os
import shutil
from pathlib import Path

import pytest
from PIL import Image
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter

import rlnb
from rlnb.accounting import goodput
from rlnb.accounting.account import Account, TimeParts
from rlnb.accounting.goodput import Goodput, GoodputRow, bars, usage_of
from rlnb.display.figures import png
from rlnb.records.layout import RunDir
from rlnb.spec import Result
from rlnb.storage import files


@pytest.fixture(scope="module")
def runs(echo_root: Path) -> rlnb.Runs:
    """Provide a completed run, and a copy of it that failed after its second iteration."""
    run = rlnb.train("Echo", library="echo", max_iterations=6, agent={"iteration_s": 0.05}).wait(60)
    copy = run.path.with_name(f"{run.id}-copy")
    shutil.copytree(run.path, copy)
    result = copy / "jobs" / "0-train" / "result.json"
    ended = json.loads(result.read_text())["ended"]
    os.unlink(result)
    error = "<script>alert(1)</script>"
    files.write_once(result, Result(outcome="failed", error=error, ended=ended))
    for path in copy.glob("logs/model_5.json"):
        os.unlink(path)
    return rlnb.Runs([rlnb.Run(copy), run])


def test_the_table_has_a_row_for_each_run_and_the_sum_is_theirs(runs: rlnb.Runs) -> None:
    goodput = rlnb.Runs(runs).goodput()
    table = goodput.table()
    assert len(table) == 2
    assert table["wall_s"].sum() == pytest.approx(goodput.parts.wall_s)
    assert (table["goodput"] < 1).all()
    assert list(table["interruptions"]) == [1, 0]
    assert list(table["lost_iterations"]) == [1, 0]
    assert list(table["frames"]) == [5 * 64, 6 * 64]
    assert table["frames_per_gpu_hour"].isna().all()
    assert (table["disk_bytes"] > 1000).all()
    assert goodput.useful_share == pytest.approx(table["useful_s"].sum() / table["wall_s"].sum())
    assert goodput.mean_s_between_interruptions == pytest.approx(goodput.node_hours * 3600)


def test_the_text_says_what_the_runs_cost_and_what_interrupted_them(runs: rlnb.Runs) -> None:
    text = repr(rlnb.Runs(runs).goodput())
    assert text.startswith("Goodput(2 runs, ")
    assert "% useful" in text
    assert "1 interruption, one every" in text
    assert "node-hours" in text
    (row,) = rlnb.Runs(runs).goodput().interruptions_table().to_dict("records")
    assert (row["cause"], row["lost_iterations"], row["error"]) == ("error", 1, "<script>alert(1)</script>")


def test_foreign_text_is_escaped(runs: rlnb.Runs) -> None:
    html = rlnb.Runs(runs).goodput()._repr_html_()
    assert "&lt;script&gt;" in html
    assert "<script>" not in html
    assert "Interruptions" in html


def test_a_single_run_and_no_run_have_a_goodput_too(runs: rlnb.Runs) -> None:
    one = runs[1].goodput()
    assert (len(one.accounts), one.interruptions) == (1, [])
    assert one.mean_s_between_interruptions == math.inf
    empty = rlnb.Runs([]).goodput()
    assert repr(empty) == "Goodput(no runs with a training)"
    assert list(empty.table().columns) == list(GoodputRow.__dataclass_fields__)
    assert math.isnan(empty.useful_share)
    assert "<table>" in empty._repr_html_()
    assert len(empty.interruptions_table()) == 0


def test_a_damaged_run_hides_no_other(runs: rlnb.Runs, caplog: pytest.LogCaptureFixture) -> None:
    damaged = runs[0].path.with_name("damaged")
    shutil.copytree(runs[0].path, damaged)
    (damaged / "manifest.json").write_text("{")
    assert len(rlnb.Runs([rlnb.Run(damaged), *runs]).goodput().accounts) == 2
    assert "damaged is not in the sum" in caplog.text
    shutil.rmtree(damaged)


def test_a_notebook_shows_a_bounded_number_of_runs(runs: rlnb.Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlnb.accounting.goodput.MOST_ROWS", 1)
    html = rlnb.Runs(runs).goodput()._repr_html_()
    assert "the first 1 shown" in html
    assert runs[1].id + "<" not in html


def test_a_cost_that_is_unknown_is_not_in_the_text(runs: rlnb.Runs) -> None:
    known = rlnb.Runs(runs).goodput().accounts[0]
    script = dataclasses.replace(known, gpu_hours=2.0, frames=math.nan)
    assert "2 GPU-hours" in Goodput((script,)).summary
    assert "nan" not in Goodput((script,)).summary
    unknown = dataclasses.replace(known, gpu_hours=math.nan)
    assert Goodput((script, unknown)).gpu_hours == 2.0
    assert "nan" not in repr(Goodput((unknown,))) + Goodput((unknown,))._repr_html_()


def test_runs_without_gpus_have_no_columns_of_gpus(runs: rlnb.Runs) -> None:
    html = rlnb.Runs(runs).goodput()._repr_html_()
    assert "GPU-hours" not in html
    assert ">useful<" in html


def test_the_facts_have_what_is_known(runs: rlnb.Runs) -> None:
    facts = dict(rlnb.Runs(runs).goodput().facts)
    assert {"wall time", "goodput", "interruptions", "lost", "node-hours"} == {*facts}
    assert facts["interruptions"].startswith("1, one every ")
    assert facts["lost"].endswith(", 1 iteration")
    on_gpus = dataclasses.replace(rlnb.Runs(runs).goodput().accounts[1], gpu_hours=2.0, frames=3000.0)
    assert dict(Goodput((on_gpus,)).facts)["frames per GPU-hour"] == "1,500"
    assert Goodput(()).facts == []


def test_the_number_of_nodes_that_another_user_has_written_costs_no_time(runs: rlnb.Runs) -> None:
    copy = runs[1].path.with_name(f"{runs[1].id}-many")
    shutil.copytree(runs[1].path, copy)
    manifest = copy / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"nodes": 1,', '"nodes": 1000000000000,'))
    assert rlnb.Run(copy).manifest.resources.nodes == 10**12
    assert rlnb.Runs([rlnb.Run(copy)]).goodput().parts.wall_s == pytest.approx(runs[1].goodput().parts.wall_s)


# -- figure ----------------------------------------------------------------------------------------------------------


def account(run: str, **seconds: float) -> Account:
    return Account(
        run=run,
        path=Path(run),
        task="t",
        state="completed",
        parts=TimeParts(**seconds),
        interruptions=(),
        held_s=0.0,
        node_hours=0.0,
        gpu_hours=0.0,
        frames=0.0,
        checkpoint_bytes=0,
    )


def test_each_bar_begins_where_the_part_before_it_ends() -> None:
    chart = bars([account("a", waiting_s=60.0, useful_s=540.0), account("<b>", useful_s=600.0, lost_s=60.0)])
    traces = {trace.name: trace for trace in chart.data}
    assert [*traces] == ["waiting", "useful", "lost"]
    assert list(traces["useful"].x) == [9.0, 10.0]
    assert list(traces["useful"].base) == [1.0, 0.0]
    assert list(traces["lost"].base) == [10.0, 10.0]
    assert list(traces["lost"].y) == ["a", "&lt;b&gt;"]
    assert chart.layout.xaxis.title.text == "wall time (min)"
    assert png(chart).startswith(b"\x89PNG")


@pytest.mark.parametrize(("seconds", "unit"), [(90.0, "s"), (7000.0, "min"), (90_000.0, "h")])
def test_the_unit_suits_the_longest_run(seconds: float, unit: str) -> None:
    assert bars([account("a", useful_s=seconds)]).layout.xaxis.title.text == f"wall time ({unit})"


def test_the_picture_grows_with_the_number_of_runs_and_is_flat_for_one() -> None:
    sizes = []
    for count in (1, 11):
        picture = Image.open(io.BytesIO(png(bars([account(f"run {n}", useful_s=60.0) for n in range(count)]))))
        sizes.append(picture.width / picture.height)
    assert sizes[0] > 5.0
    assert sizes[1] < sizes[0] / 2.0


def test_the_legend_is_above_the_bars_and_their_numbers() -> None:
    legend = bars([account("a", useful_s=1.0)]).layout.legend
    assert (legend.yanchor, legend.y) == ("bottom", 1.0)


def test_no_runs_have_an_empty_figure() -> None:
    assert not bars([]).data


# -- usage -----------------------------------------------------------------------------------------------------------


def samples(folder: Path, node: int, values: dict[str, list[float]]) -> None:
    writer = EventFileWriter(str(folder / f"node{node}"))
    for at in range(max(map(len, values.values()))):
        summary = [Summary.Value(tag=f"system/node{node}/{name}", simple_value=of[at]) for name, of in values.items()]
        writer.add_event(Event(wall_time=float(at), step=at, summary=Summary(value=summary)))
    writer.close()


def test_cores_are_summed_over_nodes_and_gpus_are_averaged(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    samples(run.system, 0, {"cpu_cores": [1.0, 3.0], "gpu0_percent": [80.0, 100.0], "memory_gib": [9.0, 9.0]})
    samples(run.system, 1, {"cpu_cores": [4.0], "gpu0_percent": [50.0]})
    (tmp_path / "model.pt").write_bytes(b"0" * 10_000)
    run.media.mkdir()
    run.film(100).write_bytes(b"0" * 700)
    load = usage_of(run)
    assert (load.cpu_cores, load.gpu_percent) == (6.0, 70.0)
    assert load.media_bytes == 700
    assert load.event_bytes == sum(path.stat().st_size for path in run.system.rglob("*tfevents*")) > 0
    assert load.disk_bytes == 10_700 + load.event_bytes


def test_a_long_file_is_thinned_and_a_run_without_samples_has_no_load(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    assert math.isnan(usage_of(run).cpu_cores)
    samples(run.system, 0, {"cpu_cores": [float(at) for at in range(10 * goodput.SAMPLES)]})
    assert usage_of(run).cpu_cores == pytest.approx(5 * goodput.SAMPLES, rel=0.05)
