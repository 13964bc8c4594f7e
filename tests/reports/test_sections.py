"""The sections of a report."""

from __future__ import annotations

import base64
import dataclasses
import html
import json
import os
import re
import time
from pathlib import Path

import nbformat
import numpy as np
import pytest
from PIL import Image

import rlnb
from rlnb.cli.training import show_run
from rlnb.records.record import JobRecord
from rlnb.records.video import Mp4
from rlnb.reports import sections
from rlnb.spec import Command, Job, Result
from rlnb.storage import files
from rlnb.storage.clock import moment_s


@pytest.fixture(scope="module")
def run(echo_root):
    run = rlnb.train("Echo", library="echo", max_iterations=4, seed=7, tags=["<b>tagged"]).wait()
    run.notes.add("<i>noted")
    return run


def test_the_summary_has_a_column_per_run_and_escapes_notes_and_tags(run, echo_root):
    other = rlnb.train("Echo", library="echo", max_iterations=3, seed=8).wait()
    page = sections.summary([run, other])
    assert all(one.id in page for one in (run, other))
    assert "4 of 4" in page
    assert "3 of 3" in page
    assert "&lt;b&gt;tagged" in page
    assert "&lt;i&gt;noted" in page
    assert other.id not in sections.heading([run])
    assert "2 runs, written" in sections.heading([run, other])


def test_what_only_one_run_has_stands_in_its_place(run, echo_root):
    failed = rlnb.train("Echo", library="echo", agent={"crash_at": 2})
    with pytest.raises(rlnb.RunError):
        failed.wait()
    names = re.findall(r"<tr><td[^>]*>(.*?)</td>", sections.summary([run, failed]))
    assert names[names.index("state") + 1] == "reason"
    assert names[-1] == "notes"


def test_the_alerts_of_a_run_are_all_in_its_column(echo_root):
    run = rlnb.train("Echo", library="echo", max_iterations=20, alerts=["reward > 0.1", "reward > 0.2"]).wait()
    deadline = time.monotonic() + 45
    while len(run.alerts) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    (row,) = re.findall(r"<tr><td[^>]*>alert</td>.*?</tr>", sections.summary([run]))
    assert "reward &gt; 0.1: " in row
    assert "reward &gt; 0.2: " in row


def test_a_lost_training_counts_until_the_next_one_began(run, echo_root):
    """Its last point is known, and the time of the later jobs is not counted twice."""
    copy = rlnb.train("Echo", library="echo", max_iterations=10, agent={"iteration_s": 0.05}).wait()
    whole = sections._seconds(copy)
    job = copy.jobs[0].folder
    start = json.loads(job.started.read_text())
    job.result.unlink()
    again = Job(kind="train", options={"checkpoint": "logs/model_4.json"})
    records = {"job.json": again, "command.json": Command(argv=("x",))}
    last = copy.record.folder.next_job("train", lambda _: records)
    middle_s = start["time_s"] + whole / 2
    files.write_once(last.started, {**start, "first_iteration": 5, "time_s": middle_s})
    files.write_once(last.result, Result(outcome="completed", ended=files.now()))
    ended_s = moment_s(JobRecord(last, "local").result.ended)
    seconds = sections._seconds(rlnb.Run(copy.path))
    assert seconds > ended_s - middle_s + whole / 3, "the first one trained until its checkpoint after a half, at least"
    assert seconds <= (ended_s - start["time_s"]) + 1e-6, "the first training ended before the second one began"


def test_sections_without_content_name_the_call_that_fills_them(run):
    assert "run.evaluate(episodes=100)" in sections.evaluations([run])
    assert "run.play()" in sections.films([run])
    assert sections.pictures([run]) == "<p>None.</p>"


def test_an_invalid_evaluation_says_what_is_wrong_and_spoils_no_other(echo_root, capsys):
    run = rlnb.train("Echo", library="echo", max_iterations=2).wait()
    run.evaluate(4)
    run.evaluate(4)
    path = run.jobs[-1].folder.evaluation
    path.unlink()
    path.write_text('{"returns": [1.0], "lengths": [], "timeouts": [], "checkpoint": "a", "seed": 1, "successes": [7]}')
    page = sections.evaluations([run])
    assert "logs/model_1.json, seed 1000" in page
    assert "cannot be compared" not in page
    assert "<b>invalid evaluation</b>" in page
    assert f"{path} is not valid: successes has a number that is not from 0 to 1. Move it away." in html.unescape(page)
    show_run(run)
    shown = capsys.readouterr().out
    assert "evaluation 0" in shown
    assert "is not valid" in " ".join(shown.split())


def test_evaluations_and_films_name_their_mode_and_a_mixture_is_not_compared_silently(echo_root):
    run = rlnb.train("Echo", library="echo", max_iterations=2).wait()
    for mode in ("play", "train"):
        run.evaluate(2)
        path = run.jobs[-1].folder.evaluation
        path.write_text(json.dumps({**json.loads(path.read_text()), "num_envs": 2, "mode": mode}))
        page = sections.evaluations([run])
        assert f"logs/model_1.json, 2 envs, mode {mode}, seed 1000" in page
        assert ("mode play and of mode train have different envs, and cannot be compared" in page) == (mode == "train")


def test_pictures_are_made_small_and_those_beyond_the_limit_are_named(run, monkeypatch):
    media = run.path / "media"
    media.mkdir()
    noise = np.random.default_rng(0).integers(0, 255, (900, 1200, 3), np.uint8)
    for name in ("a", "b"):
        Image.fromarray(noise).save(media / f"{name}.png")
    monkeypatch.setattr(sections, "PICTURES_BYTES", 500_000)
    page = sections.pictures([run])
    assert page.count("<img") == 1
    assert len(page) < 4 * 500_000 / 3 + 1000
    assert f"Not shown: {media / 'b.png'}" in page
    for path in media.iterdir():
        path.unlink()


def test_the_provenance_names_folder_versions_and_command(run):
    page = sections.provenance([run])
    assert str(run.path) in page
    assert f"rlnb {rlnb.__version__}" in page
    assert html.escape(run.command) in page


def test_an_unreadable_picture_is_named_and_skipped(run):
    broken = run.path / "media" / "broken.png"
    broken.parent.mkdir(exist_ok=True)
    broken.write_bytes(b"no picture")
    assert f"Not shown: {broken}" in sections.pictures([run])
    broken.unlink()
    os.mkfifo(broken)
    assert f"Not shown: {broken}" in sections.pictures([run])
    broken.unlink()


def again(run):
    """Run the lines of a report that reproduce a run."""
    lines = re.search(r"<pre>(.*)</pre>", sections.reproduce([run]), re.DOTALL).group(1)
    names = {}
    exec(html.unescape(lines), names)
    return names["run"]


def asked(run):
    """Return the arguments of a run, without its time and its name."""
    return dataclasses.replace(run.manifest, run_id="", created="", tags=(), like=None)


def test_the_lines_that_reproduce_a_run_do(echo_root):
    first = rlnb.train("Echo", library="echo", max_iterations=10, seed=3).wait()
    run = rlnb.train("Echo", library="echo", max_iterations=20, keep=2, init_from=first, agent={"noise_from": 2}).wait()
    copy = again(run).wait()
    assert copy.manifest.parent == first.id
    assert asked(copy) == asked(run)


def test_launcher_arguments_and_determinism_are_shown_and_reproduced(echo_root):
    run = rlnb.train("Echo", library="echo", max_iterations=1).wait()
    manifest = run.path / "manifest.json"
    values = json.loads(manifest.read_text()) | {"deterministic": True}  # the library echo has no use for them
    values["task"] |= {"launcher_args": {"kit_args": "--enable my.extension"}, "imports": ["mine.tasks"]}
    manifest.unlink()
    manifest.write_text(json.dumps(values))
    run = rlnb.get_run(run.id)
    page = sections.parameters([run])
    assert "launcher_args: kit_args</td><td style='text-align:left'>--enable my.extension</td>" in page
    assert "deterministic</td><td style='text-align:left'>True</td>" in page
    task = rlnb.task(run)
    assert (task.launcher_args, task.imports) == ({"kit_args": "--enable my.extension"}, ("mine.tasks",))


def test_the_lines_that_reproduce_a_script_do(echo_root, tmp_path):
    script = tmp_path / "it's.py"
    script.write_text("print('trained')")
    run = rlnb.train(script=script, args=["--task", "My Task"]).wait()
    assert asked(again(run).wait()) == asked(run)


def test_a_run_that_was_extended_is_reported_and_reproduced_as_it_ended(echo_root):
    run = rlnb.train("Echo", library="echo", max_iterations=3).wait()
    run.resume(max_iterations=5).wait()
    assert "max_iterations</td><td style='text-align:left'>5</td>" in sections.parameters([run])
    assert "max_frames" not in sections.parameters([run])


def test_a_short_film_plays_in_the_report_and_a_long_one_is_a_still(run, monkeypatch):
    film = run.path / "media" / "film.mp4"
    writer = Mp4(film, fps=10.0)
    for value in range(0, 200, 20):
        writer.add(np.full((32, 48, 3), value, np.uint8))
    writer.close()
    run.evaluate(episodes=2)
    record = run.jobs[-1].folder.path / "evaluation.json"
    record.write_text(json.dumps({**json.loads(record.read_text()), "video": str(film)}))
    page = sections.films([run])
    assert base64.b64encode(film.read_bytes()).decode() in page
    assert "<script" not in page
    monkeypatch.setattr(sections, "PICTURES_BYTES", film.stat().st_size)
    assert "<video" not in sections.films([run])
    assert f"{film} (logs/" in sections.films([run])


def test_a_report_ends_with_the_films():
    cells = nbformat.read(Path(sections.__file__).with_name("report.ipynb"), 4).cells
    assert cells[-1].source == "HTML(sections.films(runs))"


def test_the_goodput_has_a_row_and_a_bar_for_each_run(run):
    page = sections.goodput(run.goodput())
    assert run.id in page
    assert "node-hours" in page
    assert re.search(r"<td[^>]*>starting</td><td[^>]*>[\d.]+ s</td>", page)
    assert "no runs with a training" in sections.goodput(rlnb.Runs([]).goodput())
    bundle, _ = sections.goodput_bars(run.goodput())._repr_mimebundle_()
    assert bundle["image/png"]
    assert sections.goodput_bars(rlnb.Runs([]).goodput()) is None


def test_the_table_of_the_goodput_has_columns_for_the_first_runs_and_says_so(run):
    page = sections.goodput(rlnb.Runs([run] * (sections.COLUMNS + 1)).goodput())
    assert page.count(f">{run.id}</th>") == sections.COLUMNS
    assert f"{sections.COLUMNS + 1} runs" in page
    assert f", the first {sections.COLUMNS} shown</p>" in page
    assert "shown" not in sections.goodput(rlnb.Runs([run] * sections.COLUMNS).goodput())


# -- configs ---------------------------------------------------------------------------------------------------------


SOURCE = "# <script>a task</script>\nSPEED = 1.0\nWEIGHT = 2.0\n"


def give_source(run: rlnb.Run, source: str, **others: str) -> rlnb.Run:
    """Give a run the source code that a run with a task from a cell keeps, and return the run as read anew."""
    folder = run.record.folder
    folder.source.mkdir()
    (folder.source / "my_task.py").write_text(source)
    for name, text in others.items():
        (folder.source / f"{name}.py").write_text(text)
    record = files.read_json(folder.manifest)
    assert record is not None
    names = {f"{name}.py": "0" * 64 for name in others}
    task = {**record["task"], "source": "/elsewhere/my_task.py", "source_sha256": "0" * 64, "files": names}
    folder.manifest.unlink()
    files.write_once(folder.manifest, {**record, "task": task})
    return rlnb.get_run(str(run.path))


def dump(run: rlnb.Run, rate: float) -> None:
    """Write an agent config as Isaac Lab does."""
    (run.path / "logs" / "params").mkdir()
    text = f"algorithm:\n  learning_rate: {rate}\n  name: <b>ppo\nseed: {run.manifest.seed}\n"
    (run.path / "logs" / "params" / "agent.yaml").write_text(text)


@pytest.fixture
def pair(root: Path) -> list[rlnb.Run]:
    """A run, and one that starts from its weights with another learning rate, source and seed."""
    parent = rlnb.train("Echo", library="echo", max_iterations=3, seed=1).wait()
    child = rlnb.train("Echo", library="echo", max_iterations=3, seed=2, init_from=parent).wait()
    dump(parent, 0.001)
    dump(child, 0.5)
    return [
        give_source(parent, SOURCE),
        give_source(child, SOURCE.replace("1.0", "3.0"), terms="def reward(): ...\n"),
    ]


def test_every_hyperparameter_is_in_a_collapsible_text(pair: list[rlnb.Run]) -> None:
    page = sections.hyperparameters(pair[:1])
    assert f"<summary>{pair[0].id}: 3 hyperparameters</summary>" in page
    assert "algorithm.learning_rate = 0.001" in page
    assert "&lt;b&gt;ppo" in page
    assert "changes since its parent" not in page


def test_hyperparameters_that_differ_from_the_parents_are_a_table(pair: list[rlnb.Run]) -> None:
    parent, child = pair
    page = sections.hyperparameters([child])
    changes = page[page.index("changes since its parent") :]
    texts = re.findall(r"<t[hd][^>]*>([^<]*)</t[hd]>", changes)
    assert texts[:3] == ["", parent.id, child.id]
    assert texts[texts.index("agent.algorithm.learning_rate") :][:3] == [
        "agent.algorithm.learning_rate",
        "0.001",
        "0.5",
    ]
    assert "agent.algorithm.name" not in changes


def test_the_source_is_escaped_and_collapsible(pair: list[rlnb.Run]) -> None:
    page = sections.sources(pair[:1])
    assert f"<details><summary>{pair[0].id}: my_task.py, 3 lines</summary>" in page
    assert "&lt;script&gt;a task" in page
    assert "<script" not in page
    assert "parent" not in page


def test_the_difference_to_the_parents_source_is_a_unified_diff(pair: list[rlnb.Run]) -> None:
    page = sections.sources([pair[1]])
    changes = re.sub(r"</?span[^>]*>", "", page[page.index("changes of the source") :])
    assert f"--- {pair[0].id}/my_task.py\n+++ {pair[1].id}/my_task.py\n" in changes
    assert "\n-SPEED = 1.0\n+SPEED = 3.0\n" in changes
    assert "\n+def reward(): ..." in changes, "the parent lacks this file"


def test_equal_sources_are_said_to_be_equal(root: Path) -> None:
    parent = rlnb.train("Echo", library="echo", max_iterations=3).wait()
    child = rlnb.train("Echo", library="echo", max_iterations=3, init_from=parent).wait()
    runs = [give_source(run, SOURCE) for run in (parent, child)]
    assert f"The source is that of its parent {parent.id}." in sections.sources(runs)
    assert "has written no agent config: echo dumps none" in sections.hyperparameters(runs)


def test_a_parent_that_is_not_here_is_named(pair: list[rlnb.Run], tmp_path: Path) -> None:
    pair[0].path.rename(tmp_path / "away")
    assert f"come from {pair[0].id}, whose run is not here." in sections.hyperparameters([pair[1]])
    assert "changes of the source" not in sections.sources([pair[1]])


def test_a_task_of_a_package_has_no_source_in_the_run(root: Path) -> None:
    run = rlnb.train("Echo", library="echo", max_iterations=3).wait()
    assert "the task Echo belongs to a package" in sections.sources([run])


def test_a_file_outside_of_the_run_is_not_shown(pair: list[rlnb.Run], tmp_path: Path) -> None:
    (tmp_path / "secret.py").write_text("SECRET")
    link = pair[0].record.folder.source / "my_task.py"
    link.unlink()
    link.symlink_to(tmp_path / "secret.py")
    assert "SECRET" not in sections.sources(pair)


def test_a_long_source_is_named_only(pair: list[rlnb.Run], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sections, "SOURCE_BYTES", len(SOURCE) + 10)
    page = sections.sources([pair[1]])
    assert "SPEED = 3.0" in page
    assert "terms.py, 1 line</summary><p>Not shown: it is too long.</p>" in page
