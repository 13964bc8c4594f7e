"""What differs between a run and the run that it repeats."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import rlnb
from rlnb.jobs.jobs import say_losses
from rlnb.plugin import Manifest
from rlnb.records.layout import RunDir
from rlnb.records.repetition import copy_records, differences
from rlnb.spec import Started
from rlnb.storage import files
from rlnb.training.repeat import say_versions

ENV = "seed: {seed}\nlog_dir: {path}/logs\nsim:\n  dt: {dt}\n"


def made(root: Path, id: str, *, like: rlnb.Run | None = None, dt: float = 0.005, **values: Any) -> rlnb.Run:
    """Return a run that has started, with the values of its manifest and of ``started.json``."""
    folder = RunDir(root / "runs" / id)
    (folder.logs / "params").mkdir(parents=True)
    of_start = {name: values.pop(name) for name in Started.__dataclass_fields__ if name in values}
    manifest = Manifest(
        run_id=id,
        created="2026-11-27T12:00:00+00:00",
        task=rlnb.Task(id="Echo"),
        library="echo",
        like=like.id if like else None,
        versions=of_start.get("versions", {}),
        **values,
    )
    files.write_once(folder.manifest, manifest)
    if like is not None:
        copy_records(like.record, folder)
    facts: dict[str, Any] = {"hosts": ("a",), "devices": ("cpu",), "world_size": 1, "num_envs": 4, "horizon": 16}
    job = folder.next_job("train")
    files.write_once(job.started, Started(**facts | {"frames_per_step": 64.0, "max_iterations": 5} | of_start))
    (folder.logs / "params" / "env.yaml").write_text(ENV.format(seed=manifest.seed, path=folder.path, dt=dt))
    return rlnb.get_run(str(folder.path))


def test_runs_with_the_same_records_do_not_differ(root: Path) -> None:
    run = made(root, "first", seed=7)
    assert differences(run.record) == (), "it repeats none"
    assert differences(made(root, "again", like=run, seed=7).record) == ()
    assert differences(made(root, "other", like=run, seed=8).record) == (), "the user has asked for that seed"


def test_other_versions_are_said_and_stay_in_the_record(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    run = made(root, "first", versions={"rlnb": "0.0.1"}, plugins={"mine": "1.0"})
    again = made(root, "again", like=run, versions={"rlnb": rlnb.__version__}, plugins={"mine": "2.0"})
    say_versions(run, again.manifest, None)
    text = f"Other versions: rlnb 0.0.1 then, {rlnb.__version__} now"
    assert caplog.messages == [f"The curve may differ from that of first. {text}."]
    shutil.rmtree(run.path)  # the new run does not need it
    assert differences(again.record) == ("Other versions: plugin mine 1.0 then, 2.0 now; " + text[16:] + ".",)
    say_losses(again)
    assert "plugin mine 1.0 then, 2.0 now" in caplog.messages[-1]
    page = again._repr_html_()
    assert page.count("plugin mine 1.0 then") == 1
    assert "repeats</td><td style='text-align:left'>first" in page


def test_other_config_values_and_machines_are_named(root: Path) -> None:
    run = made(root, "first", seed=7, first_iteration=4, threads=1)
    changes: dict[str, Any] = {"seed": 8, "dt": 0.01, "devices": ("cuda:0",), "threads": 2}
    again = made(root, "again", like=run, **changes)
    assert differences(again.record) == (
        "Other devices: cpu then, cuda:0 now.",
        "Another number of torch's threads: 1 then, 2 now.",
        "first was resumed, last at iteration 4; this run was not.",
        "Other config values: env.sim.dt 0.005 then, 0.01 now.",
    )
    assert again.config["env.sim.dt"] == 0.01
    (again.path / "logs" / "params" / "env.yaml").unlink()
    assert "env.sim.dt" not in again.config, "the copy of the other run's config is not its own"
