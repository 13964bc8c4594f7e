"""``rlnb.train(like=run)``, ``run.rerun()`` and ``rlnb.task(run)``: a run again, with what is in its folder."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rlnb
from rlnb import plugins
from rlnb.records.asked import asked
from rlnb.records.layout import RunDir
from rlnb.records.repetition import copy_records, differences
from rlnb.storage import files
from rlnb.tasks.agent_config import AgentChoice
from rlnb.tasks.card import AgentCard, ConfigField
from rlnb.training.lookup import Lookup
from rlnb.training.plan import make_plan
from rlnb.training.repeat import as_recorded, request_of, say_versions

CELL = "import shape\n\nreward = 2.0 * shape.scale\n"


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


def with_source(run: rlnb.Run) -> rlnb.Run:
    """Give a run a task with a module and a file that the module imports, as a cell has it."""
    source = run.path / "source"
    source.mkdir()
    (source / "pole.py").write_text(CELL)
    (source / "shape.py").write_text("scale = 3.0\n")
    task = rlnb.Task(id="Pole", source="/gone/pole.py", files={"shape.py": ""}, num_envs=8, overrides={"sim.dt": 0.01})
    task = dataclasses.replace(task, presets=("fast",), physics="newton_mjwarp", imports=("mine",), success="m:f")
    changed(run, "manifest.json", task=json.loads(json.dumps(files.plain(task))))
    return rlnb.get_run(str(run.path))


def test_a_run_is_repeated_with_its_arguments_and_its_curve(first: rlnb.Run) -> None:
    again = first.rerun().wait()
    assert (again.manifest.like, again.manifest.tags) == (first.id, ())
    unequal = {
        name for name in {*asked(first.manifest)} if asked(again.manifest).get(name) != asked(first.manifest)[name]
    }
    assert unequal == {"tags"}
    assert (again.manifest.keep, again.manifest.parent) == (2, first.manifest.parent)
    assert curve(again) == curve(first)
    assert differences(again.record) == ()
    assert f"repeats</td><td style='text-align:left'>{first.id}" in again._repr_html_()


def planned(task: Any = None, **arguments: Any) -> rlnb.Manifest:
    """Return the manifest of the run that a call would start."""
    plan = make_plan(request_of(task, arguments))
    assert not plan.problems, plan.problems
    return plan.manifest


def test_arguments_of_the_call_count_and_agent_values_are_added(first: rlnb.Run) -> None:
    again = planned(like=first.id, seed=42, max_iterations=2, agent={"peak": 1}, init_from=None)
    assert (again.seed, again.max_iterations, again.parent) == (42, 2, None)
    assert again.agent == {"noise_from": None, "goal": 3.0, "peak": 1}


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


def test_the_task_of_a_run_has_the_copy_of_its_module(first: rlnb.Run, root: Path) -> None:
    run = with_source(rlnb.Run(shutil.copytree(first.path, root / "runs" / first.id)))
    task = rlnb.task(run, num_envs=16, overrides={"sim.render_interval": 2}, physics="newton_kamino")
    assert task.source == str(run.path / "source" / "pole.py")
    assert (task.num_envs, task.physics, task.presets) == (16, "newton_kamino", ("fast",))
    assert task.overrides == {"sim.dt": 0.01, "sim.render_interval": 2}
    assert (task.imports, task.success) == (("mine",), "m:f")
    (run.path / "source" / "shape.py").unlink()
    for call in (lambda: rlnb.task(run), run.rerun):
        with pytest.raises(rlnb.RunError, match=r"has no copy of shape.py, so .* cannot be repeated"):
            call()


def test_what_is_no_run_is_refused(first: rlnb.Run) -> None:
    with pytest.raises(rlnb.RlnbError, match=r"like=7 is not a run, its id or its folder"):
        rlnb.train(like=7)  # type: ignore[arg-type]
    with pytest.raises(rlnb.RlnbError, match=r"7 is neither the name of a task nor a run"):
        rlnb.task(7)  # type: ignore[arg-type]
    with pytest.raises(rlnb.RlnbError, match=r"Use rlnb.task\(run\)"):
        rlnb.train(first)  # type: ignore[arg-type]


@pytest.fixture
def repeated(first: rlnb.Run, root: Path) -> Callable[[rlnb.Run], rlnb.Run]:
    """Provide a function that returns a run which has repeated another one, without a training."""

    def repeat(run: rlnb.Run) -> rlnb.Run:
        again = RunDir(root / "runs" / "again")
        shutil.copytree(first.path, again.path)
        changed(rlnb.Run(again.path), "manifest.json", like=run.id, run_id="again")
        copy_records(run.record, again)
        return rlnb.get_run(str(again.path))

    return repeat


def test_other_versions_are_said_and_stay_in_the_record(
    first: rlnb.Run,
    root: Path,
    repeated: Callable[[rlnb.Run], rlnb.Run],
    caplog: pytest.LogCaptureFixture,
) -> None:
    run = rlnb.Run(shutil.copytree(first.path, root / "runs" / first.id))
    versions = {**first.started.versions, "rlnb": "0.0.1", "tensorboard": "1.0"}
    changed(run, "jobs/0-train/started.json", versions=versions)
    run = rlnb.get_run(run.id)
    say_versions(run, first.manifest, None)
    said = f"The curve may differ from that of {run.id}. Other versions: rlnb 0.0.1 then, {rlnb.__version__} now"
    assert said in caplog.text
    again = repeated(run)
    shutil.rmtree(run.path)  # the new run does not need it
    (text,) = differences(again.record)
    assert "rlnb 0.0.1 then" in text
    assert "tensorboard 1.0 then" in text
    assert again._repr_html_().count("tensorboard 1.0 then") == 1
    again.wait()
    assert text in caplog.messages[-1]


def test_other_config_values_are_named_without_those_that_were_asked_for(
    first: rlnb.Run, root: Path, repeated: Callable[[rlnb.Run], rlnb.Run]
) -> None:
    run = rlnb.Run(shutil.copytree(first.path, root / "runs" / first.id))
    env = "seed: {seed}\nlog_dir: {path}/logs\nsim:\n  dt: {dt}\n"
    (run.path / "logs" / "params").mkdir()
    (run.path / "logs" / "params" / "env.yaml").write_text(env.format(seed=7, path=run.path, dt=0.005))
    again = repeated(run)
    assert "env.sim.dt" not in again.config, "the copy of the other run's config is not its own"
    changed(again, "manifest.json", seed=8)
    (again.path / "logs" / "params").mkdir()
    (again.path / "logs" / "params" / "env.yaml").write_text(env.format(seed=8, path=again.path, dt=0.01))
    again = rlnb.get_run(str(again.path))
    assert differences(again.record) == ("Other config values: env.sim.dt 0.005 then, 0.01 now.",)
    assert again.config["env.sim.dt"] == 0.01


def test_a_run_that_was_extended_is_repeated_to_its_end(
    first: rlnb.Run, root: Path, repeated: Callable[[rlnb.Run], rlnb.Run]
) -> None:
    run = rlnb.Run(shutil.copytree(first.path, root / "runs" / first.id))
    shutil.copytree(run.path / "jobs" / "0-train", run.path / "jobs" / "1-train")
    changed(run, "jobs/1-train/started.json", first_iteration=4, max_iterations=9)
    run = rlnb.get_run(run.id)
    assert planned(like=run).max_iterations == 9
    assert differences(repeated(run).record) == (f"{run.id} was resumed, last at iteration 4; this run was not.",)


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


def test_a_script_is_repeated_from_its_copy_if_it_has_changed(echo_root: Path, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("print('the first')")
    run = rlnb.train(script=script, args=["--task", "My Task"]).wait()
    assert planned(like=run).script == run.manifest.script
    script.write_text("print('the second')")
    again = run.rerun().wait()
    assert "the first" in again.logs()
    assert again.manifest.task.source_sha256 == run.manifest.task.source_sha256
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


def test_the_run_of_stock_isaac_lab_is_refused_with_the_call_that_trains_its_task(tmp_path: Path) -> None:
    params = tmp_path / "logs" / "rsl_rl" / "cartpole" / "2026-11-20_10-00-00" / "params"
    params.mkdir(parents=True)
    for name in ("env.yaml", "agent.yaml"):
        (params / name).write_text("seed: 1\n")
    (run,) = rlnb.runs(tmp_path)
    with pytest.raises(rlnb.RunError, match=r"written by stock Isaac Lab.* Use rlnb.train\("):
        run.rerun()
