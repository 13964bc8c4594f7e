"""``rlnb.train(like=run)``, ``run.rerun()`` and ``rlnb.task(run)``: a run again, with what is in its folder."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import rlnb
from rlnb.configs.agent import AgentChoice
from rlnb.configs.card import AgentCard, ConfigField
from rlnb.hooks import plugins
from rlnb.plugin import Manifest
from rlnb.records.arguments import arguments_of
from rlnb.records.repetition import differences
from rlnb.training.lookup import Lookup
from rlnb.training.plan import make_plan
from rlnb.training.repeat import as_recorded, request_of


@pytest.fixture(scope="module")
def first(echo_root: Path) -> rlnb.Run:
    """A run with most arguments, which starts from the weights of another."""
    parent = rlnb.train("Echo", library="echo", max_iterations=6).wait()
    agent = {"noise_from": None, "goal": 3.0}
    return rlnb.train(
        "Echo", library="echo", max_iterations=4, seed=7, keep=2, agent=agent, init_from=parent, tags=["paper"]
    ).wait()


def curve(run: rlnb.Run) -> dict[str, list[tuple[int, float]]]:
    return {tag: [(step, value) for step, _, value in run.metrics[tag].points] for tag in run.metrics.tags}


def changed(run: rlnb.Run, record: str, **values: Any) -> None:
    """Change values in a record of a run."""
    path = run.path / record
    content = json.loads(path.read_text()) | values
    path.unlink()
    path.write_text(json.dumps(content))


def test_a_run_is_repeated_with_its_arguments_and_its_curve(first: rlnb.Run) -> None:
    again = first.rerun().wait()
    assert (again.manifest.like, again.manifest.tags) == (first.id, ())
    unequal = {
        name
        for name in {*arguments_of(first.manifest)}
        if arguments_of(again.manifest).get(name) != arguments_of(first.manifest)[name]
    }
    assert unequal == {"tags"}
    assert (again.manifest.keep, again.manifest.parent) == (2, first.manifest.parent)
    assert curve(again) == curve(first)
    assert differences(again.record) == ()
    assert f"repeats</td><td style='text-align:left'>{first.id}" in again._repr_html_()


def planned(task: Any = None, **arguments: Any) -> Manifest:
    """Return the manifest of the run that a call would start."""
    plan = make_plan(request_of(task, arguments))
    assert not plan.problems, plan.problems
    return plan.manifest


def test_a_rerun_takes_the_arguments_of_a_training_and_no_other_run(first: rlnb.Run) -> None:
    again = first.rerun(task="Echo", seed=7).wait(60)
    assert (again.manifest.task.id, again.manifest.seed) == ("Echo", 7)
    with pytest.raises(TypeError, match="like"):
        first.rerun(like=again)


def test_arguments_of_the_call_count_and_agent_values_are_added(first: rlnb.Run) -> None:
    again = planned(like=first.id, seed=42, max_iterations=2, agent={"peak": 1}, init_from=None)
    assert (again.seed, again.max_iterations, again.parent) == (42, 2, None)
    assert again.agent == {"noise_from": None, "goal": 3.0, "peak": 1}


def test_none_is_the_runs_own_value_unless_it_is_a_value_itself(first: rlnb.Run, root: Path) -> None:
    left_out = ("library", "max_iterations", "max_frames", "seed", "num_envs", "agent", "device", "alerts")
    again = planned(like=first, **dict.fromkeys((*left_out, "deterministic", "tags", "trust")))
    assert (again.library, again.seed, again.max_iterations, again.alerts) == ("echo", 7, 4, ())
    assert (again.agent, again.resources.device) == (first.manifest.agent, first.manifest.resources.device)
    assert (again.keep, again.parent, again.tags) == (2, first.manifest.parent, ())
    again = planned(like=first, keep=None, init_from=None)
    assert (again.keep, again.parent) == (None, None)
    with pytest.raises(TypeError, match="unexpected keyword argument 'sed'"):
        planned(like=first, sed=None)


def test_a_folder_that_was_moved_is_repeated_from_where_it_is(
    first: rlnb.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = Path(shutil.copytree(first.path, tmp_path / first.id))
    with pytest.raises(rlnb.NotFoundError, match="If its folder was moved"):
        rlnb.train(like=str(first.path.with_name("gone")))
    assert rlnb.get_run(f"/gone/runs/{first.id}").path == first.path, "in the folder of runs"
    monkeypatch.setattr(rlnb.options, "root", tmp_path / "another")
    for here in (tmp_path, moved):
        monkeypatch.chdir(here)
        assert request_of(None, {"like": f"/gone/runs/{first.id}", "init_from": None}).like.path == moved


def test_weights_that_are_gone_are_refused_with_the_argument_that_replaces_them(first: rlnb.Run, root: Path) -> None:
    run = rlnb.Run(shutil.copytree(first.path, root / "runs" / first.id))
    changed(run, "jobs/0-train/job.json", options={"init_from": "/gone/model_5.json"})
    with pytest.raises(rlnb.RlnbError, match=r"weights /gone/model_5.json, which do not exist any more.* init_from="):
        run.rerun()
    assert [one.id for one in rlnb.runs()] == [first.id]


def test_what_is_no_run_is_refused(first: rlnb.Run) -> None:
    with pytest.raises(rlnb.RlnbError, match=r"like=7 is not a run, its id or its folder"):
        rlnb.train(like=7)  # type: ignore[arg-type]
    with pytest.raises(rlnb.RlnbError, match=r"Use rlnb.task\(run\)"):
        rlnb.train(first)  # type: ignore[arg-type]


def test_a_run_that_was_extended_is_repeated_to_its_end(first: rlnb.Run, root: Path) -> None:
    run = rlnb.Run(shutil.copytree(first.path, root / "runs" / first.id))
    shutil.copytree(run.path / "jobs" / "0-train", run.path / "jobs" / "1-train")
    changed(run, "jobs/1-train/started.json", first_iteration=4, max_iterations=9)
    run = rlnb.get_run(run.id)
    assert planned(like=run).max_iterations == 9


def test_an_agent_config_that_has_changed_keeps_the_values_of_the_run(
    first: rlnb.Run, root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = rlnb.Run(shutil.copytree(first.path, root / "runs" / first.id))
    (run.path / "logs" / "params").mkdir()
    lines = "seed: 7\ngamma: 0.99\nrate: 5e-4\nlam: 0.95\nclip: null\nunits: [32, 32]\n"
    (run.path / "logs" / "params" / "agent.yaml").write_text(lines)
    now = {"seed": 42, "gamma": 0.9, "rate": "5e-4", "lam": 0.8, "clip": None, "units": [32, 32], "goal": 1.0}
    fields = {path: ConfigField(type="any", value=value) for path, value in now.items()}
    lookup = Lookup(name="echo", library=plugins.library("echo"), agent=AgentCard(fields=fields))
    choice = as_recorded(AgentChoice(values={"lam": 0.7}), run, lookup)
    assert choice.values == {"gamma": 0.99, "lam": 0.7}
    assert "The agent config has changed since" in caplog.text
    assert "gamma is 0.9 now, 0.99 is used" in caplog.text
    named = AgentChoice(name="another_cfg_entry_point")
    assert as_recorded(named, run, lookup) == named


def test_a_script_is_repeated_from_its_copy_if_it_has_changed(
    echo_root: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    script = tmp_path / "train.py"
    script.write_text("print('the first')")
    run = rlnb.train(script=script, args=["--task", "My Task"]).wait()
    assert planned(like=run).script == run.manifest.script
    script.write_text("print('the second')")
    again = run.rerun().wait()
    assert "the first" in again.logs()
    assert again.manifest.task.source_sha256 == run.manifest.task.source_sha256
    executed = str(again.path / "source" / "train.py")
    assert again.manifest.script == (executed, "--task", "My Task"), "the folder of the first run may be deleted"
    assert f"{script} has changed since {run.id}" in caplog.text
    caplog.clear()
    of_copy = planned(like=again)
    assert of_copy.script[0] == str(again.path.with_name(of_copy.run_id) / "source" / "train.py")
    assert "has changed" not in caplog.text
    (run.path / "source" / "train.py").unlink()
    with pytest.raises(rlnb.RlnbError, match=r"is the script that .* ran. Use script="):
        run.rerun()


def test_a_launcher_that_cannot_be_used_here_is_refused_with_the_argument_that_replaces_it(
    first: rlnb.Run, root: Path
) -> None:
    run = rlnb.Run(shutil.copytree(first.path, root / "runs" / first.id))
    changed(run, "manifest.json", launcher="moon", launcher_settings={"crater": 3})
    run = rlnb.get_run(run.id)
    with pytest.raises(rlnb.RlnbError, match=r"'moon', which cannot be used here.* Use launcher=rlnb.local\(\)"):
        run.rerun()
    assert planned(like=run, launcher=rlnb.local()).launcher == "local"


def test_another_number_of_threads_is_that_of_the_run(
    first: rlnb.Run, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = rlnb.Run(shutil.copytree(first.path, root / "runs" / first.id))
    changed(run, "jobs/0-train/started.json", threads=3)
    run = rlnb.get_run(run.id)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert planned(like=run).resources.threads == 3
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert planned(like=run).resources.threads is None, "a warm simulator has this number"
